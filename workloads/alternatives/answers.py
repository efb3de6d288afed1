"""What the simulator answered so far, in words and moments for one reader."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from projects.durations import describe_duration
from projects.models import Project
from simulation import Outlook
from simulation.alternatives import AlternativeStart
from workloads.alternatives.questions import BASE, Question

MOST_SHOWN = 5
LEAST_SHARE = 0.5
"""In which share of the draws an alternative has to start sooner to be shown."""
LEAST_GAIN = timedelta(minutes=1)
LEAST_GAIN_SHARE = 0.05
"""How much sooner its likely start has to be, of the wait as it is."""


@dataclass(frozen=True, slots=True)
class AlternativeView:
    """One alternative as it is shown; with no `likely_at` it does not start within a day.

    `change` and `project` make a filled copy, `ended` is a workload, `quota_of` a project whose
    quota would be raised. All of them may be missing.
    """

    key: str
    title: str
    outlook: Outlook
    draws: int
    likely_at: datetime | None = None
    earliest_at: datetime | None = None
    latest_at: datetime | None = None
    is_at_once: bool = False
    sooner_by: timedelta | None = None
    """How much sooner than as it is; None where that is not known, or not within a day."""
    change: str = ""
    project: int | None = None
    ended: uuid.UUID | None = None
    quota_of: Project | None = None

    @property
    def is_copy(self) -> bool:
        return self.project is not None

    @property
    def gain_seconds(self) -> int | None:
        return None if self.sooner_by is None else round(self.sooner_by.total_seconds())

    @property
    def gain(self) -> str:
        """How much sooner in words, in whole minutes: no forecast is surer; "" where not known."""
        minutes = 0 if self.sooner_by is None else round(self.sooner_by.total_seconds() / 60)
        return describe_duration(minutes * 60) if minutes > 0 else ""


class AnswerBoard:
    """The answers to one question, the newest of each alternative."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.is_over = False
        """Whether no more answers come."""
        self._answers: dict[str, AlternativeStart] = {}

    def note(self, answer: AlternativeStart) -> None:
        """Take in an answer; it takes the place of an earlier one of the same alternative."""
        self._answers[answer.key] = answer

    @property
    def base(self) -> AlternativeView | None:
        """The start as it is; None while that is not known."""
        answer = self._answers.get(BASE)
        return None if answer is None else self._view(answer)

    @property
    def has_arrivals(self) -> bool:
        """Whether others come meanwhile, as they came before."""
        question = self.question
        return question.places[0].past.tells_of_now(question.asked_at.timestamp())

    def list_best(self) -> Sequence[AlternativeView]:
        """Return what helps, the soonest start first."""
        base = self._answers.get(BASE)
        views = [
            self._view(answer)
            for key, answer in self._answers.items()
            if key != BASE and self._helps(answer, base)
        ]
        views.sort(key=lambda view: (view.likely_at, not view.is_copy, view.key))
        return views[:MOST_SHOWN]

    def _view(self, answer: AlternativeStart) -> AlternativeView:
        offer = self.question.offers[answer.key]
        base = self._answers.get(BASE)
        gain = None
        if answer.likely is not None and base is not None and base.likely is not None:
            gain = timedelta(seconds=base.likely - answer.likely)
        return AlternativeView(
            answer.key,
            offer.title,
            answer.outlook,
            answer.draws,
            self._find_moment(answer.likely),
            self._find_moment(answer.earliest),
            self._find_moment(answer.latest),
            answer.likely == 0,
            gain,
            offer.change,
            offer.project,
            offer.ended,
            offer.quota_of,
        )

    def _find_moment(self, seconds: float | None) -> datetime | None:
        return None if seconds is None else self.question.asked_at + timedelta(seconds=seconds)

    def _helps(self, answer: AlternativeStart, base: AlternativeStart | None) -> bool:
        """Return whether an alternative starts clearly sooner than the gang as it is."""
        if answer.outlook is not Outlook.STARTS or answer.likely is None:
            return False
        if base is None or base.likely is None:
            # It starts, and as it is that is not known, or not within what is played.
            return True
        least = max(LEAST_GAIN.total_seconds(), LEAST_GAIN_SHARE * base.likely)
        is_elsewhere = self.question.offers[answer.key].is_elsewhere
        is_often_sooner = is_elsewhere or answer.sooner_share >= LEAST_SHARE
        return is_often_sooner and answer.likely <= base.likely - least

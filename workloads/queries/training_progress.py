"""How far a workload's training is, for pages and REST: itself, its loss, and each rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from workloads.models import Log, LossCurve, RankProgress, TrainingProgress, Workload
from workloads.states import UP
from workloads.training_progress import (
    LossPoint,
    RankState,
    decode_history,
    describe_loss,
    find_place,
    format_figure,
    format_place,
    get_pattern_title,
)

MOST_RANKS = 1000
"""Ranks of one answer or page, the first ones."""
TOGETHER = timedelta(seconds=2)
"""Ranks whose logs were read within this time are compared by their steps."""


@dataclass(frozen=True, slots=True)
class RankView:
    """One rank, as its logs were at `read_at`.

    `steps_behind` is how far it is behind the first of those that were read with it; None where
    that is not known.
    """

    rank: int
    pod: str
    at: datetime | None
    read_at: datetime
    state: RankState
    steps_behind: int | None

    @property
    def place(self) -> str:
        """How far it is, in words."""
        state = self.state
        return format_place(state.step, state.total, state.epoch, state.epochs)

    @property
    def loss(self) -> str:
        return describe_loss(self.state.loss, is_bad=self.state.has_bad_loss)

    @property
    def samples(self) -> str:
        return format_figure(self.state.samples_per_second)


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How far a training is now. `remaining_seconds` is None where that cannot be said."""

    rank: int | None
    state: RankState
    at: datetime | None
    estimate: str
    remaining_seconds: float | None
    trouble: str

    @property
    def is_known(self) -> bool:
        """Whether any line told anything."""
        return self.at is not None

    @property
    def place(self) -> str:
        """How far it is, in words."""
        state = self.state
        return format_place(state.step, state.total, state.epoch, state.epochs)

    @property
    def loss(self) -> str:
        return describe_loss(self.state.loss, is_bad=self.state.has_bad_loss)

    @property
    def samples(self) -> str:
        return format_figure(self.state.samples_per_second)

    @property
    def share(self) -> float | None:
        """What part is done, from 0 to 1."""
        state = self.state
        place = find_place(state.step, state.total, state.epoch, state.epochs)
        return None if place is None else place.share

    @property
    def learning_rate(self) -> str:
        return format_figure(self.state.learning_rate)

    @property
    def pattern_title(self) -> str:
        return get_pattern_title(self.state.pattern)


@dataclass(frozen=True, slots=True)
class ProgressDetails:
    """The ranks, of `rank_count`, the points of the loss, and the log of the last line."""

    ranks: Sequence[RankView]
    rank_count: int
    loss: Sequence[LossPoint]
    log: Log | None
    offset: int


def view_progress(workload: Workload) -> ProgressView | None:
    """Return how far a workload is; None where its present attempt was not read yet.

    It is loaded with `progress`: no query.
    """
    row: TrainingProgress | None = getattr(workload, "progress", None)
    if row is None or row.attempt != workload.attempt:
        return None
    is_up = workload.status in UP
    remaining = None
    if is_up and row.ends_at is not None:
        remaining = max(0.0, (row.ends_at - timezone.now()).total_seconds())
    return ProgressView(
        row.rank,
        RankState(**row.state),
        row.at,
        row.estimate if is_up else "",
        remaining,
        row.trouble,
    )


def load_progress_details(workload: Workload, most_ranks: int = MOST_RANKS) -> ProgressDetails:
    """Load the ranks and the loss of the present attempt. Three queries, one where none is read."""
    row: TrainingProgress | None = getattr(workload, "progress", None)
    if row is None or row.attempt != workload.attempt:
        return ProgressDetails((), 0, (), None, 0)
    rows = RankProgress.objects.filter(
        workload=workload, attempt=workload.attempt, at__isnull=False
    ).order_by("rank")
    ranks = list(rows[: most_ranks + 1])
    curve = LossCurve.objects.filter(workload=workload).first()
    log = (
        Log.objects.filter(pk=row.log or 0, pod__workload=workload)
        .exclude(state=Log.State.REMOVED)
        .select_related("pod")
        .defer("pod__data", "gaps")
        .first()
    )
    history = decode_history(None if curve is None else curve.history)
    is_more = len(ranks) > most_ranks
    count = max(workload.requested_pods, len(ranks)) if is_more else len(ranks)
    return ProgressDetails(
        _compare_ranks(ranks[:most_ranks]), count, history.points, log, row.offset
    )


def _compare_ranks(rows: Sequence[RankProgress]) -> list[RankView]:
    """Build the views of ranks; what was read earlier was another step of all of them."""
    newest = max((each.read_at for each in rows), default=None)
    pairs = [(row, RankState(**row.state)) for row in rows]
    together = {row.rank for row in rows if newest is not None and newest - row.read_at < TOGETHER}
    steps = [state.step for row, state in pairs if state.step is not None and row.rank in together]
    return [
        RankView(
            row.rank,
            row.pod,
            row.at,
            row.read_at,
            state,
            max(steps) - state.step if state.step is not None and row.rank in together else None,
        )
        for row, state in pairs
    ]

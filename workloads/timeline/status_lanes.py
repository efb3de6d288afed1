"""The lanes of a workload as a whole: statuses, attempts, changes of pods, findings. Pure."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from workloads.quantities import format_count
from workloads.states import RESTING, STARTING, Status
from workloads.timeline.facts import AttemptFact, FindingFact, StatusChange, TimelineFacts
from workloads.timeline.lanes import (
    Lane,
    LaneKind,
    Mark,
    Segment,
    clip_segment,
    cut_text,
    join_sentences,
)
from workloads.timeline.looks import MarkKind, Tint

SAME_MOMENT = 1.0
"""Seconds within which the first change of status is the submission itself."""
UNKNOWN_TEXT = "What it was until then is not known any more."
MOST_STATUSES = 120
MOST_ATTEMPTS = 60
MOST_CHANGES = 60
MOST_FINDINGS = 100
"""Segments or marks of one lane, the newest."""


def get_status_label(status: str) -> str:
    """Return what pages call a status."""
    return Status(status).label if status in Status.__members__.values() else status


def get_status_look(status: str) -> Tint:
    """Return the colour of a status."""
    return Tint(Status(status).colour) if status in Status.__members__.values() else Tint.GREY


def build_status_lane(facts: TimelineFacts, begin: float, end: float) -> Lane:
    """Build the lane of all statuses that the workload had."""
    segments = list(_list_statuses(facts, begin, end))[-MOST_STATUSES:]
    return Lane("status", LaneKind.STATUS, "Status", segments=segments)


def _list_statuses(facts: TimelineFacts, begin: float, end: float) -> Iterator[Segment]:
    changes = list(_complete_changes(facts))
    first = changes[0]
    if first.at - begin > SAME_MOMENT:
        if first.old in STARTING and facts.attempt == 1:
            yield _build_status(StatusChange(begin, "", first.old), begin, first.at, first.at)
        else:
            yield Segment(begin, first.at, "unknown", Tint.UNKNOWN, UNKNOWN_TEXT)
    for number, change in enumerate(changes):
        following = changes[number + 1].at if number + 1 < len(changes) else None
        since = max(begin, change.at)
        yield _build_status(change, since, end if following is None else following, following)


def _complete_changes(facts: TimelineFacts) -> Iterator[StatusChange]:
    """Yield the changes in their order, the present status as the last of them.

    Of changes to one status the first counts; an entry that was deleted cannot be told.
    """
    before = ""
    for change in sorted(facts.changes, key=lambda each: each.at):
        if change.new != before:
            yield change
            before = change.new
    if before != facts.status:
        last = max((each.at for each in facts.changes), default=facts.status_at)
        yield StatusChange(max(last, facts.status_at), before, facts.status)


def _build_status(
    change: StatusChange, begin: float, end: float, following: float | None = None
) -> Segment:
    label = get_status_label(change.new)
    by = f", asked for by {change.by}" if change.by else ""
    return Segment(
        begin,
        max(begin, end),
        change.new,
        get_status_look(change.new),
        join_sentences(f"{label}{by}", change.text),
        label=label,
        is_open=following is None and end > begin,
    )


def build_attempts_lane(facts: TimelineFacts, begin: float, end: float) -> Lane | None:
    """Build the lane of attempts; None where there was but one."""
    if len(facts.attempts) < 2:
        return None
    attempts = sorted(facts.attempts, key=lambda each: each.number)
    segments = []
    for number, attempt in enumerate(attempts):
        following = attempts[number + 1].requested_at if number + 1 < len(attempts) else None
        segments.append(_build_attempt(attempt, following, begin, end, facts.is_over))
    return Lane("attempts", LaneKind.ATTEMPTS, "Attempts", segments=segments[-MOST_ATTEMPTS:])


def _build_attempt(
    attempt: AttemptFact,
    following: float | None,
    begin: float,
    end: float,
    is_workload_over: bool,
) -> Segment:
    is_over = is_workload_over or attempt.ended_at is not None or following is not None
    until = attempt.ended_at or following or end
    # Attempts never overlap: the clock that ended one may be ahead of that which began the next.
    until = until if following is None else min(until, following)
    label = get_status_label(attempt.status)
    by = f", asked for by {attempt.by}" if attempt.by else ""
    since = max(begin, attempt.requested_at)
    return Segment(
        since,
        max(since, min(end, until)),
        attempt.status,
        get_status_look(attempt.status),
        join_sentences(f"Attempt {attempt.number}{by}: {label}", attempt.reason),
        label=f"Attempt {attempt.number}",
        is_open=not is_over and attempt.status not in RESTING,
    )


def build_changes_lane(facts: TimelineFacts) -> Lane | None:
    """Build the lane of pods that were taken or came; None where there was nothing of it."""
    if not facts.pod_changes:
        return None
    marks = [
        Mark(each.at, MarkKind.TAKEN if each.is_loss else MarkKind.GROWN, cut_text(each.text))
        for each in sorted(facts.pod_changes, key=lambda each: each.at)
    ]
    return Lane("pod-changes", LaneKind.POD_CHANGES, "Taken and given", marks=marks[-MOST_CHANGES:])


def build_finding_lanes(facts: TimelineFacts, begin: float, end: float) -> Iterator[Lane]:
    """Yield a lane for each kind of trouble that the radar found; troubles at once are one."""
    for (kind, title), findings in groupby(
        sorted(facts.findings, key=lambda each: (each.kind, each.title, each.began_at)),
        key=lambda each: (each.kind, each.title),
    ):
        merged = list(_merge_findings(list(findings), end))
        segments = [
            Segment(*span, kind, Tint.PURPLE, _describe_findings(group), group[0].title, is_open)
            for since, until, is_open, group in merged[-MOST_FINDINGS:]
            if (span := clip_segment(since, until, begin, end)) is not None
        ]
        yield Lane(f"finding-{kind}", LaneKind.FINDINGS, title, "radar", segments)


def _merge_findings(
    findings: Sequence[FindingFact], end: float
) -> Iterator[tuple[float, float, bool, Sequence[FindingFact]]]:
    """Yield spans of findings that overlap, whether the span lasts, and its findings."""
    group: list[FindingFact] = []
    until, is_open = 0.0, False
    for each in findings:
        if group and each.began_at > until:
            yield group[0].began_at, until, is_open, group
            group, until, is_open = [], 0.0, False
        group.append(each)
        until = max(until, end if each.ended_at is None else each.ended_at)
        is_open = is_open or each.ended_at is None
    if group:
        yield group[0].began_at, until, is_open, group


def _describe_findings(findings: Sequence[FindingFact]) -> str:
    rest = len(findings) - 1
    more = f"And {format_count(rest, 'other')} at the same time" if rest else ""
    room = cut_text(findings[0].text)
    return join_sentences(more, room) if rest else room


def build_training_lane(facts: TimelineFacts) -> Lane | None:
    """Build the lane of what logs told of the training; None where they told nothing."""
    marks = [
        Mark(each.at, each.kind, cut_text(each.text))
        for each in sorted(facts.logs, key=lambda each: each.at)
        if each.rank is None
    ]
    if not marks:
        return None
    return Lane("training", LaneKind.TRAINING, "Training", "from its logs", marks=marks)

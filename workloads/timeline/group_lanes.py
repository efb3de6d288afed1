"""Many ranks as few lanes: which are shown alone, and what the others do together. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from workloads.quantities import format_count
from workloads.timeline.facts import Outcome, TimelineFacts
from workloads.timeline.lanes import Lane, LaneKind, Mark, Segment
from workloads.timeline.looks import MarkKind, Tint
from workloads.timeline.pod_lanes import STATES, Position, count_unplaced_restarts, list_phases

COLUMNS = 32
"""Spans of a group that can be told apart."""
Counts = Counter[Tint]
_STATE_VERBS = {
    Tint.GREEN: ("runs", "run"),
    Tint.CYAN: ("starts", "start"),
    Tint.ORANGE: ("waits for a node", "wait for a node"),
}
_END_VERBS = {
    MarkKind.FAILED: ("failed", "failed"),
    MarkKind.TAKEN: ("was taken away", "were taken away"),
}
"""What is said of one, and of several."""


def choose_alone(
    positions: Sequence[Position], facts: TimelineFacts, most: int
) -> Sequence[Position]:
    """Return the positions that get a lane of their own where there are too many.

    The first of all, then those with trouble: what failed first comes first.
    """
    with_findings = {each.rank for each in facts.findings if each.rank is not None}
    troubled = [each for each in positions[1:] if _has_trouble(each, with_findings)]
    troubled.sort(key=lambda each: (_find_first_failure(each), each.order))
    chosen = {each.key for each in [*positions[:1], *troubled[: most - 1]]}
    return [each for each in positions if each.key in chosen]


def _has_trouble(position: Position, with_findings: Collection[int]) -> bool:
    return position.rank in with_findings or any(
        pod.outcome in (Outcome.FAILED, Outcome.TAKEN) or pod.restart_count or pod.is_stuck
        for pod in position.pods
    )


def _find_first_failure(position: Position) -> float:
    return min(
        (
            pod.ended_at
            for pod in position.pods
            if pod.outcome is Outcome.FAILED and pod.ended_at is not None
        ),
        default=float("inf"),
    )


def build_group_lanes(
    positions: Sequence[Position], most: int, begin: float, end: float
) -> Iterator[Lane]:
    """Yield at most so many lanes, each of positions that follow each other."""
    size = max(1, -(-len(positions) // most))
    for first in range(0, len(positions), size):
        yield _build_group(positions[first : first + size], begin, end)


def _build_group(positions: Sequence[Position], begin: float, end: float) -> Lane:
    pods = [pod for position in positions for pod in position.pods]
    ranks = [each.rank for each in positions if each.rank is not None]
    first, last = (ranks[0], ranks[-1]) if len(ranks) == len(positions) else (None, None)
    restarts = count_unplaced_restarts(pods)
    notes = (
        f"{len(positions):,} together" if len(positions) > 1 else "",
        format_count(restarts, "restart") if restarts else "",
    )
    return Lane(
        f"group-{positions[0].key}",
        LaneKind.GROUP,
        _name_group(positions, first, last),
        ", ".join(filter(None, notes)),
        list(_list_segments(positions, begin, end)),
        list(_list_marks(positions, begin, end)),
        first_rank=first,
        last_rank=last,
    )


def _name_group(positions: Sequence[Position], first: int | None, last: int | None) -> str:
    if first is not None and last is not None:
        return f"Ranks {first:,} to {last:,}" if last > first else f"Rank {first:,}"
    titles = (positions[0].title, positions[-1].title)
    return titles[0] if titles[0] == titles[1] else f"{titles[0]} to {titles[1]}"


def _list_segments(positions: Sequence[Position], begin: float, end: float) -> Iterator[Segment]:
    """Yield what the positions do together, each time that it changes, in so many columns."""
    spans = list(_merge_columns(_sum_phases(positions, end), begin, end))
    total = len(positions)
    for number, (since, counts) in enumerate(spans):
        until = spans[number + 1][0] if number + 1 < len(spans) else end
        if not counts or until <= since:
            continue
        running = counts[Tint.GREEN]
        others = [look for look in counts if look is not Tint.GREEN]
        rest = max(others, key=counts.__getitem__, default=None)
        look = Tint.GREEN if running else rest
        assert look is not None
        number_of_look = running or counts[look]
        yield Segment(
            since,
            until,
            STATES[look],
            look,
            _describe_counts(counts, total),
            is_open=until >= end,
            share=number_of_look / total,
            rest=rest if running and rest is not None else None,
        )


def _sum_phases(positions: Sequence[Position], end: float) -> Sequence[tuple[float, Counts]]:
    """Return the moments at which counts of what pods do change, with the counts since then."""
    changes: dict[float, Counter[Tint]] = {}
    for position in positions:
        for pod in position.pods:
            for phase in list_phases(pod, end):
                changes.setdefault(phase.begin, Counter())[phase.look] += 1
                changes.setdefault(phase.end, Counter())[phase.look] -= 1
    summed = []
    counts: Counts = Counter()
    for at in sorted(changes):
        for look, change in changes[at].items():
            counts[look] += change
        # A unary plus drops what is not there any more.
        counts = +counts
        summed.append((at, Counter(counts)))
    return summed


def _merge_columns(
    changes: Sequence[tuple[float, Counts]], begin: float, end: float
) -> Iterator[tuple[float, Counts]]:
    """Yield changes, of several within one column the last."""
    width = max(end - begin, 1.0) / COLUMNS
    pending: tuple[float, Counts] | None = None
    for at, counts in changes:
        # All that goes on is cut at the end of the picture, which is no change.
        if at >= end:
            break
        is_same = pending is not None and int((at - begin) / width) == int(
            (pending[0] - begin) / width
        )
        if pending is not None and not is_same:
            yield pending
        pending = (pending[0] if is_same and pending is not None else max(begin, at), counts)
    if pending is not None:
        yield pending


def _describe_counts(counts: Counts, total: int) -> str:
    if total == 1:
        return next(f"It {verb}." for look, (verb, _) in _STATE_VERBS.items() if counts[look])
    parts = [
        f"{'all ' if counts[look] == total else ''}{_describe_count(counts[look], *verbs)}"
        for look, verbs in _STATE_VERBS.items()
        if counts[look]
    ]
    absent = total - sum(counts.values())
    absence = f", {_describe_count(absent, 'is', 'are')} not there" if absent > 0 else ""
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}{absence}."


def _describe_count(number: int, one: str, several: str) -> str:
    """Return a number with its verb: "1 runs", "1,200 run"."""
    return f"{number:,} {one if number == 1 else several}"


def _list_marks(positions: Sequence[Position], begin: float, end: float) -> Iterator[Mark]:
    """Yield one mark for all pods of a column that ended in the same way."""
    width = max(end - begin, 1.0) / COLUMNS
    ends: dict[tuple[int, MarkKind], list[float]] = {}
    kinds = {Outcome.FAILED: MarkKind.FAILED, Outcome.TAKEN: MarkKind.TAKEN}
    for position in positions:
        for pod in position.pods:
            if pod.outcome in kinds and pod.ended_at is not None and begin <= pod.ended_at <= end:
                column = int((pod.ended_at - begin) / width)
                ends.setdefault((column, kinds[pod.outcome]), []).append(pod.ended_at)
    for (_, kind), moments in sorted(ends.items()):
        one, several = _END_VERBS[kind]
        text = (
            f"1 pod {one}."
            if len(moments) == 1
            else f"{len(moments):,} pods {several}, the first at this moment."
        )
        yield Mark(min(moments), kind, text)

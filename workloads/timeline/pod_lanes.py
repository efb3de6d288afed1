"""The lanes of ranks: each with its pods one after another, and what happened to them. Pure."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from workloads.timeline.facts import Outcome, PodFact, TimelineFacts
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

END_MARKS = {
    Outcome.SUCCEEDED: MarkKind.SUCCEEDED,
    Outcome.FAILED: MarkKind.FAILED,
    Outcome.TAKEN: MarkKind.TAKEN,
    Outcome.REMOVED: MarkKind.REMOVED,
}
_END_WORDS = {
    Outcome.SUCCEEDED: "ended well",
    Outcome.FAILED: "failed",
    Outcome.TAKEN: "was taken away",
    Outcome.REMOVED: "was removed",
}


@dataclass(slots=True)
class Position:
    """A place in the job, as rank 3, with the pods that had it one after another."""

    key: str
    title: str
    note: str
    rank: int | None
    is_data_worker: bool
    pods: list[PodFact] = field(default_factory=list)

    @property
    def order(self) -> tuple[bool, bool, int, str]:
        """What positions are sorted by: ranks first, data workers last."""
        return (self.is_data_worker, self.rank is None, self.rank or 0, self.title)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a pod's life, from `begin` to `end`."""

    begin: float
    end: float
    look: Tint


def list_positions(pods: Iterable[PodFact]) -> list[Position]:
    """Return the positions of these pods, ranks first.

    Pods without a rank and index share one where they did not exist at the same time.
    """
    positions: dict[str, Position] = {}
    loose: list[PodFact] = []
    for pod in pods:
        if pod.rank is None and pod.index is None:
            loose.append(pod)
            continue
        position = _build_position(pod)
        positions.setdefault(position.key, position).pods.append(pod)
    for position in _pack_pods(loose):
        positions[position.key] = position
    for position in positions.values():
        position.pods.sort(key=lambda pod: (pod.attempt, find_begin(pod) or 0.0))
    return sorted(positions.values(), key=lambda each: each.order)


def _build_position(pod: PodFact) -> Position:
    role = f"{pod.role} {pod.index}" if pod.role and pod.index is not None else pod.role
    role = role.replace("data-worker", "data worker")
    if pod.rank is None or pod.is_data_worker:
        title = f"{role[:1].upper()}{role[1:]}" or f"Pod {pod.index}"
        return Position(f"{pod.role}-{pod.index}", title, "", None, pod.is_data_worker)
    return Position(f"rank-{pod.rank}", f"Rank {pod.rank}", role, pod.rank, False)


def _pack_pods(pods: Iterable[PodFact]) -> Iterator[Position]:
    """Yield as few positions for pods as existed at once, each with pods that follow."""
    taken: list[tuple[float, int]] = []
    free: list[int] = []
    packed: list[Position] = []
    for pod in sorted(pods, key=lambda each: find_begin(each) or 0.0):
        begin = find_begin(pod) or 0.0
        while taken and taken[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            place = heapq.heappop(free)
        else:
            place = len(packed)
            packed.append(Position(f"pod-{place}", f"Pod {place + 1}", "", None, False))
        end = float("inf") if pod.ended_at is None else pod.ended_at
        heapq.heappush(taken, (end, place))
        packed[place].pods.append(pod)
    if len(packed) == 1:
        packed[0].title = "Pod"
    return iter(packed)


def find_begin(pod: PodFact) -> float | None:
    """Return the first moment that is known of a pod: the API server's where it has one.

    The others are the node's, whose clock may be anything.
    """
    if pod.created_at is not None:
        return pod.created_at
    starts = [at for at in (pod.started_at, pod.running_at) if at is not None]
    return min(starts, default=None)


def list_phases(pod: PodFact, end: float) -> Iterator[Phase]:
    """Yield what a pod did one after another until it ended, or until `end`."""
    until = end if pod.ended_at is None else min(end, pod.ended_at)
    begin = find_begin(pod)
    if begin is None:
        return
    node_at = pod.started_at
    if node_at is None:
        # It never came to a node, as far as is known; a program that ran had one.
        node_at = pod.running_at if pod.running_at is not None else until
    node_at = min(max(begin, node_at), until)
    run_at = _find_run(pod, node_at, until)
    for since, then, look in (
        (begin, node_at, Tint.ORANGE),
        (node_at, run_at, Tint.CYAN),
        (run_at, until, Tint.GREEN),
    ):
        if then > since:
            yield Phase(since, then, look)


def _find_run(pod: PodFact, node_at: float, until: float) -> float:
    """Return since when a pod counts as running; `until` where it has not come so far.

    Of one that has ended, and whose program's beginning is not known, since it had its node.
    """
    if pod.running_at is not None:
        return min(max(node_at, pod.running_at), until)
    return until if pod.is_stuck or pod.outcome is Outcome.ALIVE else node_at


def build_pod_lane(
    position: Position, facts: TimelineFacts, begin: float, end: float, most_parts: int
) -> Lane:
    """Build the lane of one position: its newest segments, and as many marks."""
    segments = [
        segment for pod in position.pods for segment in _list_segments(pod, facts, begin, end)
    ]
    marks = sorted(_list_marks(position, facts), key=lambda each: each.at)
    marks = [each for each in marks if begin <= each.at <= end]
    return Lane(
        position.key,
        LaneKind.RANK,
        position.title,
        position.note,
        segments[-most_parts:],
        marks[-most_parts:],
        first_rank=position.rank,
        last_rank=position.rank,
        hidden_count=sum(max(0, len(each) - most_parts) for each in (segments, marks)),
    )


def _list_segments(
    pod: PodFact, facts: TimelineFacts, begin: float, end: float
) -> Iterator[Segment]:
    for phase in list_phases(pod, end):
        span = clip_segment(phase.begin, phase.end, begin, end)
        if span is None:
            continue
        is_open = pod.ended_at is None and span[1] >= end and not facts.is_over
        text = _describe(pod, phase, facts)
        yield Segment(*span, STATES[phase.look], phase.look, text, is_open=is_open)


STATES = {Tint.ORANGE: "waiting", Tint.CYAN: "starting", Tint.GREEN: "running"}


def _describe(pod: PodFact, phase: Phase, facts: TimelineFacts) -> str:
    attempt = f" of attempt {pod.attempt}" if facts.attempt > 1 else ""
    where = f" on {pod.node}" if pod.node and phase.look is not Tint.ORANGE else ""
    words = {Tint.ORANGE: "waits for a node", Tint.CYAN: "starts"}.get(phase.look, "runs")
    is_last = pod.ended_at is None and phase.look is not Tint.GREEN
    why = pod.reason or (pod.status if pod.is_stuck else "")
    return join_sentences(f"{pod.name}{attempt} {words}{where}", why if is_last else "")


def _list_marks(position: Position, facts: TimelineFacts) -> Iterator[Mark]:
    for pod in position.pods:
        yield from (
            Mark(each.at, MarkKind.RESTART, cut_text(f"{pod.name}: {each.text}"))
            for each in pod.restarts
        )
        if pod.ended_at is not None and pod.outcome is not Outcome.ALIVE:
            yield Mark(pod.ended_at, END_MARKS[pod.outcome], _describe_end(pod))
    if position.rank is None:
        return
    yield from (
        Mark(each.began_at, MarkKind.FINDING, cut_text(f"{each.title}: {each.text}"))
        for each in facts.findings
        if each.rank == position.rank
    )
    yield from (
        Mark(each.at, each.kind, cut_text(each.text))
        for each in facts.logs
        if each.rank == position.rank
    )


def _describe_end(pod: PodFact) -> str:
    status = pod.status if pod.outcome is Outcome.FAILED and pod.status != "Failed" else ""
    how = f"{pod.name} {_END_WORDS[pod.outcome]}{f': {status}' if status else ''}"
    return join_sentences(how, pod.reason if pod.outcome is Outcome.FAILED else "")


def count_unplaced_restarts(pods: Sequence[PodFact]) -> int:
    """Count the restarts of these pods whose moments are not known."""
    return sum(max(0, pod.restart_count - len(pod.restarts)) for pod in pods)

"""How many pods a workload had over time, against what it asked for and its quota. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from workloads.quantities import format_count
from workloads.timeline.facts import PodFact, TimelineFacts
from workloads.timeline.lanes import Lane, LaneKind, Line, Segment
from workloads.timeline.looks import Tint

COLUMNS = 160
"""Steps that can be told apart."""
Steps = Sequence[tuple[float, int]]


def build_count_lane(facts: TimelineFacts, begin: float, end: float) -> Lane | None:
    """Build the lane of how many pods had a node over time; None before the first had."""
    steps = _merge_columns(_sum_pods(facts.pods), begin, end)
    if not steps:
        return None
    highest = _find_highest(steps, facts)
    of_those = "" if facts.are_all_pods else " of those read"
    return Lane(
        "pod-count",
        LaneKind.POD_COUNT,
        "Pods",
        f"at most {max(count for _, count in steps):,}{of_those}",
        list(_list_segments(steps, facts, highest, end)),
        lines=list(_list_lines(facts, highest)),
    )


def _sum_pods(pods: Sequence[PodFact]) -> Steps:
    changes: Counter[float] = Counter()
    for pod in pods:
        if pod.started_at is None or pod.is_data_worker:
            continue
        changes[pod.started_at] += 1
        if pod.ended_at is not None:
            # Clocks of nodes differ: nobody ends before the start.
            changes[max(pod.started_at, pod.ended_at)] -= 1
    steps, count = [], 0
    for at, change in sorted(changes.items()):
        count += change
        steps.append((at, max(0, count)))
    return steps


def _merge_columns(steps: Steps, begin: float, end: float) -> Steps:
    """Return at most two steps of each column: the one that differs most, and the last."""
    width = max(end - begin, 1.0) / COLUMNS
    merged: list[tuple[float, int]] = []
    column: list[tuple[float, int]] = []
    for step in steps:
        if column and int((step[0] - begin) / width) != int((column[0][0] - begin) / width):
            merged += _pick_steps(column, merged[-1][1] if merged else 0)
            column = []
        column.append(step)
    return [*merged, *_pick_steps(column, merged[-1][1] if merged else 0)]


def _pick_steps(column: Steps, before: int) -> Steps:
    if len(column) <= 2:
        return column
    farthest = max(column[:-1], key=lambda step: abs(step[1] - before))
    return [farthest, column[-1]]


def _find_highest(steps: Steps, facts: TimelineFacts) -> int:
    """Return what the top of the lane is; a quota far above would press all to the ground."""
    bounds = facts.bounds
    highest = max(
        [count for _, count in steps]
        + [each for each in (bounds.requested, bounds.least, bounds.most, 1) if each is not None]
    )
    if bounds.quota is not None and bounds.quota <= 2 * highest:
        highest = max(highest, bounds.quota)
    return highest


def _list_segments(
    steps: Steps, facts: TimelineFacts, highest: int, end: float
) -> Iterator[Segment]:
    for number, (at, count) in enumerate(steps):
        is_last = number + 1 == len(steps)
        until = end if is_last else steps[number + 1][0]
        if count and until > at:
            yield Segment(
                at,
                min(until, end),
                "pods",
                Tint.BLUE,
                f"{format_count(count, 'pod')} on nodes.",
                is_open=is_last and not facts.is_over,
                share=round(count / highest, 4),
            )


def _list_lines(facts: TimelineFacts, highest: int) -> Iterator[Line]:
    bounds = facts.bounds
    for name, count, words in (
        ("requested", bounds.requested if bounds.most is None else None, "asked for"),
        ("least", bounds.least, "minimum"),
        ("most", bounds.most, "maximum"),
        ("quota", bounds.quota, "room in the quota as it is now"),
    ):
        if count is not None and count <= highest:
            yield Line(name, round(count / highest, 4), f"{words}: {format_count(count, 'pod')}")

"""Builds the timeline of a workload out of what is known of it, within bounds. Pure."""

from collections.abc import Iterator, Sequence

from workloads.quantities import format_count
from workloads.timeline.count_lane import build_count_lane
from workloads.timeline.facts import TimelineFacts
from workloads.timeline.group_lanes import build_group_lanes, choose_alone
from workloads.timeline.lanes import Lane, Timeline
from workloads.timeline.pod_lanes import (
    Position,
    build_pod_lane,
    count_unplaced_restarts,
    find_begin,
    list_positions,
)
from workloads.timeline.rank_choice import RankChoice
from workloads.timeline.status_lanes import (
    build_attempts_lane,
    build_changes_lane,
    build_finding_lanes,
    build_status_lane,
    build_training_lane,
)

MOST_LANES = 32
"""Lanes of ranks of a workload that has no more."""
MOST_ALONE = 16
MOST_GROUPS = 12
"""Of one that has more: ranks with a lane each, and lanes of many ranks together."""
MOST_PARTS = 384
"""Segments, and as many marks, of all ranks with a lane each, who share them: 12 for each of 32."""
MOST_OF_LANE = 180
"""Segments, and as many marks, of one of them: 60 attempts with three phases each."""
TAIL = 0.03
"""Of the length: how long the last status of what is over stands in the picture."""
SHORTEST = 1.0
"""Seconds that the picture has at least."""
MOST_NAMED = 5
"""Attempts that a note names one by one."""


def build_timeline(facts: TimelineFacts, choice: RankChoice | None = None) -> Timeline:
    """Build the picture; with a choice only these ranks have lanes."""
    begin, end = _find_span(facts)
    positions = list_positions(facts.all_pods)
    chosen = [each for each in positions if each.rank in choice] if choice else positions
    lanes = [
        *_list_common_lanes(facts, begin, end),
        *_list_rank_lanes(chosen, facts, begin, end),
    ]
    hidden = sum(each.hidden_count for each in lanes)
    notes = [*facts.gaps, *_list_notes(facts, chosen, choice, hidden)]
    return Timeline(begin, end, facts.is_over, lanes, notes)


def choose_positions(facts: TimelineFacts, choice: RankChoice | None = None) -> list[Position]:
    """Return the positions that get a lane of their own: more has to be known of their pods."""
    positions = list_positions(facts.all_pods)
    chosen = [each for each in positions if each.rank in choice] if choice else positions
    return list(_split_positions(chosen, facts)[0])


def _find_span(facts: TimelineFacts) -> tuple[float, float]:
    """Return the first and the last moment of the picture."""
    begins = [facts.created_at, *(each.at for each in facts.changes)]
    begin = min([*begins, *(at for pod in facts.all_pods if (at := find_begin(pod)) is not None)])
    if not facts.is_over:
        return begin, max(facts.now, begin + SHORTEST)
    last = max(
        facts.status_at,
        *begins,
        *(pod.ended_at for pod in facts.pods if pod.ended_at is not None),
        *(each.ended_at for each in facts.attempts if each.ended_at is not None),
        *(each.at for each in facts.pod_changes),
    )
    # Moments of a cluster whose clock is ahead would lie in the future.
    last = min(last, max(facts.now, begin))
    return begin, max(begin + SHORTEST, last + TAIL * (last - begin))


def _list_common_lanes(facts: TimelineFacts, begin: float, end: float) -> Iterator[Lane]:
    yield build_status_lane(facts, begin, end)
    for lane in (
        build_attempts_lane(facts, begin, end),
        build_count_lane(facts, begin, end),
        build_changes_lane(facts),
        *build_finding_lanes(facts, begin, end),
        build_training_lane(facts),
    ):
        if lane is not None:
            yield lane


def _split_positions(
    positions: Sequence[Position], facts: TimelineFacts
) -> tuple[Sequence[Position], Sequence[Position]]:
    """Return the positions with a lane each, and those that are shown together."""
    if len(positions) <= MOST_LANES:
        return positions, ()
    alone = choose_alone(positions, facts, MOST_ALONE)
    keys = {each.key for each in alone}
    return alone, [each for each in positions if each.key not in keys]


def _list_rank_lanes(
    positions: Sequence[Position], facts: TimelineFacts, begin: float, end: float
) -> Iterator[Lane]:
    alone, together = _split_positions(positions, facts)
    most_parts = _share_parts(len(alone))
    yield from (build_pod_lane(each, facts, begin, end, most_parts) for each in alone)
    ranked = [each for each in together if not each.is_data_worker]
    data_workers = [each for each in together if each.is_data_worker]
    most = MOST_GROUPS - 1 if ranked and data_workers else MOST_GROUPS
    yield from build_group_lanes(ranked, most, begin, end)
    yield from build_group_lanes(data_workers, 1, begin, end)


def _share_parts(lanes: int) -> int:
    """Return how many segments, and marks, each of so many lanes of ranks has at most."""
    return min(MOST_OF_LANE, MOST_PARTS // max(1, lanes))


def _list_notes(
    facts: TimelineFacts, chosen: Sequence[Position], choice: RankChoice | None, hidden: int
) -> Iterator[str]:
    """Yield what is not shown; `hidden` is the number of segments and marks left out of lanes."""
    if choice and not chosen:
        yield f"No pod with rank {choice} is known."
    yield from _describe_attempts_without_pods(facts)
    alone, together = _split_positions(chosen, facts)
    if hidden:
        most_parts = _share_parts(len(alone))
        more = " Choose fewer ranks to see more of each." if len(alone) > 1 else ""
        yield (
            f"Of each rank the newest {most_parts} spans, and as many marks, are drawn: "
            f"{format_count(hidden, 'earlier one')} {'is' if hidden == 1 else 'are'} not.{more}"
        )
    restarts = sum(count_unplaced_restarts(each.pods) for each in alone)
    if restarts:
        yield f"When {format_count(restarts, 'other restart')} happened is not known."
    if together:
        count = f"{len(chosen):,} ranks"
        ranks = f"its {count}" if facts.are_all_pods else f"the {count} that were read,"
        yield (
            f"Of {ranks} the first and those with trouble, at most {MOST_ALONE}, have a lane of "
            "their own. The others are shown together; their lanes lead to them."
        )
    if any(find_begin(pod) is None for position in chosen for pod in position.pods):
        yield "Of some pods it is not known when they existed."


def _describe_attempts_without_pods(facts: TimelineFacts) -> Iterator[str]:
    """Yield of which attempts pods are not known any more, and of which they were not read."""
    attempts_with_pods = {pod.attempt for pod in facts.pods}
    # The newest attempts are read first: what is older than all that was read is not lost.
    first_read = 0 if facts.are_all_pods else min(attempts_with_pods, default=0)
    started = sorted(each.number for each in facts.attempts if each.started_at is not None)
    unread = [str(number) for number in started if number < first_read]
    lost_attempts = [
        str(number)
        for number in started
        if number >= first_read and number not in attempts_with_pods
    ]
    if unread:
        yield f"The other pods of {_name_attempts(unread)} were not read."
    if lost_attempts:
        yield f"No pods are known any more of {_name_attempts(lost_attempts)}."


def _name_attempts(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return f"attempt {numbers[0]}"
    if len(numbers) > MOST_NAMED:
        return f"{len(numbers):,} attempts, {numbers[0]} to {numbers[-1]} among them"
    return f"attempts {', '.join(numbers[:-1])} and {numbers[-1]}"

"""A past that is played again: who starts when, with other quotas and other nodes."""

from collections.abc import Mapping, Sequence

import pytest

from scheduling import GPU, Bound, ClusterState, Gang, Node, Pod, PodShape, Preemptibility, Queue
from simulation.history import replay_history

ONE, TWO = PodShape({GPU: 1}), PodShape({GPU: 2})
HOUR = 3600.0


def build_gang(
    key: str,
    at: float,
    queue: str = "a",
    shape: PodShape = TWO,
    pods: int = 1,
    preemptibility: Preemptibility = Preemptibility.NON_PREEMPTIBLE,
) -> Gang:
    members = [Pod(f"{key}-{number}", shape, number) for number in range(pods)]
    return Gang(key, queue, members, pods, preemptibility=preemptibility, created_at=at)


def build_state(
    gangs: Sequence[Gang], quotas: Mapping[str, int], nodes: Sequence[int] = (4,)
) -> ClusterState:
    return ClusterState(
        0.0,
        [Node(f"node-{number}", {GPU: gpus}) for number, gpus in enumerate(nodes)],
        [Queue(name, "", {GPU: Bound(quota, None, 1)}) for name, quota in quotas.items()],
        gangs,
    )


def replay(
    state: ClusterState, lengths: Mapping[str, float] | float = HOUR, end: float = 100 * HOUR
) -> Mapping[str, float]:
    if isinstance(lengths, float):
        lengths = {gang.key: lengths for gang in state.gangs}
    return replay_history(state, lengths, end=end, step=0.0).starts


def test_work_starts_when_it_comes_and_there_is_room() -> None:
    gangs = [build_gang("first", 100.0), build_gang("second", 50.0)]
    assert replay(build_state(gangs, {"a": 4})) == {"second": 50.0, "first": 100.0}


def test_who_finds_no_room_starts_when_another_ends() -> None:
    gangs = [build_gang(f"g{number}", 10.0 * number) for number in range(4)]
    starts = replay(build_state(gangs, {"a": 4}))
    assert starts == {"g0": 0.0, "g1": 10.0, "g2": HOUR, "g3": HOUR + 10}


def test_a_gang_starts_whole() -> None:
    gangs = [build_gang("small", 0.0), build_gang("whole", 1.0, shape=ONE, pods=4)]
    assert replay(build_state(gangs, {"a": 4})) == {"small": 0.0, "whole": HOUR}


def test_what_comes_later_requests_nothing_before() -> None:
    """Fair shares are of what is there: else its queue would be owed what nobody wants yet."""
    preemptible = Preemptibility.PREEMPTIBLE
    gangs = [
        *(build_gang(f"a{n}", float(n), preemptibility=preemptible) for n in range(2)),
        build_gang("b", 10 * HOUR, "b", preemptibility=preemptible),
    ]
    starts = replay(build_state(gangs, {"a": 2, "b": 2}))
    assert starts == {"a0": 0.0, "a1": 1.0, "b": 10 * HOUR}


def test_more_quota_shortens_one_wait_and_lengthens_another() -> None:
    gangs = [
        build_gang(f"{queue}{number}", float(number), queue)
        for queue in "ab"
        for number in range(6)
    ]
    even = replay(build_state(gangs, {"a": 2, "b": 2}))
    uneven = replay(build_state(gangs, {"a": 4, "b": 0}))
    assert max(uneven[key] for key in uneven if key[0] == "a") < max(
        even[key] for key in even if key[0] == "a"
    )
    assert "b0" in even
    assert "b0" not in uneven


def test_who_has_the_quota_takes_back_what_others_borrowed() -> None:
    preemptible = Preemptibility.PREEMPTIBLE
    gangs = [
        build_gang("borrowed", 0.0, "b", preemptibility=preemptible),
        build_gang("own", 1.0, "b", preemptibility=preemptible),
        build_gang("claim", 60.0, "a", preemptibility=preemptible),
    ]
    starts = replay(build_state(gangs, {"a": 2, "b": 2}))
    assert starts["claim"] == 60.0


def test_a_node_more_shortens_the_wait() -> None:
    gangs = [build_gang(f"g{number}", 0.0) for number in range(4)]
    assert max(replay(build_state(gangs, {"a": 8})).values()) == HOUR
    assert max(replay(build_state(gangs, {"a": 8}, nodes=(4, 4))).values()) == 0.0


def test_what_never_ends_holds_its_room_to_the_end() -> None:
    gangs = [build_gang("endless", 0.0, pods=2), build_gang("waits", 5.0)]
    assert replay(build_state(gangs, {"a": 4}), {"waits": 1.0}) == {"endless": 0.0}


def test_what_came_before_is_there_at_the_begin() -> None:
    gangs = [build_gang("old", -500.0), build_gang("new", 5.0, pods=2)]
    assert replay(build_state(gangs, {"a": 4})) == {"old": 0.0, "new": HOUR}


def test_nothing_starts_at_the_end_or_after() -> None:
    gangs = [build_gang("g", 10.0)]
    assert replay(build_state(gangs, {"a": 4}), end=10.0) == {}


def test_moments_within_a_step_are_one() -> None:
    gangs = [build_gang("g0", 0.0), build_gang("g1", 20.0), build_gang("g2", 40.0)]
    state = build_state(gangs, {"a": 8}, nodes=(8,))
    found = replay_history(state, {}, end=HOUR, step=30.0)
    assert found.moments == 2
    assert found.starts == {"g0": 20.0, "g1": 20.0, "g2": 40.0}


def test_it_says_how_far_it_came() -> None:
    state = build_state([build_gang("g", 10.0)], {"a": 4})
    assert replay_history(state, {}, end=HOUR).until == HOUR
    found = replay_history(state, {}, end=HOUR, most_seconds=0.0)
    assert found.until == 0.0
    assert not found.starts


def test_the_same_past_gives_the_same_answer() -> None:
    gangs = [
        build_gang(f"g{n}", 7.0 * n, "ab"[n % 2], ONE, 1 + n % 4, Preemptibility.PREEMPTIBLE)
        for n in range(60)
    ]
    lengths = {gang.key: 100.0 + 13 * number for number, gang in enumerate(gangs)}
    state = build_state(gangs, {"a": 3, "b": 1})
    assert replay(state, lengths) == replay(state, lengths)
    assert replay(state, lengths).keys() == lengths.keys()


@pytest.mark.parametrize("queue", ["gone", ""])
def test_a_gang_of_no_queue_never_starts(queue: str) -> None:
    gangs = [build_gang("lost", 0.0, queue), build_gang("g", 1.0)]
    assert replay(build_state(gangs, {"a": 4})) == {"g": 1.0}

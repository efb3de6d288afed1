"""When elastic workloads get more workers, and when fewer: the rules as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from scheduling import ClusterState, Preemptibility, decide
from tests.workloads.growing import (
    NOW,
    TIMES,
    build_gang,
    build_job,
    build_nodes,
    build_queues,
    build_state,
)
from workloads.elastic.scale_rules import (
    ElasticJob,
    ScaleChoice,
    ScaleTimes,
    calculate_pause,
    choose_workers,
    count_kept_workers,
    count_room,
)


def choose(state: ClusterState, *jobs: ElasticJob) -> ScaleChoice:
    return choose_workers(jobs, lambda: state, decide, now=NOW, times=TIMES)


def one_job(free: int = 3, quota: int | None = 4, **given: Any) -> ClusterState:
    """A job with one pod, and so many more GPUs."""
    return build_state(
        build_nodes(1 + free),
        build_queues({"a": quota, "b": 2}),
        build_gang("job", "a", {"node-0": 1}, **given),
    )


def test_it_grows_to_its_maximum_where_there_is_room() -> None:
    choice = choose(one_job(), build_job())
    assert choice.workers == {"job": 4}
    assert (choice.with_room, choice.without_room) == ({"job"}, set())


@pytest.mark.parametrize(
    ("free", "quota", "expected"),
    [
        (1, 4, {"job": 2}),
        (0, 4, {}),
        (9, 4, {"job": 4}),
        (3, None, {"job": 4}),
        # Nobody else wants what is over its quota.
        (3, 1, {"job": 4}),
    ],
)
def test_it_grows_as_far_as_nodes_and_quota_have_room(
    free: int, quota: int | None, expected: Mapping[str, int]
) -> None:
    assert choose(one_job(free, quota), build_job()).workers == expected


def test_a_limit_holds() -> None:
    state = build_state(
        build_nodes(4),
        build_queues({"a": 4}, limit=2),
        build_gang("job", "a", {"node-0": 1}),
    )
    assert choose(state, build_job()).workers == {"job": 2}


def test_work_that_keeps_what_it_has_grows_within_its_quota_only() -> None:
    """So it is on clusters where nobody takes anything back, too."""
    state = one_job(3, 2, preemptibility=Preemptibility.NON_PREEMPTIBLE)
    assert choose(state, build_job()).workers == {"job": 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"room_since": None},
        {"room_since": NOW - 59},
        {"scale_after": NOW + 1},
        {"is_complete": False},
        {"max_workers": 1},
    ],
)
def test_it_stays_as_it_is(changes: Mapping[str, Any]) -> None:
    assert choose(one_job(), build_job(**changes)).workers == {}


@pytest.mark.parametrize(
    ("give_ups", "pause"), [(0, 60), (1, 120), (2, 240), (5, 1920), (6, 3600), (10_000, 3600)]
)
def test_each_growth_that_was_given_up_doubles_the_next_pause(give_ups: int, pause: int) -> None:
    early = build_job(give_ups=give_ups, room_since=NOW - pause + 1)
    assert choose(one_job(), early).workers == {}
    assert choose(one_job(), early).with_room == {"job"}
    due = build_job(give_ups=give_ups, room_since=NOW - pause)
    assert choose(one_job(), due).workers == {"job": 4}


def test_the_pause_grows_without_one_to_begin_with_and_never_shortens_a_long_one() -> None:
    job = build_job(give_ups=1)
    assert calculate_pause(job, ScaleTimes(room=0, patience=300)) == 600
    assert calculate_pause(job, ScaleTimes(room=0, patience=0)) == 2
    assert calculate_pause(job, ScaleTimes(room=7200, patience=300)) == 7200


def test_workers_are_given_up_as_soon_as_ever_however_often_they_were() -> None:
    job = build_job(workers=2, used=1, waiting={1: NOW - 300}, give_ups=9)
    assert choose(one_job(), job).workers == {"job": 1}


@pytest.mark.parametrize(
    ("changes", "has_room"),
    [({"room_since": None}, True), ({"scale_after": NOW + 1}, False), ({"used": 1}, True)],
)
def test_it_is_known_since_when_there_is_room(
    changes: Mapping[str, Any], *, has_room: bool
) -> None:
    choice = choose(one_job(), build_job(**changes))
    assert ("job" in choice.with_room) is has_room
    assert ("job" in choice.without_room) is not has_room


def test_a_lost_node_gives_no_room() -> None:
    """Nodes that are not ready are not in the state; the pods on them still count for the queue."""
    state = build_state(
        build_nodes(1), build_queues({"a": 4}), build_gang("job", "a", {"node-0": 1, "node-9": 1})
    )
    assert choose(state, build_job(workers=2)).workers == {}


def test_what_another_queue_is_entitled_to_is_not_taken() -> None:
    """Two GPUs are free, and project b, which has none of its two, waits for both."""
    state = build_state(
        build_nodes(4),
        build_queues({"a": 2, "b": 2}),
        build_gang("job", "a", {"node-0": 2}, min_member=1),
        build_gang("theirs", "b", {}, waiting=2),
    )
    assert choose(state, build_job(workers=2)).workers == {}


def test_nothing_is_added_that_would_be_taken_back_at_once() -> None:
    """One GPU is free. Project b waits for two of its quota and would take the second one back."""
    state = build_state(
        build_nodes(3),
        build_queues({"a": 1, "b": 2}),
        build_gang("job", "a", {"node-0": 2}, min_member=1),
        build_gang("theirs", "b", {}, waiting=2),
    )
    assert choose(state, build_job(workers=2)).workers == {}


def test_it_takes_nothing_from_others() -> None:
    """Project a is within its quota and b over it: the scheduler would reclaim for waiting pods."""
    state = build_state(
        build_nodes(4),
        build_queues({"a": 4, "b": 0}),
        build_gang("job", "a", {"node-0": 1}),
        build_gang("theirs", "b", {"node-0": 3}, min_member=1, first_device=1),
    )
    assert choose(state, build_job()).workers == {}


def test_several_share_what_is_free_by_their_projects() -> None:
    """Four are free over nobody's quota; both projects have as much already."""
    state = build_state(
        build_nodes(6),
        build_queues({"a": 1, "b": 1}),
        build_gang("first", "a", {"node-0": 1}),
        build_gang("second", "b", {"node-0": 1}, first_device=1),
    )
    jobs = [build_job(key, max_workers=9) for key in ("first", "second")]
    assert choose(state, *jobs).workers == {"first": 3, "second": 3}


def test_in_one_project_the_older_goes_first() -> None:
    state = build_state(
        build_nodes(4),
        build_queues({"a": 4}),
        build_gang("young", "a", {"node-0": 1}, created_at=NOW - 10),
        build_gang("old", "a", {"node-0": 1}, created_at=NOW - 900, first_device=1),
    )
    jobs = [build_job("young", max_workers=3), build_job("old", max_workers=3)]
    assert choose(state, *jobs).workers == {"old": 3}


def test_many_are_tried_together() -> None:
    """The state stays bounded however far each may grow."""
    state = build_state(
        build_nodes(*[8] * 60),
        build_queues({"a": None}),
        *(build_gang(f"job-{each}", "a", {f"node-{each}": 1}) for each in range(50)),
    )
    jobs = [build_job(f"job-{each}", max_workers=10_000) for each in range(50)]
    room = count_room(state, jobs, decide)
    assert sum(room.values()) == 60 * 8 - 50


@pytest.mark.parametrize(
    ("workers", "used", "waiting", "min_workers", "expected"),
    [
        (4, 2, {2: 301, 3: 301}, 1, 2),
        (4, 2, {2: 301, 3: 299}, 1, 4),
        (4, 2, {2: 299, 3: 301}, 1, 3),
        # The minimum stays, whether it waits or not.
        (4, 1, {1: 999, 2: 999, 3: 999}, 3, 3),
        # A worker below one that has a node is not given up: the last ones would go first.
        (4, 4, {1: 999}, 1, 4),
        (4, 3, {1: 999, 3: 999}, 1, 3),
        # Its operator has not made worker 3 yet.
        (4, 2, {2: 999}, 1, 4),
        (4, 4, {}, 1, 4),
    ],
)
def test_workers_that_wait_too_long_are_given_up(
    workers: int, used: int, waiting: Mapping[int, float], min_workers: int, expected: int
) -> None:
    job = build_job(
        workers=workers,
        used=used,
        min_workers=min_workers,
        is_complete=False,
        waiting={index: NOW - seconds for index, seconds in waiting.items()},
    )
    assert count_kept_workers(job, NOW, TIMES) == expected
    choice = choose(one_job(), job)
    assert choice.workers == ({} if expected == workers else {"job": expected})


def test_it_is_not_lowered_again_at_once() -> None:
    job = build_job(workers=3, used=1, waiting={1: 0, 2: 0}, is_complete=False, scale_after=NOW + 1)
    assert choose(one_job(), job).workers == {}


def test_a_pause_that_began_before_the_clock_was_set_back_is_over() -> None:
    ahead = NOW + 86_400
    assert choose(one_job(), build_job(scale_after=ahead)).workers == {"job": 4}
    job = build_job(workers=3, used=1, waiting={1: 0, 2: 0}, is_complete=False, scale_after=ahead)
    assert choose(one_job(), job).workers == {"job": 1}
    # As long as it may be by the settings, it holds.
    long = ScaleTimes(room=86_400, patience=300)
    choice = choose_workers([job], one_job, decide, now=NOW, times=long)
    assert choice.workers == {}


def test_the_state_is_not_loaded_where_nobody_may_grow() -> None:
    def refuse() -> ClusterState:
        raise AssertionError("it was loaded")

    jobs: Sequence[ElasticJob] = [build_job(workers=4)]
    assert choose_workers(jobs, refuse, decide, now=NOW, times=TIMES) == ScaleChoice(
        {}, frozenset(), frozenset({"job"})
    )

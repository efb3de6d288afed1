"""Passes that look only at what has changed: what they owe to all others."""

from pathlib import Path

import pytest

from localkube.metadata import Object, annotations_of
from localkube.resources import JOBS, PYTORCHJOBS, QUEUES
from tests.localkube.scheduling import GPU, Bench
from tests.localkube.test_scheduler_evicting import (
    KAI,
    QUEUE,
    build_bench,
    let_leave,
    list_leaving,
    pass_time,
    start_elastic,
    start_rival,
)

DELAY = "kai.scheduler/preemption-delay"
MIN_MEMBER = "kai.scheduler/batch-min-member"
LAST_START = "kai.scheduler/last-start-timestamp"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return build_bench(tmp_path)


def protect(bench: Bench, queue: str, runtime: str) -> None:
    """Let the gangs of a queue keep their minimum for some time."""

    def change(obj: Object) -> None:
        obj["spec"]["reclaimMinRuntime"] = runtime

    bench.objects.modify(QUEUES, "", queue, change)


def test_who_waits_for_a_moment_takes_its_share_then_whatever_else_came_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = start_elastic(bench)
    start_rival(bench, annotations={DELAY: "2m"})
    bench.pod("other", {"cpu": "1"})
    bench.settle()
    assert "other" in bench.placed()
    assert list_leaving(bench) == set()

    pass_time(bench, monkeypatch, 180)
    assert list_leaving(bench) == set(names[2:])


def test_nobody_who_comes_later_gets_a_place_that_is_kept(bench: Bench) -> None:
    names = start_elastic(bench)
    bench.remove(names[3])
    rivals = start_rival(bench)
    assert list_leaving(bench) == {names[2]}

    bench.pod("late", {GPU: 1}, labels={QUEUE: "project-b"}, schedulerName=KAI)
    bench.settle()
    assert "late" not in bench.placed()
    assert not bench.read("late")["status"].get("nominatedNodeName")
    let_leave(bench)
    assert set(rivals) <= bench.placed()
    assert list_leaving(bench) == set()


def test_a_place_that_is_given_up_is_offered_to_all_who_wait(bench: Bench) -> None:
    start_elastic(bench)
    start_rival(bench, pods=1)
    leaving = list_leaving(bench)
    bench.pod("next", {GPU: 1}, labels={QUEUE: "project-a"}, schedulerName=KAI)
    bench.settle()
    assert not bench.read("next")["status"].get("nominatedNodeName")

    def demand_more(job: Object) -> None:
        job["metadata"]["annotations"][MIN_MEMBER] = "2"

    bench.objects.modify(JOBS, "default", "rival", demand_more)
    bench.settle()
    assert bench.read("next")["status"].get("nominatedNodeName")
    assert list_leaving(bench) == leaving


def test_a_job_that_needs_fewer_pods_gives_the_others_to_who_waits(bench: Bench) -> None:
    protect(bench, "project-a", "10h")
    job = bench.job("rigid", labels={QUEUE: "project-a"})
    policy = {"elasticPolicy": {"minReplicas": 3, "maxReplicas": 4}}
    bench.objects.modify(PYTORCHJOBS, "default", "rigid", lambda obj: obj["spec"].update(policy))
    names = list(bench.gang(job, {GPU: 1}, count=3, schedulerName=KAI))
    bench.pod("filler", {GPU: 1}, labels={QUEUE: "project-b"}, schedulerName=KAI)
    bench.settle()
    start_rival(bench, pods=1)
    assert list_leaving(bench) == set()

    def relax(obj: Object) -> None:
        obj["spec"]["elasticPolicy"]["minReplicas"] = 2

    bench.objects.modify(PYTORCHJOBS, "default", "rigid", relax)
    bench.settle()
    assert list_leaving(bench) == {names[2]}


@pytest.mark.parametrize("break_queue", ["delete", "child"])
def test_pods_of_a_queue_that_cannot_be_used_run_on_and_hold_up_nobody(
    bench: Bench, break_queue: str
) -> None:
    names = start_elastic(bench)
    if break_queue == "delete":
        bench.objects.delete(QUEUES, "", "project-a")
    else:
        bench.queue("below", parent="project-a")
    start_rival(bench)
    bench.pod("other", {"cpu": "1"})
    bench.settle()
    assert bench.placed() == {*names, "other"}
    assert list_leaving(bench) == set()
    assert "nvidia.com/gpu" in bench.condition("rival-0")["message"]


def test_a_start_that_a_workload_claims_for_the_future_protects_it_from_nothing(
    bench: Bench,
) -> None:
    protect(bench, "project-a", "1s")
    future = "2999-01-01T00:00:00Z"
    job = bench.job("sly", labels={QUEUE: "project-a"}, annotations={LAST_START: future})
    bench.gang(job, {GPU: 1}, count=3, schedulerName=KAI)
    bench.settle()
    assert annotations_of(bench.group("sly"))[LAST_START] < future

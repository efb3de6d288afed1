"""Queues: who may start how much, whose turn it is, and the numbers that a Queue's status shows."""

from pathlib import Path
from typing import Any

import pytest

from localkube.metadata import Object
from localkube.resources import QUEUES
from localkube.scheduler.queues import parse_queue
from tests.localkube.scheduling import GPU, Bench

QUEUE = "kai.scheduler/queue"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def pod(bench: Bench, name: str, queue: str, gpus: int = 1, **more: Any) -> None:
    labels = {QUEUE: queue} | more.pop("labels", {})
    bench.pod(name, {GPU: gpus}, labels=labels, **more)


def status(bench: Bench, queue: str) -> Object:
    return bench.objects.get(QUEUES, "", queue).get("status") or {}


def test_work_beyond_a_limit_waits_with_the_queues_numbers(bench: Bench) -> None:
    bench.queue("small", gpu={"limit": 2})
    pod(bench, "first", "small", 2)
    bench.settle()
    pod(bench, "second", "small", 1, schedulerName="kai-scheduler")
    bench.settle()

    assert bench.placed() == {"first"}
    reason = bench.reason("second")
    assert reason["reason"] == "OverLimit"
    text = (
        "small quota has reached the allowable limit of GPUs. Limit is 2 GPUs, currently 2 GPUs "
        "allocated and workload requested 1 GPUs"
    )
    assert reason["message"] == bench.condition("second")["message"] == text
    numbers = reason["details"]["queueDetails"]
    assert (
        numbers["name"],
        numbers["queueResourceLimits"],
        numbers["queueAllocatedResources"],
    ) == ("small", {GPU: "2"}, {GPU: "2"})


def test_a_limit_that_is_left_out_is_zero_for_what_is_asked(bench: Bench) -> None:
    bench.make(
        QUEUES,
        {
            "metadata": {"name": "bare"},
            "spec": {"parentQueue": "default-parent-queue", "resources": {"cpu": {"limit": -1}}},
        },
        "",
    )
    pod(bench, "device", "bare")
    bench.pod("nothing", labels={QUEUE: "bare"})
    bench.settle()

    assert bench.placed() == {"nothing"}


def test_a_parents_limit_holds_for_all_its_children(bench: Bench) -> None:
    bench.queue("parent", parent="", gpu={"limit": 3})
    for name in ("left", "right"):
        bench.queue(name, parent="parent")
        pod(bench, f"in-{name}", name, 2)
    bench.settle()

    assert len(bench.placed()) == 1
    assert status(bench, "parent")["requested"] == {GPU: "4"}
    assert status(bench, "parent")["allocated"] == {GPU: "2"}
    assert status(bench, "parent")["childQueues"] == ["left", "right"]


def test_work_that_cannot_be_preempted_stays_within_the_quota(bench: Bench) -> None:
    bench.queue("team", gpu={"quota": 1})
    pod(bench, "firm", "team", 2, priorityClassName="build", schedulerName="kai-scheduler")
    pod(bench, "soft", "team", 2)
    bench.settle()

    assert bench.placed() == {"soft"}
    reason = bench.reason("firm")
    assert reason["reason"] == "NonPreemptibleOverQuota"
    assert reason["message"] == (
        "Non-preemptible workload is over quota. Workload requested 2 GPUs, but team quota is 1 "
        "GPUs, "
        "while 0 GPUs are already allocated for non-preemptible pods. Use a preemptible workload "
        "to go over quota."
    )


def test_the_preemptibility_label_overrides_the_priority_class(bench: Bench) -> None:
    bench.queue("department", parent="", gpu={"quota": 1})
    bench.queue("team", parent="department", gpu={"quota": 1})
    pod(bench, "firm", "team", 1, labels={"kai.scheduler/preemptibility": "non-preemptible"})
    pod(
        bench,
        "also",
        "team",
        1,
        labels={"kai.scheduler/preemptibility": "preemptible"},
        priorityClassName="build",
    )
    bench.settle()

    assert bench.placed() == {"firm", "also"}
    assert status(bench, "team")["allocatedNonPreemptible"] == {GPU: "1"}


def test_a_high_priority_alone_keeps_no_pod_of_the_default_scheduler_within_a_quota(
    bench: Bench,
) -> None:
    bench.pod("high", {GPU: 1}, priorityClassName="inference")
    bench.settle()

    assert bench.placed() == {"high"}


def test_the_quota_of_a_parent_holds_for_firm_work_too(bench: Bench) -> None:
    bench.queue("team", gpu={"quota": 1})
    pod(bench, "firm", "team", 1, priorityClassName="build", schedulerName="kai-scheduler")
    bench.settle()

    assert "default-parent-queue quota is 0 GPUs" in bench.condition("firm")["message"]


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        ("nowhere", "Queue 'nowhere' does not exist"),
        (
            "default-parent-queue",
            (
                "Queue 'default-parent-queue' is not a leaf queue: pods run only in queues "
                "without child queues"
            ),
        ),
        ("orphan", "Queue 'orphan' cannot be used: its parent queue 'gone' does not exist"),
    ],
)
def test_pods_run_only_in_leaf_queues_whose_parents_exist(
    bench: Bench, queue: str, text: str
) -> None:
    bench.queue("orphan", parent="gone")
    pod(bench, "lost", queue)
    bench.settle()

    assert bench.placed() == set()
    assert bench.reason("lost") == {"reason": "QueueDoesNotExist", "message": text}


def test_a_pod_starts_when_its_queue_is_made(bench: Bench) -> None:
    pod(bench, "early", "later")
    bench.settle()
    bench.queue("later")
    bench.settle()

    assert bench.placed() == {"early"}
    assert bench.group("early")["status"]["schedulingConditions"] == []


def test_the_queue_within_its_quota_goes_before_one_beyond_it(bench: Bench) -> None:
    bench.queue("rich", gpu={"quota": 2})
    bench.queue("poor")
    pod(bench, "poor-1", "poor", 3)
    pod(bench, "rich-1", "rich", 2)
    bench.settle()

    assert bench.placed() == {"rich-1"}


def test_shares_beyond_the_quota_follow_the_weights(bench: Bench) -> None:
    bench.queue("heavy", gpu={"overQuotaWeight": 3})
    bench.queue("light", gpu={"overQuotaWeight": 1})
    for index in range(4):
        pod(bench, f"light-{index}", "light")
        pod(bench, f"heavy-{index}", "heavy")
    bench.settle()

    assert sorted(name.split("-")[0] for name in bench.placed()) == [
        "heavy",
        "heavy",
        "heavy",
        "light",
    ]


def test_the_queue_with_the_higher_priority_gets_what_is_beyond_quotas_first(bench: Bench) -> None:
    bench.queue("usual")
    bench.make(QUEUES, bench.objects.get(QUEUES, "", "usual") | {"metadata": {"name": "first"}}, "")

    def raise_priority(queue: Object) -> None:
        queue["spec"]["priority"] = 200

    bench.objects.modify(QUEUES, "", "first", raise_priority)
    pod(bench, "a", "usual", 3)
    pod(bench, "b", "first", 3)
    bench.settle()

    assert bench.placed() == {"b"}


def test_the_status_of_a_queue_is_in_cores_bytes_and_devices(bench: Bench) -> None:
    annotations, labels = {"gpu-fraction": "0.5"}, {QUEUE: "default-queue"}
    bench.pod("share", {"cpu": "1500m", "memory": "1536Mi"}, annotations=annotations, labels=labels)
    bench.settle()
    full = {"cpu": "1500m", "memory": "1536Mi", GPU: "500m"}
    assert status(bench, "default-queue") == {
        "requested": full,
        "allocated": full,
        "allocatedNonPreemptible": {},
    }

    bench.end("share")
    bench.settle()
    assert status(bench, "default-queue") == {
        "requested": {},
        "allocated": {},
        "allocatedNonPreemptible": {},
    }


def test_units_of_a_queues_spec_are_millicores_and_megabytes(bench: Bench) -> None:
    bench.queue("narrow", cpu={"limit": 1500}, memory={"limit": 1000})
    for name, requests in (
        ("cores", {"cpu": "1500m"}),
        ("bytes", {"memory": "1000M"}),
        ("more", {"cpu": "1m"}),
    ):
        bench.pod(name, requests, labels={QUEUE: "narrow"})
    bench.settle()

    assert bench.placed() == {"cores", "bytes"}


@pytest.mark.parametrize(
    ("given", "read"), [(1e300, 2**63 - 1), (10**80, 2**63 - 1), (-1e300, None), (1e-300, 0)]
)
def test_absurd_limits_are_none_or_more_than_there_is(
    bench: Bench, given: float, read: int | None
) -> None:
    queue = bench.queue("absurd", gpu={"quota": given, "limit": given})
    bound = parse_queue(queue).bounds[GPU]
    assert (bound.quota, bound.limit) == (read, read)


def test_a_weight_below_zero_is_zero(bench: Bench) -> None:
    queue = bench.queue("odd", gpu={"overQuotaWeight": -3})
    assert parse_queue(queue).bounds[GPU].weight == 0

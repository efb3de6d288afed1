"""Who gives way on a cluster: evictions, kept places, events, and what a restart finds."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from localkube import clock
from localkube.metadata import Object, annotations_of, find_condition, is_terminating
from localkube.resources import NODES, PODGROUPS, PODS, PYTORCHJOBS, QUEUES
from tests.localkube.scheduling import GPU, Bench

QUEUE = "kai.scheduler/queue"
KAI = "kai-scheduler"
GRACE = "kai.scheduler/staleness-grace-period"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return build_bench(tmp_path)


def build_bench(folder: Path) -> Bench:
    """Return four nodes of a device each, and two projects with two guaranteed devices."""
    bench = Bench(folder, gpus=1)
    for number in (1, 2, 3):
        name = f"node-{number}"
        bench.make(NODES, {"metadata": {"name": name}}, "")
        offer_devices(bench, name, 1)
    bench.queue("department", parent="", gpu={"quota": 4})
    for name in ("project-a", "project-b"):
        bench.queue(name, parent="department", gpu={"quota": 2})
    return bench


def offer_devices(bench: Bench, node: str, gpus: int) -> None:
    allocatable = {"cpu": "8", "memory": "32Gi", GPU: str(gpus), "pods": "100"}
    bench.objects.modify(
        NODES,
        "",
        node,
        lambda obj: obj.setdefault("status", {}).update(allocatable=allocatable),
        subresource="status",
    )


def start_elastic(bench: Bench, name: str = "elastic", **metadata: Any) -> list[str]:
    policy = {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 4}}
    labels = {QUEUE: "project-a"} | metadata.pop("labels", {})
    job = bench.job(name, policy, labels=labels, **metadata)
    names = list(bench.gang(job, {GPU: 1}, count=4, schedulerName=KAI))
    bench.settle()
    return names


def start_rival(bench: Bench, pods: int = 2, **spec: Any) -> list[str]:
    names = [f"rival-{index}" for index in range(pods)]
    annotations = {"kai.scheduler/batch-min-member": str(pods)} | spec.pop("annotations", {})
    labels = {QUEUE: "project-b"} | spec.pop("labels", {})
    job = bench.batch("rival", annotations=annotations, labels=labels)
    for name in names:
        bench.pod(name, {GPU: 1}, owner=job, schedulerName=KAI, **spec)
    bench.settle()
    return names


def list_leaving(bench: Bench) -> set[str]:
    return {pod["metadata"]["name"] for pod in bench.objects.list(PODS) if is_terminating(pod)}


def let_leave(bench: Bench) -> None:
    """Let the pods end that were evicted, as the kubelet would."""
    for name in list_leaving(bench):
        bench.remove(name)
    bench.settle()


def pass_time(bench: Bench, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later = clock.current_time() + timedelta(seconds=seconds)
    monkeypatch.setattr(clock, "current_time", lambda: later)
    # The loop would call again until the pass is over; on a busy machine it takes several slices.
    while bench.scheduler.reconcile(("", "")) == 0:
        pass
    bench.settle()


def test_an_elastic_job_shrinks_for_a_project_within_its_quota_and_grows_back(
    bench: Bench,
) -> None:
    names = start_elastic(bench)
    assert bench.placed() == set(names)
    nodes = {bench.read(name)["spec"]["nodeName"] for name in names}
    assert len(nodes) == 4

    rivals = start_rival(bench)
    assert list_leaving(bench) == set(names[2:])
    let_leave(bench)
    assert bench.placed() == {*names[:2], *rivals}

    for name in rivals:
        bench.end(name)
    for index, name in enumerate(names[2:], start=1):
        labels = {
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": str(index),
        }
        job = bench.objects.list(PYTORCHJOBS)[0]
        bench.pod(name, {GPU: 1}, owner=job, labels=labels, schedulerName=KAI)
    bench.settle()
    assert bench.placed() == set(names)


def test_an_evicted_pod_says_so_as_with_kai(bench: Bench) -> None:
    names = start_elastic(bench)
    start_rival(bench)

    pod = bench.read(names[3])
    condition = find_condition(pod["status"]["conditions"], "DisruptionTarget") or {}
    rival = bench.group("rival")["metadata"]["name"]
    text = f"Pod default/{names[3]} was preempted by workload default/{rival}."
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "PreemptionByScheduler",
        text,
    )
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    group = bench.group("elastic")["metadata"]["name"]
    events = [event for event in bench.events(group) if event["reason"] == "Evict"]
    assert {event["message"] for event in events} >= {text}
    assert all(event["type"] == "Normal" for event in events)
    assert annotations_of(events[0]) == {
        "num-evicted-pods": "2",
        "evictor-action-type": "reclaim",
        "evictor-pod-group-name": rival,
        "evictor-pod-group-namespace": "default",
    }


def test_who_waits_for_others_to_leave_says_for_whom(bench: Bench) -> None:
    start_elastic(bench)
    rivals = start_rival(bench)

    assert bench.placed().isdisjoint(rivals)
    pod = bench.read(rivals[0])
    assert pod["status"]["nominatedNodeName"]
    text = bench.condition(rivals[0])["message"]
    assert text.startswith("Waiting for 2 pods of default/pg-elastic-")
    (event,) = (each for each in bench.events(rivals[0]) if each["reason"] == "Pipelined")
    node = pod["status"]["nominatedNodeName"]
    assert event["message"] == f"Pod default/{rivals[0]} was pipelined to node {node}"
    assert not (bench.group("rival").get("status") or {}).get("schedulingConditions")

    let_leave(bench)
    assert "nominatedNodeName" not in bench.read(rivals[0])["status"]


def test_a_new_scheduler_keeps_the_place_and_evicts_nobody_again(bench: Bench) -> None:
    names = start_elastic(bench)
    rivals = start_rival(bench)
    bench.restart()
    bench.settle()

    assert list_leaving(bench) == set(names[2:])
    let_leave(bench)
    assert bench.placed() == {*names[:2], *rivals}


def test_work_within_its_quota_is_left_alone(bench: Bench) -> None:
    names = start_elastic(bench)
    start_rival(bench, pods=3)

    assert list_leaving(bench) == set()
    assert bench.placed() == set(names)


def test_the_default_scheduler_takes_nothing_and_gives_nothing(bench: Bench) -> None:
    for index in range(4):
        bench.pod(f"plain-{index}", {GPU: 1}, labels={QUEUE: "project-a"})
    bench.settle()
    start_rival(bench)

    assert list_leaving(bench) == set()
    assert len(bench.placed()) == 4


def test_a_minimum_run_time_protects_across_a_restart_until_it_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def protect(queue: Object) -> None:
        queue["spec"]["reclaimMinRuntime"] = "10m"

    bench.objects.modify(QUEUES, "", "project-a", protect)
    job = bench.job("rigid", labels={QUEUE: "project-a"})
    names = bench.gang(job, {GPU: 1}, count=3, schedulerName=KAI)
    bench.settle()
    started = annotations_of(bench.group("rigid"))["kai.scheduler/last-start-timestamp"]
    start_rival(bench)
    assert list_leaving(bench) == set()

    bench.restart()
    bench.settle()
    assert annotations_of(bench.group("rigid"))["kai.scheduler/last-start-timestamp"] == started
    assert list_leaving(bench) == set()

    pass_time(bench, monkeypatch, 660)
    assert list_leaving(bench) == set(names)


def test_a_delay_lets_a_workload_wait_before_it_takes_anything(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = start_elastic(bench)
    start_rival(bench, annotations={"kai.scheduler/preemption-delay": "2m"})
    group = bench.group("rival")
    assert group["spec"]["preemptionDelay"] == "2m"
    assert list_leaving(bench) == set()
    (condition,) = group["status"]["schedulingConditions"]
    (reason,) = condition["reasons"]
    made = clock.parse_time(group["metadata"]["creationTimestamp"])
    assert reason == {
        "reason": "PreemptionDelayNotElapsed",
        "message": (
            "Workload is within its preemption delay window (2m0s) and may not trigger evictions "
            f"before {clock.format_time(made + timedelta(minutes=2))}"
        ),
    }
    assert bench.condition("rival-0")["message"] == reason["message"]

    pass_time(bench, monkeypatch, 180)
    assert list_leaving(bench) == set(names[2:])
    assert not bench.group("rival")["status"]["schedulingConditions"]


def test_a_higher_priority_preempts_in_its_queue(bench: Bench) -> None:
    bench.pod("low", {GPU: 1}, labels={QUEUE: "project-a"}, schedulerName=KAI)
    bench.settle()
    for index in range(3):
        bench.pod(f"fill-{index}", {GPU: 1}, labels={QUEUE: "project-a"}, schedulerName=KAI)
    bench.settle()
    bench.pod(
        "high",
        {GPU: 1},
        labels={QUEUE: "project-a"},
        schedulerName=KAI,
        priorityClassName="build-preemptible",
    )
    bench.settle()

    (leaving,) = list_leaving(bench)
    assert leaving.startswith("fill-")


def test_the_minimum_of_semi_preemptible_work_stays(bench: Bench) -> None:
    labels = {"kai.scheduler/preemptibility": "semi-preemptible"}
    names = start_elastic(bench, labels=labels)
    assert bench.objects.get(QUEUES, "", "project-a")["status"]["allocatedNonPreemptible"] == {
        GPU: "2"
    }
    start_rival(bench)

    assert list_leaving(bench) == set(names[2:])


def test_a_gang_that_stays_below_its_minimum_is_evicted_after_a_minute(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = bench.job("rigid", labels={QUEUE: "project-a"})
    names = bench.gang(job, {GPU: 1}, count=3, schedulerName=KAI)
    bench.settle()
    bench.remove(names[2])
    bench.settle()
    assert list_leaving(bench) == set()
    assert "kai.scheduler/stale-podgroup-timestamp" in annotations_of(bench.group("rigid"))

    pass_time(bench, monkeypatch, 70)
    assert list_leaving(bench) == set(names[:2])


def lose_a_pod(bench: Bench, workload: dict[str, str], pod: dict[str, str]) -> list[str]:
    """Start a gang of three with these annotations, remove a pod; return those that are left."""
    job = bench.batch(
        "rigid",
        annotations={"kai.scheduler/batch-min-member": "3", **workload},
        labels={QUEUE: "project-a"},
    )
    names = [f"rigid-{index}" for index in range(3)]
    for name in names:
        bench.pod(name, {GPU: 1}, owner=job, annotations=pod, schedulerName=KAI)
    bench.settle()
    assert bench.placed() == set(names)
    bench.remove(names[2])
    bench.settle()
    return names[:2]


@pytest.mark.parametrize(
    ("workload", "pod", "grace"),
    [
        ({GRACE: "5m"}, {}, "5m"),
        ({}, {GRACE: "5m"}, "5m"),
        ({GRACE: "5m"}, {GRACE: "1h"}, "5m"),
        ({GRACE: "300"}, {GRACE: "5m"}, "5m"),
    ],
    ids=["of the workload", "of the pod", "the workload's first", "the first that can be read"],
)
def test_a_grace_of_its_own_lets_a_gang_stay_below_its_minimum(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    workload: dict[str, str],
    pod: dict[str, str],
    grace: str,
) -> None:
    left = lose_a_pod(bench, workload, pod)
    assert bench.group("rigid")["spec"]["stalenessGracePeriod"] == grace
    pass_time(bench, monkeypatch, 290)
    assert list_leaving(bench) == set()

    pass_time(bench, monkeypatch, 20)
    assert list_leaving(bench) == set(left)


def test_a_negative_grace_never_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_a_pod(bench, {GRACE: "-1s"}, {})
    pass_time(bench, monkeypatch, 3600)
    assert list_leaving(bench) == set()


def test_a_grace_that_cannot_be_read_is_a_minute(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = lose_a_pod(bench, {GRACE: "soon"}, {})
    assert "stalenessGracePeriod" not in bench.group("rigid")["spec"]
    pass_time(bench, monkeypatch, 50)
    assert list_leaving(bench) == set()

    pass_time(bench, monkeypatch, 20)
    assert list_leaving(bench) == set(left)


def test_a_grace_may_be_written_on_the_pod_group(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = lose_a_pod(bench, {}, {})

    def write_grace(group: Object) -> None:
        group["metadata"]["annotations"][GRACE] = "2m"

    name = bench.group("rigid")["metadata"]["name"]
    bench.objects.modify(PODGROUPS, "default", name, write_grace)
    bench.settle()
    pass_time(bench, monkeypatch, 70)
    assert list_leaving(bench) == set()

    pass_time(bench, monkeypatch, 60)
    assert list_leaving(bench) == set(left)


def test_a_moved_pod_is_made_again_where_its_place_is_kept(bench: Bench) -> None:
    for name in ("localkube", "node-1", "node-2", "node-3"):
        bench.objects.delete(NODES, "", name)
    for name in ("left", "right"):
        bench.make(NODES, {"metadata": {"name": name}}, "")
        offer_devices(bench, name, 2)
    labels = {QUEUE: "project-a"}
    jobs = {name: bench.batch(name, labels=labels) for name in ("a", "b", "c")}
    for name, job in jobs.items():
        bench.pod(name, {GPU: 1}, owner=job, schedulerName=KAI)
        bench.settle()
    bench.end("a")
    bench.settle()
    bench.pod("wide", {GPU: 2}, labels=labels, schedulerName=KAI)
    bench.settle()
    (moved,) = list_leaving(bench)
    kept = bench.read(moved)["status"]["nominatedNodeName"]

    let_leave(bench)
    assert "wide" in bench.placed()
    bench.pod(moved, {GPU: 1}, owner=jobs[moved], schedulerName=KAI)
    bench.settle()
    assert bench.read(moved)["spec"]["nodeName"] == kept

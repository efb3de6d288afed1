"""PodGroups: what the pod-grouper makes of workloads, and where it cannot."""

from pathlib import Path
from typing import Any

import pytest

from localkube.metadata import Object, annotations_of, uid_of
from localkube.resources import JOBS, MPIJOBS, PODGROUPS, PYTORCHJOBS
from tests.localkube.scheduling import GPU, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_job_has_a_pod_group_that_goes_with_it(bench: Bench) -> None:
    job = bench.job("train", labels={"team": "a"})
    bench.gang(job, {GPU: 1}, schedulerName="kai-scheduler")
    bench.settle()

    (group,) = bench.objects.list(PODGROUPS)
    assert group["metadata"]["name"] == f"pg-train-{uid_of(job)}"
    assert group["metadata"]["labels"] == {"team": "a"}
    reference = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "name": "train",
        "uid": uid_of(job),
    }
    assert group["metadata"]["ownerReferences"] == [reference]
    assert group["spec"] == {"minMember": 3, "queue": "default-queue", "priorityClassName": "train"}
    assert (
        annotations_of(bench.read("train-worker-1"))["pod-group-name"] == group["metadata"]["name"]
    )


def test_a_bare_pod_is_a_gang_of_its_own(bench: Bench) -> None:
    bench.pod("alone")
    bench.settle()

    assert bench.group("alone")["spec"]["minMember"] == 1


@pytest.mark.parametrize(
    ("spec", "members"),
    [
        ({}, 3),
        ({"elasticPolicy": {"minReplicas": 2}}, 2),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}, 1),
        (
            {
                "runPolicy": {"schedulingPolicy": {"minAvailable": 1}},
                "elasticPolicy": {"minReplicas": 2},
            },
            1,
        ),
    ],
)
def test_the_size_of_a_job_s_gang(bench: Bench, spec: Object, members: int) -> None:
    bench.gang(bench.job("train", spec), {})
    bench.settle()

    assert bench.group("train")["spec"]["minMember"] == members


def test_a_launcher_that_waits_for_its_workers_is_not_waited_for_before_it_is_there(
    bench: Bench,
) -> None:
    template = {"spec": {"containers": [{"name": "mpi", "image": "busybox"}]}}
    roles = {
        "Launcher": {"replicas": 1, "template": template},
        "Worker": {"replicas": 2, "template": template},
    }
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": roles}
    job = bench.make(MPIJOBS, {"metadata": {"name": "mpi"}, "spec": spec})
    for index in (0, 1):
        bench.pod(
            f"mpi-worker-{index}", owner=job, labels={"training.kubeflow.org/job-role": "worker"}
        )
    bench.settle()
    assert bench.placed() == {"mpi-worker-0", "mpi-worker-1"}
    assert bench.group("mpi")["spec"]["minMember"] == 2

    launcher = bench.batch("mpi-launcher")
    reference = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "name": "mpi",
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    bench.objects.modify(
        JOBS,
        "default",
        "mpi-launcher",
        lambda it: it["metadata"].update(ownerReferences=[reference]),
    )
    bench.pod(
        "mpi-launcher-x", owner=launcher, labels={"training.kubeflow.org/job-role": "launcher"}
    )
    bench.settle()
    assert "mpi-launcher-x" in bench.placed()
    assert bench.group("mpi")["spec"]["minMember"] == 3


@pytest.mark.parametrize(
    ("annotations", "members"), [({}, 1), ({"kai.scheduler/batch-min-member": "3"}, 3)]
)
def test_the_size_of_a_batch_job_s_gang(
    bench: Bench, annotations: dict[str, str], members: int
) -> None:
    job = bench.batch("count", annotations=annotations)
    bench.pod("count-a", owner=job)
    bench.settle()

    assert bench.group("count")["spec"]["minMember"] == members


def replicas(**counts: int | None) -> Object:
    template = {
        "spec": {"containers": [{"name": "pytorch", "image": "busybox", "command": ["true"]}]}
    }
    return {
        "pytorchReplicaSpecs": {
            role: {"template": template} | ({} if count is None else {"replicas": count})
            for role, count in counts.items()
        }
    }


@pytest.mark.parametrize("count", [None, 0])
def test_kai_makes_no_gang_where_replicas_are_not_written_or_zero(
    bench: Bench, count: int | None
) -> None:
    job = bench.job("loose", replicas(Master=1, Worker=count))
    bench.pod("loose-master-0", owner=job, schedulerName="kai-scheduler")
    bench.settle()

    text = "the type of the job loose doesn't allow for 0 Worker pods. Please fix the replica field"
    assert bench.placed() == set()
    (event,) = bench.events("loose-master-0")
    assert (event["reason"], event["type"], event["message"]) == (
        "PodGrouperWarning",
        "Warning",
        text,
    )
    assert bench.condition("loose-master-0")["message"] == text


def test_replicas_that_are_not_written_are_one_for_the_default_scheduler(bench: Bench) -> None:
    job = bench.job("loose", replicas(Master=1, Worker=None))
    bench.gang(job, {}, count=2)
    bench.settle()

    assert bench.group("loose")["spec"]["minMember"] == 2


def test_a_workload_that_is_mended_starts(bench: Bench) -> None:
    job = bench.job("loose", replicas(Master=1, Worker=None))
    bench.gang(job, {}, count=2, schedulerName="kai-scheduler")
    bench.settle()

    def mend(job: Object) -> None:
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 1

    bench.objects.modify(PYTORCHJOBS, "default", "loose", mend)
    bench.settle()
    assert bench.placed() == {"loose-master-0", "loose-worker-0"}


@pytest.mark.parametrize(
    ("owner", "own", "queue"),
    [
        ({"kai.scheduler/queue": "a"}, {"kai.scheduler/queue": "b"}, "a"),
        ({}, {"kai.scheduler/queue": "b"}, "b"),
        ({"project": "c"}, {}, "c"),
        ({}, {}, "default-queue"),
    ],
)
def test_the_queue_is_the_workload_s_then_the_pod_s_then_the_default(
    bench: Bench, owner: Any, own: Any, queue: str
) -> None:
    bench.pod("one-0", owner=bench.batch("one", labels=owner), labels=own)
    bench.settle()

    assert bench.group("one")["spec"]["queue"] == queue


def test_a_workload_keeps_the_queue_it_started_in(bench: Bench) -> None:
    job = bench.job("train", labels={"kai.scheduler/queue": "default-queue"})
    names = bench.gang(job, {})
    bench.settle()

    def relabel(job: Object) -> None:
        job["metadata"]["labels"]["kai.scheduler/queue"] = "elsewhere"

    bench.objects.modify(PYTORCHJOBS, "default", "train", relabel)
    bench.remove(names[2])
    bench.pod(names[2], owner=job)
    bench.settle()

    assert bench.group("train")["spec"]["queue"] == "default-queue"


def test_an_unknown_priority_class_falls_back_to_train(bench: Bench) -> None:
    bench.pod("one-0", owner=bench.batch("one", labels={"priorityClassName": "nonsense"}))
    bench.pod("two-0", owner=bench.batch("two", labels={"priorityClassName": "inference"}))
    bench.settle()

    assert bench.group("one")["spec"]["priorityClassName"] == "train"
    assert bench.group("two")["spec"]["priorityClassName"] == "inference"


def test_pods_can_name_a_pod_group_that_a_person_made(bench: Bench) -> None:
    annotations = {"pod-group-name": "mine"}
    for index in range(2):
        bench.pod(f"member-{index}", annotations=annotations)
    bench.settle()
    assert (
        bench.condition("member-0")["message"]
        == 'PodGroup "mine", which the pod names, does not exist'
    )

    bench.make(
        PODGROUPS,
        {"metadata": {"name": "mine"}, "spec": {"minMember": 2, "queue": "default-queue"}},
    )
    bench.settle()
    assert bench.placed() == {"member-0", "member-1"}


def test_a_pod_whose_owner_is_gone_is_not_placed(bench: Bench) -> None:
    job = bench.job("gone")
    job["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    bench.pod("left", owner=job)
    bench.settle()

    assert bench.placed() == set()
    assert (
        bench.condition("left")["message"]
        == 'the owner of the pod, PyTorchJob "gone", does not exist'
    )


def test_a_pod_group_that_is_deleted_under_its_pods_is_made_again(bench: Bench) -> None:
    bench.gang(bench.job("train"), {GPU: 1}, schedulerName="kai-scheduler")
    bench.settle()
    bench.objects.delete(PODGROUPS, "default", bench.group("train")["metadata"]["name"])
    bench.settle()

    assert bench.group("train")["status"]["resourcesStatus"]["allocated"] == {GPU: "3"}

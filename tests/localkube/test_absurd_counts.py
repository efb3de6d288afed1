"""Counts that make no sense: refused when they are written, and harmless where they are stored."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localkube.controllers import build_controllers
from localkube.errors import ApiError
from localkube.metadata import Object
from localkube.resources import (
    JAXJOBS,
    JOBS,
    MPIJOBS,
    PADDLEJOBS,
    PODS,
    PYTORCHJOBS,
    TFJOBS,
    XGBOOSTJOBS,
)
from localkube.resources.resource import Resource
from localkube.scheduler import Scheduler
from localkube.store import Change
from tests.localkube.stage import SPACE, Stage, conditions, pytorchjob, replica, status_of

KINDS = {
    PYTORCHJOBS: ("pytorchReplicaSpecs", "pytorch"),
    TFJOBS: ("tfReplicaSpecs", "tensorflow"),
    XGBOOSTJOBS: ("xgbReplicaSpecs", "xgboost"),
    JAXJOBS: ("jaxReplicaSpecs", "jax"),
    PADDLEJOBS: ("paddleReplicaSpecs", "paddle"),
    MPIJOBS: ("mpiReplicaSpecs", "main"),
}
MAX_PODS = 5


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [Scheduler(objects), *build_controllers(objects, max_pods=MAX_PODS)],
    )
    yield made
    made.close()


def training_job(kind: Resource, workers: Any, **spec: Any) -> Object:
    field, container = KINDS[kind]
    replicas = {"Worker": replica(container=container) | {"replicas": workers}}
    if kind is MPIJOBS:
        replicas["Launcher"] = replica(1, container=container)
    if kind is XGBOOSTJOBS:
        replicas["Master"] = replica(1, container=container)
    return {"metadata": {"name": "j"}, "spec": {field: replicas, **spec}}


def batch_job(**spec: Any) -> Object:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    }
    return {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
@pytest.mark.parametrize(
    ("count", "bound"),
    [(2**31, "less than or equal to 2147483647"), (-5, "greater than or equal to 0")],
)
def test_a_replica_count_is_from_0_to_what_an_int32_holds(
    stage: Stage, kind: Resource, count: int, bound: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        stage.create(kind, training_job(kind, count))
    path = f"spec.{KINDS[kind][0]}.Worker.replicas"
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    assert refusal.value.message.endswith(
        f'"j" is invalid: {path}: Invalid value: {count}: {path} in body should be {bound}'
    )


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        (PYTORCHJOBS, {"runPolicy": {"backoffLimit": -1}}, "runPolicy.backoffLimit"),
        (TFJOBS, {"runPolicy": {"backoffLimit": 2**31}}, "runPolicy.backoffLimit"),
        (JAXJOBS, {"runPolicy": {"ttlSecondsAfterFinished": -1}}, "ttlSecondsAfterFinished"),
        (
            XGBOOSTJOBS,
            {"runPolicy": {"schedulingPolicy": {"minAvailable": -2}}},
            "schedulingPolicy.minAvailable",
        ),
        (PYTORCHJOBS, {"elasticPolicy": {"minReplicas": -1}}, "elasticPolicy.minReplicas"),
        (PYTORCHJOBS, {"elasticPolicy": {"maxReplicas": 2**40}}, "elasticPolicy.maxReplicas"),
        (MPIJOBS, {"slotsPerWorker": -1}, "slotsPerWorker"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_counts_of_a_training_job_are_bounded_too(
    stage: Stage, kind: Resource, spec: Object, path: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        stage.create(kind, training_job(kind, 1, **spec))
    assert refusal.value.code == 422
    assert path in refusal.value.message


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        ({"parallelism": -1}, 422, "spec.parallelism: Invalid value: -1: must be greater than or"),
        ({"completions": -1}, 422, "spec.completions: Invalid value: -1: must be greater than or"),
        ({"backoffLimit": 2**31}, 400, "cannot unmarshal number 2147483648"),
        (
            {"completions": 100_001, "parallelism": 1, "completionMode": "Indexed"},
            422,
            "must be less than or equal to 100000 when completion mode is Indexed",
        ),
        (
            {"completions": 10, "parallelism": 100_001, "completionMode": "Indexed"},
            422,
            "must be less than or equal to 100000 when completion mode is Indexed",
        ),
    ],
    ids=["parallelism", "completions", "backoffLimit", "indexes", "indexed-parallelism"],
)
def test_counts_of_a_batch_job_are_bounded(
    stage: Stage, spec: Object, code: int, text: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        stage.create(JOBS, batch_job(**spec))
    assert refusal.value.code == code
    assert text in refusal.value.message


def test_of_the_largest_job_a_few_pods_are_made_and_its_status_says_so(stage: Stage) -> None:
    stage.create(PYTORCHJOBS, pytorchjob("j", {"Worker": replica(2**31 - 1)}))
    assert len(stage.names(PODS)) == 4 * MAX_PODS
    assert conditions(stage.get(PYTORCHJOBS, "j"))[0] == (
        "PodsLimited",
        "True",
        "PyTorchJobPodsLimited",
    )
    (message,) = [
        message for _, reason, message in stage.events("PyTorchJob") if "PodsLimited" in reason
    ]
    assert message == (
        "PyTorchJob j wants 2147483647 pods; at most 20 of a job are made before others of it have "
        "ended, 4 times the pods of all nodes: start localkube with a larger --max-pods for more."
    )


def test_more_pods_follow_as_pods_end(stage: Stage) -> None:
    stage.create(PYTORCHJOBS, pytorchjob("j", {"Worker": replica(30)}))
    for pod in stage.names(PODS)[:5]:
        stage.end(pod, 0)
    assert len(stage.names(PODS)) == 4 * MAX_PODS + 5


def test_of_the_largest_batch_job_a_few_pods_are_made(stage: Stage) -> None:
    stage.create(JOBS, batch_job(parallelism=2**31 - 1, completions=2**31 - 1))
    assert len(stage.names(PODS)) == 4 * MAX_PODS
    assert "PodsLimited" in {each["type"] for each in stage.get(JOBS, "j")["status"]["conditions"]}


@pytest.mark.parametrize("kind", [TFJOBS, XGBOOSTJOBS], ids=lambda kind: kind.plural)
def test_a_job_that_would_list_too_many_addresses_fails_and_says_why(
    stage: Stage, kind: Resource
) -> None:
    stage.create(kind, training_job(kind, 2**31 - 1))
    failed = stage.get(kind, "j")["status"]["conditions"][-1]
    assert (failed["type"], stage.names(PODS)) == ("Failed", [])
    assert "at most 1000 are possible here" in failed["message"]


def test_the_hostfile_of_an_mpi_job_is_bounded(stage: Stage) -> None:
    stage.create(MPIJOBS, training_job(MPIJOBS, 2**31 - 1))
    (event,) = [message for _, _, message in stage.events("MPIJob")]
    assert "must be at most 10000 here, not 2147483647" in event
    assert stage.names(PODS) == []


def store_unchecked(stage: Stage, kind: Resource, name: str, spec: Object) -> None:
    """Store an object as an older version would have accepted it."""
    stage.store.put_object(
        kind.key,
        {
            "metadata": {
                "name": name,
                "namespace": SPACE,
                "uid": f"uid-{name}",
                "creationTimestamp": "2026-11-21T03:00:00Z",
                "generation": 1,
            },
            "spec": spec,
        },
    )


POISONS: dict[str, Any] = {
    "many": 2**31,
    "more": 2**70,
    "negative": -5,
    "text": "many",
    "float": 1e300,
    "list": [1],
    "object": {"a": 1},
    "true": True,
}


def test_stored_poison_stops_nobody_after_a_restart(stage: Stage) -> None:
    for kind, (field, container) in KINDS.items():
        for name, count in POISONS.items():
            worker = replica(container=container) | {"replicas": count}
            spec = {field: {"Worker": worker, "Launcher": worker, "Master": worker}}
            store_unchecked(stage, kind, f"{name}-{kind.plural}", spec)
    for name, count in POISONS.items():
        spec = batch_job()["spec"]
        store_unchecked(stage, JOBS, f"batch-{name}", spec | {"parallelism": count})
        store_unchecked(
            stage, JOBS, f"indexed-{name}", spec | {"completions": count, "parallelism": 2}
        )
    store_unchecked(stage, PYTORCHJOBS, "no-map", {"pytorchReplicaSpecs": "none"})
    stage.close()
    stage.open()

    async def work() -> None:
        is_made = asyncio.Event()

        def follow(change: Change) -> None:
            if change.record.name == "good-worker-1":
                is_made.set()

        stage.objects.subscribe(PODS, follow)
        working = asyncio.create_task(stage.loop.run())
        stage.objects.create(PYTORCHJOBS, SPACE, pytorchjob("good", {"Worker": replica(2)}))
        await is_made.wait()
        stage.loop.stop()
        await working

    asyncio.run(asyncio.wait_for(work(), 60))
    message = status_of(stage, "many-pytorchjobs")["conditions"][-1]["message"]
    assert ".replicas is 2147483648, must not be more than 2147483647" in message


def test_poison_can_be_mended_and_deleted(stage: Stage) -> None:
    worker = replica() | {"replicas": -5}
    store_unchecked(stage, PYTORCHJOBS, "bad", {"pytorchReplicaSpecs": {"Worker": worker}})
    stage.modify(PYTORCHJOBS, "bad", lambda job: job["metadata"].update(labels={"a": "b"}))
    assert stage.get(PYTORCHJOBS, "bad")["metadata"]["labels"] == {"a": "b"}

    def worsen(job: Object) -> None:
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = -6

    with pytest.raises(ApiError, match="greater than or equal to 0"):
        stage.modify(PYTORCHJOBS, "bad", worsen)
    stage.delete(PYTORCHJOBS, "bad")
    assert stage.names(PYTORCHJOBS) == []


def test_a_status_with_absurd_indexes_is_read_up_to_the_completions(stage: Stage) -> None:
    stage.create(JOBS, batch_job(completions=3, parallelism=1, completionMode="Indexed"))

    def change(job: Object) -> None:
        job["status"]["completedIndexes"] = "0,1-9999999999999,x,5-2"

    stage.objects.modify(JOBS, SPACE, "j", change, subresource="status")
    stage.settle()
    assert msgspec.json.encode(stage.get(JOBS, "j")["status"]).count(b"9999") == 0


def test_a_deadline_longer_than_any_date_is_no_deadline(stage: Stage) -> None:
    policy = {"activeDeadlineSeconds": 2**63 - 1}
    stage.create(PYTORCHJOBS, pytorchjob("j", {"Worker": replica(1)}, policy))
    assert stage.names(PODS) == ["j-worker-0"]

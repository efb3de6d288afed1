"""Jobs of every kind that are made suspended: nothing of them exists before they are resumed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from localkube import controllers, options, patch
from localkube.metadata import Object
from localkube.resources import (
    JAXJOBS,
    JOBS,
    MPIJOBS,
    NODES,
    PADDLEJOBS,
    PODGROUPS,
    PODS,
    PYTORCHJOBS,
    QUEUES,
    TFJOBS,
    XGBOOSTJOBS,
)
from localkube.resources.resource import Resource
from localkube.scheduler.defaults import build_default_queues
from localkube.scheduler.scheduler import Scheduler
from tests.localkube.stage import SPACE, Stage, conditions, replica

GPU = "nvidia.com/gpu"
DEVICES = 4


@dataclass(frozen=True)
class Kind:
    """A kind of job, the spec of one whose pods take all devices, and where it is suspended."""

    resource: Resource
    spec: Object
    suspension_field: tuple[str, ...] = ("spec", "runPolicy", "suspend")
    has_created_condition: bool = True

    def build_suspension(self, value: bool) -> Object:
        body: object = value
        for name in reversed(self.suspension_field):
            body = {name: body}
        assert isinstance(body, dict)
        return body


def roles(container: str, **counts: int) -> Object:
    found = {}
    for role, count in counts.items():
        found[role] = replica(count, container=container, schedulerName="kai-scheduler")
        main = found[role]["template"]["spec"]["containers"][0]
        if role != "Launcher":
            main["resources"] = {"limits": {GPU: DEVICES // sum(counts.values())}}
    return found


def batch_spec() -> Object:
    template = replica(None, container="main", restartPolicy="Never")["template"]
    template["spec"]["containers"][0]["resources"] = {"limits": {GPU: 1}}
    size = {"completions": DEVICES, "parallelism": DEVICES, "completionMode": "Indexed"}
    return {"template": template, **size}


def mpi_roles() -> Object:
    return roles("mpi", Launcher=1) | roles("mpi", Worker=2)


KINDS = [
    Kind(PYTORCHJOBS, {"pytorchReplicaSpecs": roles("pytorch", Master=1, Worker=1)}),
    Kind(TFJOBS, {"tfReplicaSpecs": roles("tensorflow", Chief=1, Worker=1)}),
    Kind(XGBOOSTJOBS, {"xgbReplicaSpecs": roles("xgboost", Master=1, Worker=1)}),
    Kind(JAXJOBS, {"jaxReplicaSpecs": roles("jax", Worker=2)}),
    Kind(PADDLEJOBS, {"paddleReplicaSpecs": roles("paddle", Worker=2)}),
    Kind(MPIJOBS, {"mpiReplicaSpecs": mpi_roles()}),
    Kind(JOBS, batch_spec(), ("spec", "suspend"), has_created_condition=False),
]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [*controllers.build_controllers(objects), Scheduler(objects)],
    )
    for queue in build_default_queues():
        made.objects.create(QUEUES, "", queue)
    made.objects.create(NODES, "", {"metadata": {"name": options.NODE_NAME}})
    offered = {"cpu": "8", "memory": "32Gi", GPU: str(DEVICES), "pods": "100"}
    made.objects.modify(
        NODES,
        "",
        options.NODE_NAME,
        lambda n: n.update(status={"allocatable": offered}),
        subresource="status",
    )
    yield made
    made.close()


def set_suspension(stage: Stage, kind: Kind, value: bool) -> None:
    """Patch the job as Muster does: a merge patch of that one field."""
    change = kind.build_suspension(value)
    stage.modify(
        kind.resource,
        "j",
        lambda job: job.update(patch.apply_merge_patch(job, change)),
    )


def used_devices(stage: Stage) -> int:
    return sum(
        int((container.get("resources") or {}).get("limits", {}).get(GPU, 0))
        for pod in stage.objects.list(PODS, SPACE)
        for container in pod["spec"]["containers"]
        if pod["spec"].get("nodeName")
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)
def test_a_job_made_suspended_takes_nothing_until_it_is_resumed(stage: Stage, kind: Kind) -> None:
    job: Object = {"metadata": {"name": "j"}, "spec": dict(kind.spec)}
    stage.create(kind.resource, patch.apply_merge_patch(job, kind.build_suspension(True)))
    stage.settle(1000)
    assert (stage.names(PODS), stage.names(PODGROUPS), used_devices(stage)) == ([], [], 0)
    before = stage.get(kind.resource, "j")
    states = {entry[:2] for entry in conditions(before)}
    created = {("Created", "True")} if kind.has_created_condition else set()
    assert states == {("Suspended", "True")} | created
    assert "startTime" not in before["status"]

    set_suspension(stage, kind, False)
    stage.settle(10)
    resumed = stage.get(kind.resource, "j")
    assert ("Suspended", "False") in {entry[:2] for entry in conditions(resumed)}
    assert resumed["status"]["startTime"] == "2026-11-21T03:16:40Z"
    assert (len(stage.names(PODGROUPS)), used_devices(stage)) == (1, DEVICES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)
def test_a_suspended_job_is_resumed_also_after_a_restart(stage: Stage, kind: Kind) -> None:
    job: Object = {"metadata": {"name": "j"}, "spec": dict(kind.spec)}
    stage.create(kind.resource, patch.apply_merge_patch(job, kind.build_suspension(True)))
    stage.close()
    stage.open()
    stage.settle()
    assert stage.names(PODS) == []
    set_suspension(stage, kind, False)
    assert used_devices(stage) == DEVICES

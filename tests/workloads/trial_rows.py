"""Rows of a cluster's past, and a replay with given answers."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from clusters.models import Node
from projects.models import Project
from scheduling import ClusterState
from simulation.history import Replay
from tests.cast import Cast, a_spec
from tests.workloads.table_rows import a_workload
from workloads.models import Attempt, QuotaTrial, Workload
from workloads.specs import Architecture, Compute, Environment, Gpus, Setup, Spec, encode_spec
from workloads.trials.changes import Change, ChangeKind, build_change_fields


def build_spec(project: Project, name: str, gpus: int = 1, **fields: Any) -> Spec:
    """Build a standard workload of one pod with so many GPUs."""
    compute = Compute(gpus=Gpus(devices=gpus), cpu_request="1", memory_request="1G")
    setup = fields.pop("setup", None) or Setup(
        environment=Environment(image="busybox"), compute=compute
    )
    given: dict[str, object] = {
        "architecture": Architecture.STANDARD,
        "framework": None,
        "workers": 1,
        "setup": setup,
    }
    return a_spec(project, name, **(given | fields))


def add_run(
    project: Project,
    name: str,
    came_at: datetime,
    *,
    waited: float | None = 0,
    ran: float | None = 3600,
    spec: Spec | None = None,
    gpus: int = 1,
    spec_version: int | None = None,
    **fields: Any,
) -> Workload:
    """Create a workload that came, waited and ran for so many seconds; None: it still does."""
    started_at = None if waited is None else came_at + timedelta(seconds=waited)
    ended_at = None if started_at is None or ran is None else started_at + timedelta(seconds=ran)
    status = "Pending" if started_at is None else "Running" if ended_at is None else "Completed"
    given: dict[str, Any] = {
        "spec": encode_spec(spec or build_spec(project, name, gpus))
        | ({} if spec_version is None else {"version": spec_version}),
        "status": status,
        "created_at": came_at,
        "started_at": started_at,
        "ended_at": ended_at,
        "gpus_requested": Decimal(gpus),
    }
    workload = a_workload(project, name, **(given | fields))
    Attempt.objects.filter(workload=workload).update(
        requested_at=came_at,
        started_at=started_at,
        ended_at=fields.get("ended_at", ended_at),
        status=fields.get("status", status),
    )
    return workload


def add_nodes(cast: Cast, *gpus: int, gpu_type: str = "H100", **fields: Any) -> None:
    """Create nodes that take pods, with so many GPUs each."""
    for number, count in enumerate(gpus):
        Node.objects.create(
            cluster=cast.cluster,
            name=f"node-{number}",
            **(
                {
                    "is_ready": True,
                    "gpus": count,
                    "gpu_type": gpu_type if count else "",
                    "cpu": 64,
                    "memory": 1 << 38,
                    "pods": 110,
                }
                | fields
            ),
        )


def change_quota(project: Project, after: str, field: str = "gpu_quota") -> Change:
    return Change(ChangeKind.PROJECT, str(project.pk), project.name, field, "2", after)


def add_trial(cast: Cast, *changes: Change, **fields: Any) -> QuotaTrial:
    """Create a trial of Alice's."""
    given = {"cluster": cast.cluster, "asked_by": cast.alice} | build_change_fields(changes)
    return QuotaTrial.objects.create(**(given | fields))


class RecordingReplayer:
    """Starts all when they come, up to a moment, and keeps what it was asked."""

    def __init__(self, until: datetime | None = None) -> None:
        self.states: list[ClusterState] = []
        self.lengths: Mapping[str, float] = {}
        self._until = until

    def __call__(self, state: ClusterState, lengths: Mapping[str, float], *, end: float) -> Replay:
        self.states.append(state)
        self.lengths = lengths
        until = end if self._until is None else self._until.timestamp()
        return Replay({gang.key: gang.created_at for gang in state.gangs}, until, 1)

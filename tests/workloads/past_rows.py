"""Rows whose past is looked at, for tests of the time machine."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Cluster, Node
from projects.models import Project
from tests.workloads.ledger_rows import build_moment
from tests.workloads.table_rows import a_pod, a_workload
from workloads.models import Workload
from workloads.recording.turns import record_state

Record = Callable[[float], None]
"""Records the state so many minutes after NOON, which is now from then on."""


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, db: None) -> Record:
    """Runs the step at a time."""

    def run(minutes: float) -> None:
        now = build_moment(minutes)
        monkeypatch.setattr(timezone, "now", lambda: now)
        record_state()

    return run


def a_node(cluster: Cluster, name: str = "node-1", **fields: Any) -> Node:
    """Create a node with 8 GPUs that takes pods."""
    given = {"gpus": 8, "is_ready": True, "cpu": 64, "memory": 2**38, "pods": 110}
    return Node.objects.create(cluster=cluster, name=name, **(given | fields))


def a_running_workload(project: Project, name: str, gpus: int, node: str) -> Workload:
    """Create a workload with one ready pod on a node."""
    workload = a_workload(
        project, name, gpus_allocated=Decimal(gpus), running_pods=1, requested_pods=1
    )
    a_pod(workload, node=node, gpus=Decimal(gpus), is_ready=True)
    return workload


def a_waiting_workload(project: Project, name: str = "train1", **fields: Any) -> Workload:
    """Create a workload whose pod wants 8 GPUs and has no node."""
    given: dict[str, Any] = {
        "status": "Pending",
        "requested_pods": 1,
        "gpus_requested": Decimal(8),
        "job": {"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}},
    }
    workload = a_workload(project, name, **(given | fields))
    container = {"name": "pytorch", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    a_pod(
        workload,
        phase="Pending",
        status="Pending",
        data={
            "kind": "Pod",
            "metadata": {"name": f"{name}-worker-0"},
            "spec": {"containers": [container]},
            "status": {"phase": "Pending"},
        },
    )
    return workload

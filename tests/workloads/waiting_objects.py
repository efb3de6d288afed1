"""Pods that wait, and what they wait for: queues, nodes."""

from decimal import Decimal
from typing import Any

from tests.workloads.objects import Object, condition, pytorch_job, queued_pod
from workloads.diagnosis import Diagnosis, NodeCapacity, ResourceAmounts, diagnose_waiting

GIB = 1024**3
GPU = {"limits": {"nvidia.com/gpu": "1"}}

THREE = [
    queued_pod("master", resources=GPU),
    queued_pod("worker", 0, resources=GPU),
    queued_pod("worker", 1, resources=GPU),
]

JOB = pytorch_job(condition("Created"))


def node_capacity(
    gpus: float,
    free: float,
    *,
    name: str = "n1",
    cpu: int = 16,
    cpu_free: int = 16,
    memory: int = 64,
    **more: Any,
) -> NodeCapacity:
    total = ResourceAmounts(Decimal(str(gpus)), Decimal(cpu), Decimal(memory * GIB))
    left = ResourceAmounts(Decimal(str(free)), Decimal(cpu_free), Decimal(memory * GIB))
    return NodeCapacity(name, total, left, **more)


def diagnose(pods: list[Object], *nodes: NodeCapacity, **more: Any) -> Diagnosis:
    diagnosis = diagnose_waiting(JOB, pods, more.pop("pod_group", None), nodes=nodes, **more)
    assert diagnosis is not None
    return diagnosis


def project_queue(**gpu: float) -> Object:
    spec = {"resources": {"gpu": {"quota": gpu["quota"], "limit": gpu["limit"]}}}
    used = {"nvidia.com/gpu": str(gpu["used"])}
    return {"spec": spec, "status": {"allocated": used, "allocatedNonPreemptible": used}}

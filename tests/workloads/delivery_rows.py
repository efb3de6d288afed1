"""Rows of workloads with data workers, as the journal and the step that reads logs leave them."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from projects.models import Project
from tests.cast import a_spec
from tests.workloads.table_rows import a_pod, a_workload, touch_workload
from workloads.models import DataPreparation, RankDelivery, Workload
from workloads.specs import Compute, DataDelivery, Environment, Gpus, Setup, encode_spec

REASON = "12,400 of 20,480 units are prepared, 60 %, about 2 min."


def a_preparing_workload(project: Project, name: str = "slow", **fields: Any) -> Workload:
    """Create a workload whose four data workers have prepared a part of its data."""
    workload = _create_workload(
        project, name, status="Preparing", reason=REASON, requested_pods=2, **fields
    )
    workers = [
        {"pod": f"w{number}", "units": 3100, "of": 5120, "rate": 16.8} for number in range(4)
    ]
    DataPreparation.objects.create(
        workload=workload,
        attempt=1,
        wanted=20_480,
        prepared=12_400,
        rate=67.3,
        workers=workers,
        progress_at=timezone.now(),
    )
    _create_data_workers(workload)
    return workload


def a_starving_workload(
    project: Project, name: str = "starving", *, ranks: int = 2, **fields: Any
) -> Workload:
    """Create a running workload whose ranks waited for data; rank 1 most of all."""
    begun = timezone.now() - timedelta(minutes=20)
    workload = _create_workload(
        project,
        name,
        status="Running",
        requested_pods=2,
        running_pods=2,
        started_at=begun,
        **fields,
    )
    workers = [
        {"pod": f"w{number}", "units": 5120, "of": 5120, "is_ready": True} for number in range(4)
    ]
    DataPreparation.objects.create(
        workload=workload,
        attempt=1,
        wanted=20_480,
        prepared=20_480,
        workers=workers,
        ready_at=begun,
        resumed_at=begun,
        sampled_at=timezone.now(),
    )
    a_pod(workload, "master", 0)
    a_pod(workload, "worker", 0)
    _create_data_workers(workload)
    RankDelivery.objects.bulk_create(
        RankDelivery(
            workload=workload,
            attempt=1,
            rank=rank,
            at=timezone.now(),
            span=600.0,
            waited=(340.0 if rank == 1 else 200.0 + rank % 50),
            computed=(260.0 if rank == 1 else 400.0 - rank % 50),
            depth=rank % 3,
            rate=128.0,
            delivered=76_800,
            epoch=2,
        )
        for rank in range(ranks)
    )
    return workload


def _create_workload(project: Project, name: str, **fields: Any) -> Workload:
    setup = Setup(Environment("muster/delivery"), Compute(Gpus(1), cpu_request="1"))
    delivery = DataDelivery(4, 20_480, Compute(cpu_request="1", memory_request="1G"))
    spec = a_spec(project, name, setup=setup, workers=1, data_delivery=delivery)
    return touch_workload(
        a_workload(project, name, spec=encode_spec(spec), data_workers=4, **fields),
        pod_counts={"data": {"ready": 4}, "existing": 4},
    )


def _create_data_workers(workload: Workload) -> None:
    for number in range(4):
        a_pod(
            workload,
            "data-worker",
            number,
            name=f"{workload.name}-data-{number}-x7k2p",
            rank=None,
            node="cpu-node-0",
            cpu="1",
            created_at=timezone.now() - timedelta(minutes=25),
        )

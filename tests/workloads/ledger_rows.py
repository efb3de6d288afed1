"""Rows of pods with GPUs and what was measured of them, and entries of the ledger."""

import uuid
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from clusters.metrics.catalogue import METRICS_BY_NAME
from projects.models import Project
from tests.workloads.table_rows import NOON, a_pod
from workloads.ledger import GPU_HOUR, KINDS
from workloads.metrics.frames import encode_frame
from workloads.metrics.resolutions import Resolution
from workloads.metrics.rows import append_frames
from workloads.models import LedgerEntry, MetricSeries, Pod, Workload


def build_moment(minutes: float) -> datetime:
    """So many minutes after NOON."""
    return NOON + timedelta(minutes=minutes)


def a_gpu_pod(
    workload: Workload,
    index: int = 0,
    *,
    gpus: str = "1",
    created: float = 0,
    started: float | None = 0,
    ready: float | None = 0,
    ended: float | None = None,
    vanished: float | None = None,
    **fields: Any,
) -> Pod:
    """A pod with GPUs; its moments are minutes after NOON."""

    def convert(minutes: float | None) -> datetime | None:
        return None if minutes is None else build_moment(minutes)

    given: dict[str, Any] = {
        "gpus": Decimal(gpus),
        "node": "" if started is None else "node-1",
        "created_at": convert(created),
        "started_at": convert(started),
        "ready_at": convert(ready),
        "is_ready": ready is not None,
        "ended_at": convert(ended),
        "vanished_at": convert(vanished),
    }
    return a_pod(workload, index=index, **(given | fields))


def record_figures(
    workload: Workload, minute: int, figures: dict[int, dict[str, float]], minutes: int = 1
) -> None:
    """Record the figures by the minute of a workload's pods, from a minute after NOON on."""
    series, _ = MetricSeries.objects.get_or_create(workload=workload)
    coded = {
        pod: {METRICS_BY_NAME[name].code: value for name, value in values.items()}
        for pod, values in figures.items()
    }
    for number in range(minute, minute + minutes):
        seconds = int(build_moment(number).timestamp())
        data = encode_frame(seconds % 600, coded)
        append_frames(Resolution.MINUTE, seconds, {series.pk: data})


def use_gpus(devices: float = 1, unused: float = 0, **figures: float) -> dict[str, float]:
    """What is measured of a pod with devices of which some are unused."""
    use = 0.0 if unused >= devices else 80.0
    return {"gpu_use": use, "gpus_measured": devices, "gpus_unused": unused, **figures}


def an_entry(
    project: Project, name: str = "train1", day: date = date(2026, 11, 20), **hours: Any
) -> LedgerEntry:
    """An entry of the ledger, in GPU-hours of each kind."""
    amounts = {kind.value: round(GPU_HOUR * hours.pop(kind.value, 0)) for kind in KINDS}
    given = {"workload": uuid.uuid5(uuid.NAMESPACE_DNS, f"{project.pk} {name}"), "user": "bob"}
    return LedgerEntry.objects.create(
        project=project, workload_name=name, day=day, **(given | amounts | hours)
    )

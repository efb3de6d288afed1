"""Steps that sample, each minute, what every project has and holds, and thin old samples."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Min, Sum
from django.utils import timezone

from console.celery import step
from console.chunks import split_chunks
from projects.models import Project
from workloads import journal, utilisation
from workloads.models import Sample, Workload
from workloads.states import ACTIVE, ENDING, Status

RUNNING = frozenset({Status.RUNNING, Status.DEGRADED})
WAITING = ACTIVE - RUNNING
BATCH_SIZE = 1000
THINNING = ((timedelta(days=1), 600), (timedelta(days=7), 3600))
"""Pairs of an age and the seconds between samples that are kept from it on."""
MAX_MOMENTS = 5000
"""Moments that one run forgets at most."""

_ZERO = Decimal(0)
_MOST_GPUS = Decimal(10**8)
"""What the column can hold, whatever workloads may ask for together."""


def round_to_sample_time(now: datetime, seconds: int) -> datetime:
    """Return the moment that a sample is stored under: the same within `seconds`."""
    return datetime.fromtimestamp(now.timestamp() // seconds * seconds, UTC)


@step
def sample() -> None:
    """Add a sample of every project, unless this moment has one; update idle times of workloads."""
    seconds = settings.OPTIONS.sample_seconds
    at = round_to_sample_time(timezone.now(), seconds)
    previous = utilisation.find_latest_sample_time()
    # Covers all of the time since the last sample: a beat may have come late.
    idle = utilisation.load_idle_gpus(
        seconds
        if previous is None
        else max(seconds, ceil((timezone.now() - previous).total_seconds()))
    )
    changed = utilisation.record_idle_since(idle, at, restart=previous is None)
    journal.record_gpu_use(utilisation.load_gpu_use(), at, changed)
    usage, used = _load_usage(), utilisation.load_used_gpus()
    rows = (
        _build_sample(at, pk, quota, usage.get(pk, {}), idle, used.get(pk))
        for pk, quota in Project.objects.there().values_list("pk", "gpu_quota")
    )
    Sample.objects.bulk_create(rows, batch_size=BATCH_SIZE, ignore_conflicts=True)


@step
def thin() -> None:
    """Thin the old samples, and delete those older than the settings allow."""
    now = timezone.now()
    _delete_in_pieces(
        Sample.objects.filter(at__lt=now - timedelta(days=settings.OPTIONS.sample_days))
    )
    for age, seconds in THINNING:
        _thin_samples(now - age, seconds)


def _thin_samples(before: datetime, seconds: int) -> None:
    """Keep the first moment of each interval of `seconds`."""
    kept_interval = 0.0
    surplus = []
    moments = (
        Sample.objects.filter(at__lt=before).order_by("at").values_list("at", flat=True).distinct()
    )
    for at in moments.iterator(chunk_size=2000):
        interval = at.timestamp() // seconds
        if interval == kept_interval:
            surplus.append(at)
        kept_interval = interval
        if len(surplus) >= MAX_MOMENTS:
            break
    for chunk in split_chunks(surplus, 200):
        Sample.objects.filter(at__in=chunk).delete()


def _delete_in_pieces(rows: Any) -> None:
    """Delete the rows in pieces, so that no writer waits long."""
    bounds = rows.aggregate(first=Min("at"), last=Max("at"))
    if bounds["first"] is None:
        return
    until = bounds["first"]
    while until < bounds["last"]:
        until = min(until + timedelta(hours=6), bounds["last"])
        rows.filter(at__lte=until).delete()
    rows.delete()


def _load_usage() -> dict[int, dict[str, tuple[int, Decimal]]]:
    """Load how many workloads of each status a project has, and their GPUs. One query."""
    rows = Workload.objects.filter(
        status__in=[each.value for each in ACTIVE | ENDING], released_at=None
    ).order_by()
    usage: dict[int, dict[str, tuple[int, Decimal]]] = {}
    for project, status, count, gpus in rows.values_list("project_id", "status").annotate(
        Count("id"), Sum("gpus_allocated")
    ):
        usage.setdefault(project, {})[status] = (count, gpus or _ZERO)
    return usage


def _build_sample(
    at: datetime,
    pk: int,
    quota: Decimal | None,
    usage: dict[str, tuple[int, Decimal]],
    idle: utilisation.IdleGpus,
    used: utilisation.UsedGpus | None,
) -> Sample:
    allocated = min(_MOST_GPUS, sum((gpus for _, gpus in usage.values()), _ZERO))
    # Nothing is idle or used where nothing is held; what is held and has no figures is unknown.
    idle_gpus = idle.projects.get(pk) if allocated else _ZERO
    used_gpus = None if allocated else _ZERO
    # The newest figures may lack a device of which those before told that it is not idle.
    if idle_gpus is not None and used is not None and used.measured >= allocated:
        used_gpus = used.used
    return Sample(
        at=at,
        project_id=pk,
        gpus_quota=quota,
        gpus_allocated=allocated,
        gpus_idle=idle_gpus,
        gpus_used=used_gpus,
        running=_count_workloads(usage, RUNNING),
        waiting=_count_workloads(usage, WAITING),
    )


def _count_workloads(usage: dict[str, tuple[int, Decimal]], statuses: Iterable[Status]) -> int:
    return sum(usage[status][0] for status in statuses if status in usage)

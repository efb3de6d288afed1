"""The step that writes down, each minute, what every project has and holds; and the one that keeps
fewer of these moments as they age.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Min, Sum
from django.utils import timezone

from console.celery import step
from projects.models import Project
from workloads import utilisation
from workloads.models import Sample, Workload
from workloads.states import ACTIVE, ENDING, Status

RUNNING = frozenset({Status.RUNNING, Status.DEGRADED})
WAITING = ACTIVE - RUNNING
BATCH_SIZE = 1000
THINNING = ((timedelta(days=1), 600), (timedelta(days=7), 3600))
"""From which age on there is one moment for so many seconds."""
MAX_MOMENTS = 5000
"""Moments that one turn forgets at most."""

_ZERO = Decimal(0)


def round_to_sample_time(now: datetime, seconds: int) -> datetime:
    """The moment that a sample taken now is written down for: the same for all of the same
    `seconds`.
    """
    return datetime.fromtimestamp(now.timestamp() // seconds * seconds, UTC)


@step
def sample() -> None:
    """Whatever samples there are -> one more of every project, unless this moment has one;
    workloads know since when they are idle.
    """
    seconds = settings.OPTIONS.sample_seconds
    at = round_to_sample_time(timezone.now(), seconds)
    before = utilisation.find_latest_sample_time()
    # All of the time since the last sample is asked for: a beat may have come late.
    idle = utilisation.measure_gpu_use(
        seconds if before is None else max(seconds, ceil((timezone.now() - before).total_seconds()))
    )
    utilisation.record_idle_since(idle, at, restart=before is None)
    held = _load_usage()
    rows = (
        _build_sample(at, pk, quota, held.get(pk, {}), idle)
        for pk, quota in Project.objects.there().values_list("pk", "gpu_quota")
    )
    Sample.objects.bulk_create(rows, batch_size=BATCH_SIZE, ignore_conflicts=True)


@step
def thin() -> None:
    """Whatever samples there are -> fewer of the old ones, and none that are older than the
    settings say.
    """
    now = timezone.now()
    _delete_in_pieces(
        Sample.objects.filter(at__lt=now - timedelta(days=settings.OPTIONS.sample_days))
    )
    for age, seconds in THINNING:
        _thin_samples(now - age, seconds)


def _thin_samples(before: datetime, seconds: int) -> None:
    """Of all moments of the same `seconds` the first one stays."""
    kept = 0.0
    spare = []
    moments = (
        Sample.objects.filter(at__lt=before).order_by("at").values_list("at", flat=True).distinct()
    )
    for at in moments.iterator(chunk_size=2000):
        part = at.timestamp() // seconds
        if part == kept:
            spare.append(at)
        kept = part
        if len(spare) >= MAX_MOMENTS:
            break
    for some in _split_chunks(spare, 200):
        Sample.objects.filter(at__in=some).delete()


def _delete_in_pieces(rows: Any) -> None:
    """In pieces, so that nobody who writes waits long."""
    bounds = rows.aggregate(first=Min("at"), last=Max("at"))
    if bounds["first"] is None:
        return
    until = bounds["first"]
    while until < bounds["last"]:
        until = min(until + timedelta(hours=6), bounds["last"])
        rows.filter(at__lte=until).delete()
    rows.delete()


def _load_usage() -> dict[int, dict[str, tuple[int, Decimal]]]:
    """How many workloads of each status a project has, and what they hold. One query."""
    at_work = Workload.objects.filter(
        status__in=[each.value for each in ACTIVE | ENDING], released_at=None
    ).order_by()
    found: dict[int, dict[str, tuple[int, Decimal]]] = {}
    for project, status, count, gpus in at_work.values_list("project_id", "status").annotate(
        Count("id"), Sum("gpus_allocated")
    ):
        found.setdefault(project, {})[status] = (count, gpus or _ZERO)
    return found


def _build_sample(
    at: datetime,
    pk: int,
    quota: Decimal | None,
    usage: dict[str, tuple[int, Decimal]],
    idle: utilisation.IdleGpus,
) -> Sample:
    allocated = sum((gpus for _, gpus in usage.values()), _ZERO)
    return Sample(
        at=at,
        project_id=pk,
        gpus_quota=quota,
        gpus_allocated=allocated,
        # Nothing is idle where nothing is held; what is held and has no figures is unknown.
        gpus_idle=idle.projects.get(pk) if allocated else _ZERO,
        running=_count_workloads(usage, RUNNING),
        waiting=_count_workloads(usage, WAITING),
    )


def _count_workloads(usage: dict[str, tuple[int, Decimal]], statuses: Iterable[Status]) -> int:
    return sum(usage[status][0] for status in statuses if status in usage)


def _split_chunks(moments: list[datetime], size: int) -> Iterator[list[datetime]]:
    return (moments[start : start + size] for start in range(0, len(moments), size))

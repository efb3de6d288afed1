"""Which allocated GPUs are unused, as the kept figures of pods say.

What has no figures stays unknown.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.db.models import F, Max
from django.utils import timezone

from clusters.metrics.catalogue import METRICS_BY_NAME
from console.chunks import split_chunks
from workloads.metric_models import MetricSeries
from workloads.metrics.reading import measure_frame
from workloads.metrics.resolutions import Resolution
from workloads.metrics.rows import load_frames
from workloads.models import Pod, Sample, Workload
from workloads.states import ACTIVE, UP

LATEST_USE = timedelta(minutes=5)
"""How old a GPU use may be that is shown as that of now, if it is measured often enough."""
SHORTEST_WINDOW = 60
"""Seconds of the shortest window: exporters are usually scraped twice a minute."""

_GPU_USE = METRICS_BY_NAME["gpu_use"]
_MEASURED = METRICS_BY_NAME["gpus_measured"].code
_UNUSED = METRICS_BY_NAME["gpus_unused"].code
_ACTIVE = [status.value for status in ACTIVE]


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that holds GPUs, or a part of one."""

    key: int
    workload: uuid.UUID
    project: int
    gpus: Decimal


@dataclass(slots=True)
class GpuUse:
    """How many of a pod's devices have figures, and how many of them nobody used."""

    measured: float
    unused: float
    at: int = 0
    """The moment of the newest figure, in seconds since 1970."""


@dataclass(slots=True)
class IdleGpus:
    """What is known of the use of allocated GPUs."""

    workloads: dict[uuid.UUID, bool] = field(default_factory=dict)
    """Whether none of a workload's GPUs is used; a workload of unknown use is missing."""
    projects: dict[int, Decimal | None] = field(default_factory=dict)
    """How many of a project's GPUs are unused; None where that is not known of all of them."""


def judge_gpu_use(pods: Iterable[GpuPod], use: Mapping[int, GpuUse]) -> IdleGpus:
    """Return which workloads' GPUs are idle, by the figures of each pod.

    Pure. A workload is known when each of its pods has a figure for each of its devices. A part of
    a device has no figure of its own.
    """
    unknown: set[uuid.UUID] = set()
    is_used: dict[uuid.UUID, bool] = defaultdict(bool)
    idle: dict[int, Decimal] = defaultdict(Decimal)
    blind: set[int] = set()
    for pod in pods:
        pod_use = use.get(pod.key)
        # Creates the entry: a project whose GPUs are all used has 0 idle, not an unknown number.
        idle[pod.project] += 0
        if pod.gpus != int(pod.gpus) or pod_use is None or pod_use.measured < pod.gpus:
            unknown.add(pod.workload)
            blind.add(pod.project)
            continue
        is_used[pod.workload] |= pod_use.unused < pod_use.measured
        idle[pod.project] += min(Decimal(int(pod_use.unused)), pod.gpus)
    return IdleGpus(
        workloads={key: not used for key, used in is_used.items() if key not in unknown},
        projects={key: None if key in blind else number for key, number in idle.items()},
    )


def find_latest_sample_time() -> datetime | None:
    """Return the time of the newest samples; None where they are too old.

    One query.
    """
    at: datetime | None = Sample.objects.aggregate(at=Max("at"))["at"]
    fresh = timedelta(seconds=3 * settings.OPTIONS.sample_seconds + 60)
    return at if at is not None and timezone.now() - at <= fresh else None


def load_idle_gpus(seconds: int) -> IdleGpus:
    """Judge all pods with GPUs by the figures of the last seconds. Writes nothing."""
    pods = list(_load_gpu_pods())
    until = int(timezone.now().timestamp()) + 1
    since = until - max(seconds, _get_shortest_window())
    return judge_gpu_use(pods, _load_use({pod.workload for pod in pods}, since, until))


def record_idle_since(
    idle: IdleGpus, at: datetime, *, restart: bool = False
) -> frozenset[uuid.UUID]:
    """Update `idle_since` and `is_use_known` of each workload. Returns which have changed.

    Any use, and unknown use, resets `idle_since`. With `restart` every workload begins anew: after
    a long pause nothing is known of the time before.
    """
    unused = {key for key, is_idle in idle.workloads.items() if is_idle}
    marked = set(Workload.objects.filter(idle_since__isnull=False).values_list("pk", flat=True))
    begun = unused if restart else unused - marked
    for chunk in split_chunks(sorted(begun)):
        Workload.objects.filter(pk__in=chunk).update(idle_since=at)
    for chunk in split_chunks(sorted(marked - unused)):
        Workload.objects.filter(pk__in=chunk).update(idle_since=None)
    was_known, now_known = (
        set(Workload.objects.filter(is_use_known=True).values_list("pk", flat=True)),
        set(idle.workloads),
    )
    for keys, is_known in ((now_known - was_known, True), (was_known - now_known, False)):
        for chunk in split_chunks(sorted(keys)):
            Workload.objects.filter(pk__in=chunk).update(is_use_known=is_known)
    return frozenset(begun | (marked - unused))


def load_gpu_use() -> dict[int, float]:
    """Load the newest GPU use of each workload in percent, by its series."""
    until = int(timezone.now().timestamp()) + 1
    since = until - _get_shortest_window()
    series = list(
        MetricSeries.objects.filter(workload__status__in=_ACTIVE).values_list("pk", flat=True)
    )
    newest: dict[int, float] = {}
    for chunk in split_chunks(series):
        for key, (_, frame) in load_frames(chunk, Resolution.RAW, since, until):
            value = measure_frame(frame, _GPU_USE)
            if value is not None:
                newest[key] = value
    return newest


def get_current_use(status: str, use: float | None, at: datetime | None) -> float | None:
    """Return a stored GPU use where it is of now: its workload runs, and it was measured lately."""
    if status not in UP or use is None or at is None:
        return None
    latest = max(LATEST_USE, 3 * timedelta(seconds=settings.OPTIONS.metric_seconds))
    return use if timezone.now() - at < latest else None


@dataclass(frozen=True, slots=True)
class UsedGpus:
    """GPU use added up over the devices with figures, and how many these are."""

    used: Decimal
    measured: Decimal


def load_used_gpus() -> dict[int, UsedGpus]:
    """Load the newest GPU use of each project."""
    until = int(timezone.now().timestamp()) + 1
    since = until - _get_shortest_window()
    projects = dict(
        MetricSeries.objects.filter(project__isnull=False).values_list("pk", "project_id")
    )
    used: dict[int, UsedGpus] = {}
    for chunk in split_chunks(sorted(projects)):
        for key, (_, frame) in load_frames(chunk, Resolution.RAW, since, until):
            use, measured = measure_frame(frame, _GPU_USE), frame.list_values(_MEASURED)
            if use is not None and measured and measured[0] == measured[0]:
                gpus = Decimal(round(measured[0], 3))
                used[projects[key]] = UsedGpus(Decimal(round(use * measured[0] / 100, 3)), gpus)
    return used


def _load_use(workloads: Iterable[uuid.UUID], since: int, until: int) -> dict[int, GpuUse]:
    """Load the use of pods between two moments: what was used once in it is not unused."""
    use: dict[int, GpuUse] = {}
    for chunk in split_chunks(sorted(workloads)):
        series = list(MetricSeries.objects.filter(workload__in=chunk).values_list("pk", flat=True))
        for _, (at, frame) in load_frames(series, Resolution.RAW, since, until):
            measured, unused = frame.list_values(_MEASURED), frame.list_values(_UNUSED)
            # A pod whose devices have no figure in one frame may have them in another.
            for key, number, without in zip(frame.ids, measured, unused, strict=False):
                if number == number and without == without:
                    gpu_use = use.setdefault(key, GpuUse(number, without))
                    gpu_use.measured = min(gpu_use.measured, number)
                    gpu_use.unused = min(gpu_use.unused, without)
                    gpu_use.at = at
    # Where the newest figure is old, nothing is known of now.
    newest = until - _get_shortest_window()
    return {key: pod_use for key, pod_use in use.items() if pod_use.at >= newest}


def _get_shortest_window() -> int:
    return max(SHORTEST_WINDOW, 2 * settings.OPTIONS.metric_seconds)


def _load_gpu_pods() -> Iterator[GpuPod]:
    running = Pod.objects.filter(
        phase="Running", vanished_at=None, gpus__gt=0, attempt=F("workload__attempt")
    )
    rows = running.filter(workload__status__in=_ACTIVE, workload__released_at=None).order_by()
    columns = ("pk", "workload_id", "workload__project_id", "gpus")
    for row in rows.values_list(*columns).iterator(chunk_size=2000):
        yield GpuPod(*row)

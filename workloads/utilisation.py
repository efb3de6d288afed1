"""Which allocated GPUs are unused, as each cluster's Prometheus reports.

What it does not report stays unknown.
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.db.models import F, Max
from django.utils import timezone

from clusters import prometheus
from clusters.models import Cluster
from clusters.prometheus import GpuUse, PrometheusError
from console import url_safety
from workloads.models import Pod, Sample, Workload
from workloads.states import ACTIVE

log = logging.getLogger(__name__)

CONCURRENT_CLUSTERS = 8
"""Clusters that are queried at the same time."""
SHORTEST_WINDOW = 60
"""Seconds of the shortest window: exporters are usually scraped twice a minute."""
CHUNK = 500

_ACTIVE = [status.value for status in ACTIVE]


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that holds GPUs, or a part of one."""

    workload: uuid.UUID
    project: int
    cluster: uuid.UUID
    namespace: str
    name: str
    gpus: Decimal


@dataclass(slots=True)
class IdleGpus:
    """What is known of the use of allocated GPUs."""

    workloads: dict[uuid.UUID, bool] = field(default_factory=dict)
    """Whether none of a workload's GPUs is used; a workload of unknown use is missing."""
    projects: dict[int, Decimal | None] = field(default_factory=dict)
    """How many of a project's GPUs are unused; None where that is not known of all of them."""


def judge_gpu_use(pods: Iterable[GpuPod], use: Mapping[uuid.UUID, GpuUse]) -> IdleGpus:
    """Return which workloads' GPUs are idle, by the figures of each cluster.

    Pure. A workload is known when each of its pods has a figure for each of its devices. A part of
    a device has no figure of its own.
    """
    unknown: set[uuid.UUID] = set()
    is_used: dict[uuid.UUID, bool] = defaultdict(bool)
    idle: dict[int, Decimal] = defaultdict(Decimal)
    blind: set[int] = set()
    for pod in pods:
        percent_by_device = (
            use[pod.cluster].devices_of(pod.namespace, pod.name) if pod.cluster in use else {}
        )
        # Creates the entry: a project whose GPUs are all used has 0 idle, not an unknown number.
        idle[pod.project] += 0
        if pod.gpus != int(pod.gpus) or len(percent_by_device) < pod.gpus:
            unknown.add(pod.workload)
            blind.add(pod.project)
            continue
        unused = sum(percent == 0 for percent in percent_by_device.values())
        is_used[pod.workload] |= unused < len(percent_by_device)
        idle[pod.project] += min(Decimal(unused), pod.gpus)
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


def measure_gpu_use(seconds: int) -> IdleGpus:
    """Query every cluster's Prometheus for the last seconds, and judge all pods with GPUs.

    Writes nothing.
    """
    window = max(seconds, SHORTEST_WINDOW)
    clusters = (
        Cluster.objects.in_use()
        .exclude(prometheus_url="")
        .values_list("pk", "name", "prometheus_url", "is_local")
    )
    cluster_rows = list(clusters)
    with ThreadPoolExecutor(CONCURRENT_CLUSTERS, thread_name_prefix="prometheus") as threads:
        answers = threads.map(
            lambda row: _fetch_use(row[0], row[1], row[2], row[3], window), cluster_rows
        )
        use = {
            cluster[0]: cluster_use
            for cluster, cluster_use in zip(cluster_rows, answers, strict=True)
            if cluster_use is not None
        }
    return judge_gpu_use(_load_gpu_pods(), use)


def record_idle_since(idle: IdleGpus, at: datetime, *, restart: bool = False) -> None:
    """Update `idle_since` and `is_use_known` of each workload.

    Any use, and unknown use, resets `idle_since`. With `restart` every workload begins anew: after
    a long pause nothing is known of the time before.
    """
    unused = [key for key, is_idle in idle.workloads.items() if is_idle]
    for chunk in _split_chunks(unused):
        rows = Workload.objects.filter(pk__in=chunk)
        (rows if restart else rows.filter(idle_since=None)).update(idle_since=at)
    marked = Workload.objects.filter(idle_since__isnull=False).values_list("pk", flat=True)
    for chunk in _split_chunks(sorted(set(marked) - set(unused))):
        Workload.objects.filter(pk__in=chunk).update(idle_since=None)
    was_known, now_known = (
        set(Workload.objects.filter(is_use_known=True).values_list("pk", flat=True)),
        set(idle.workloads),
    )
    for keys, is_known in ((now_known - was_known, True), (was_known - now_known, False)):
        for chunk in _split_chunks(sorted(keys)):
            Workload.objects.filter(pk__in=chunk).update(is_use_known=is_known)


def _fetch_use(pk: uuid.UUID, name: str, url: str, is_local: bool, seconds: int) -> GpuUse | None:
    try:
        return prometheus.fetch_gpu_use(
            url,
            seconds=seconds,
            find_address_problem=url_safety.build_cluster_policy(is_local=is_local).find_ip_problem,
        )
    except PrometheusError as error:
        log.warning("cluster %s (%s) does not tell how its GPUs are used: %s", name, pk, error)
        return None


def _load_gpu_pods() -> Iterator[GpuPod]:
    running = Pod.objects.filter(
        phase="Running", vanished_at=None, gpus__gt=0, attempt=F("workload__attempt")
    )
    rows = running.filter(workload__status__in=_ACTIVE, workload__released_at=None).order_by()
    columns = (
        "workload_id",
        "workload__project_id",
        "workload__cluster_id",
        "workload__project__namespace",
        "name",
        "gpus",
    )
    for row in rows.values_list(*columns).iterator(chunk_size=2000):
        yield GpuPod(*row)


def _split_chunks(keys: Sequence[uuid.UUID]) -> Iterator[Sequence[uuid.UUID]]:
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))

"""Which GPUs that workloads hold are not used, as the Prometheus of their clusters tells. What it
does not tell stays unknown.
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
"""Clusters that are asked at the same time."""
SHORTEST_WINDOW = 60
"""Seconds of the window at least: an exporter is read twice a minute as a rule."""
CHUNK = 500

_ACTIVE = [status.value for status in ACTIVE]


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that holds devices, or a part of one."""

    workload: uuid.UUID
    project: int
    cluster: uuid.UUID
    namespace: str
    name: str
    gpus: Decimal


@dataclass(slots=True)
class IdleGpus:
    """What is known of the use of held GPUs."""

    workloads: dict[uuid.UUID, bool] = field(default_factory=dict)
    """Whether none of its GPUs is used; one of which nobody knows is not in it."""
    projects: dict[int, Decimal | None] = field(default_factory=dict)
    """How many of its GPUs are not used; None where that is not known of all of them."""


def judge_gpu_use(pods: Iterable[GpuPod], use: Mapping[uuid.UUID, GpuUse]) -> IdleGpus:
    """What the figures of each cluster say of the pods that hold something. Pure.

    A workload is known when each of its pods has a figure for each of its devices. A part of a
    device has none of its own.
    """
    unknown: set[uuid.UUID] = set()
    is_used: dict[uuid.UUID, bool] = defaultdict(bool)
    idle: dict[int, Decimal] = defaultdict(Decimal)
    blind: set[int] = set()
    for pod in pods:
        told = use[pod.cluster].devices_of(pod.namespace, pod.name) if pod.cluster in use else {}
        idle[pod.project] += 0
        if pod.gpus != int(pod.gpus) or len(told) < pod.gpus:
            unknown.add(pod.workload)
            blind.add(pod.project)
            continue
        unused = sum(percent == 0 for percent in told.values())
        is_used[pod.workload] |= unused < len(told)
        idle[pod.project] += min(Decimal(unused), pod.gpus)
    return IdleGpus(
        workloads={key: not used for key, used in is_used.items() if key not in unknown},
        projects={key: None if key in blind else number for key, number in idle.items()},
    )


def find_latest_sample_time() -> datetime | None:
    """The moment of the newest samples; None where there are none that still tell something of now.
    One query.
    """
    at: datetime | None = Sample.objects.aggregate(at=Max("at"))["at"]
    fresh = timedelta(seconds=3 * settings.OPTIONS.sample_seconds + 60)
    return at if at is not None and timezone.now() - at <= fresh else None


def measure_gpu_use(seconds: int) -> IdleGpus:
    """Ask every cluster that has a Prometheus for so many seconds until now, and judge all pods
    that hold something. Writes nothing.
    """
    window = max(seconds, SHORTEST_WINDOW)
    asked = (
        Cluster.objects.in_use()
        .exclude(prometheus_url="")
        .values_list("pk", "name", "prometheus_url", "is_local")
    )
    found = list(asked)
    with ThreadPoolExecutor(CONCURRENT_CLUSTERS, thread_name_prefix="prometheus") as threads:
        answers = threads.map(lambda row: _fetch_use(row[0], row[1], row[2], row[3], window), found)
        use = {
            cluster[0]: told
            for cluster, told in zip(found, answers, strict=True)
            if told is not None
        }
    return judge_gpu_use(_load_gpu_pods(), use)


def record_idle_since(idle: IdleGpus, at: datetime, *, restart: bool = False) -> None:
    """`idle_since` of each workload as it is known at this moment: any use, and not knowing, begins
    anew.

    So does, with `anew`, everything: nobody has looked for so long that nothing is known of the
    time before.
    """
    unused = [key for key, is_idle in idle.workloads.items() if is_idle]
    for some in _split_chunks(unused):
        rows = Workload.objects.filter(pk__in=some)
        (rows if restart else rows.filter(idle_since=None)).update(idle_since=at)
    marked = Workload.objects.filter(idle_since__isnull=False).values_list("pk", flat=True)
    for some in _split_chunks(sorted(set(marked) - set(unused))):
        Workload.objects.filter(pk__in=some).update(idle_since=None)
    was_known, known = (
        set(Workload.objects.filter(use_known=True).values_list("pk", flat=True)),
        set(idle.workloads),
    )
    for keys, is_known in ((known - was_known, True), (was_known - known, False)):
        for some in _split_chunks(sorted(keys)):
            Workload.objects.filter(pk__in=some).update(use_known=is_known)


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

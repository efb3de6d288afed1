"""Loading what the ledger needs of a cluster's span: pods, figures, counters, pools.

A constant number of queries for a batch of workloads.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils import timezone

from clusters import connections
from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.models import Node, NodePool
from console.chunks import split_chunks
from workloads.journal.cluster_events import parse_moment
from workloads.kube_objects import find_true_condition, nested_dict, nested_list
from workloads.ledger import Figure, PodTimes
from workloads.metrics.resolutions import Resolution, get_frame_seconds, get_retention
from workloads.metrics.rows import load_frames
from workloads.models import DataPreparation, MetricSeries, Pod, RankDelivery, Workload
from workloads.pod_counts import Standing

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MOST_NODES = 20_000
LONGEST_COUNTERS = 600.0
"""Seconds that the counters of a rank are of at most, as the library keeps them."""
_FINISHED = ("Succeeded", "Failed")
_MEASURED = METRICS_BY_NAME["gpus_measured"].code
_UNUSED = METRICS_BY_NAME["gpus_unused"].code
_POWER = METRICS_BY_NAME["gpu_power"].code


@dataclass(frozen=True, slots=True)
class HoldingPod:
    """A pod with GPUs, and where it is."""

    key: int
    workload: uuid.UUID
    attempt: int
    node: str
    times: PodTimes


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a workload is, in the names that the ledger keeps."""

    project: int
    user: str
    name: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A node pool with its price and power; key 0 stands for nodes without one."""

    key: int = 0
    name: str = ""
    price: Decimal | None = None
    currency: str = ""
    watts: int | None = None


NO_POOL = Pool()


def to_milliseconds(moment: datetime) -> int:
    """Return milliseconds since 1970."""
    return (moment - EPOCH) // MILLISECOND


def load_pods(cluster_id: uuid.UUID, begin: datetime, end: datetime) -> Sequence[HoldingPod]:
    """Load the pods with GPUs that existed between two moments. Two queries, and one for each
    500 pods that were not ready before.
    """
    rows = (
        Pod.objects.filter(
            Q(vanished_at=None) | Q(vanished_at__gt=begin),
            Q(ended_at=None) | Q(ended_at__gt=begin),
            gpus__gt=0,
            created_at__lt=end,
            workload__cluster=cluster_id,
        )
        .exclude(standing=Standing.FOREIGN)
        .order_by()
        .only(
            *("workload_id", "attempt", "node", "phase", "gpus", "is_ready"),
            *("created_at", "started_at", "ready_at", "ended_at", "vanished_at"),
        )
    )
    pods = list(rows.iterator(chunk_size=2000))
    unclear = [pod.pk for pod in pods if pod.node and not _is_ready_before(pod, begin)]
    lead = connections.clock_offset(cluster_id)
    moments: dict[int, _Moments] = {}
    for chunk in split_chunks(unclear):
        for key, data in Pod.objects.filter(pk__in=chunk).values_list("pk", "data"):
            moments[key] = _read_moments(data, lead)
    return [_build_pod(pod, moments.get(pod.pk, _NO_MOMENTS), begin) for pod in pods]


def _find_ready_time(pod: Pod) -> datetime | None:
    return pod.ready_at if pod.is_ready and pod.started_at is not None else None


def _is_ready_before(pod: Pod, begin: datetime) -> bool:
    """Return whether a pod runs for the whole span, so that its object need not be read.

    One that became ready later may have run long before: it was not ready for a while.
    """
    ready = _find_ready_time(pod)
    return ready is not None and ready <= begin


class _Moments(NamedTuple):
    """What a pod's object tells; None where it does not."""

    scheduled: datetime | None = None
    running: datetime | None = None
    """When all its containers ran."""
    disrupted: datetime | None = None


_NO_MOMENTS = _Moments()


def _read_moments(data: Any, lead: timedelta) -> _Moments:
    statuses = nested_list(data, "status", "containerStatuses")
    starts = [parse_moment(_find_first_start(each), lead) for each in statuses]
    known = [each for each in starts if each is not None]
    running = max(known) if known and len(known) == len(starts) else None
    return _Moments(
        _find_transition(data, "PodScheduled", lead),
        running,
        _find_transition(data, "DisruptionTarget", lead),
    )


def _find_transition(data: Any, kind: str, lead: timedelta) -> datetime | None:
    """Return since when a condition is True; None where it is not."""
    true = find_true_condition(data, kind) or {}
    return parse_moment(true.get("lastTransitionTime"), lead)


def _find_first_start(status: dict[str, Any]) -> str:
    for state in ("lastState", "state"):
        for name in ("running", "terminated"):
            if started := nested_dict(status, state, name).get("startedAt"):
                return str(started)
    return ""


def _build_pod(pod: Pod, moments: _Moments, begin: datetime) -> HoldingPod:
    placed = pod.started_at or moments.scheduled if pod.node else None
    runs = [each for each in (_find_ready_time(pod), moments.running) if each is not None]
    ends = [each for each in (pod.ended_at, pod.vanished_at) if each is not None]
    if pod.phase in _FINISHED and pod.ended_at is None:
        # Nobody says when its containers ended, as where the node was lost.
        if moments.disrupted is not None and moments.disrupted <= timezone.now():
            ends.append(max(moments.disrupted, begin))
        elif not ends:
            # From here on it holds nothing.
            ends.append(begin)
    times = PodTimes(
        int((pod.gpus or 0) * 1000),
        created=_convert(pod.created_at),
        placed=_convert(placed),
        running=_convert(min(runs, default=None)),
        ended=_convert(min(ends, default=None)),
    )
    return HoldingPod(pod.pk, pod.workload_id, pod.attempt, pod.node, times)


def _convert(moment: datetime | None) -> int | None:
    return None if moment is None else to_milliseconds(moment)


def load_owners(workloads: Sequence[uuid.UUID]) -> Mapping[uuid.UUID, Owner]:
    """Load whose these workloads are. One query."""
    rows = Workload.objects.filter(pk__in=workloads).order_by()
    columns = ("pk", "project_id", "submitted_by__username", "name")
    return {
        key: Owner(project, user or "", name)
        for key, project, user, name in rows.values_list(*columns)
    }


def load_figures(
    workloads: Sequence[uuid.UUID], begin: datetime, end: datetime
) -> Mapping[int, Sequence[Figure]]:
    """Load what was measured of the pods of workloads between two moments, by pod. Two queries."""
    series = list(MetricSeries.objects.filter(workload__in=workloads).values_list("pk", flat=True))
    kept_since = timezone.now() - get_retention(Resolution.MINUTE) + timedelta(hours=1)
    resolution = Resolution.MINUTE if begin >= kept_since else Resolution.TEN_MINUTES
    seconds = get_frame_seconds(resolution)
    since, until = int(begin.timestamp()), int(end.timestamp())
    figures: dict[int, list[Figure]] = defaultdict(list)
    if not series:
        return figures
    for _, (at, frame) in load_frames(series, resolution, since - seconds + 1, until):
        measured, unused = frame.list_values(_MEASURED), frame.list_values(_UNUSED)
        if not measured or not unused:
            continue
        watts = frame.list_values(_POWER) or [float("nan")] * len(frame.ids)
        rows = zip(frame.ids, measured, unused, watts, frame.list_presence(), strict=True)
        for key, number, without, power, share in rows:
            if number == number and without == without:
                covered = round(1000 * seconds * share)
                known_power = power if power == power else None
                figures[key].append(
                    Figure(at * 1000, (at + seconds) * 1000, covered, number, without, known_power)
                )
    return figures


def load_waiting_shares(
    workloads: Sequence[uuid.UUID], begin: datetime, end: datetime
) -> Mapping[tuple[uuid.UUID, int], float]:
    """Load which share of the time the ranks of attempts waited for data, by their counters.

    Counters are of some minutes: those of other times say nothing of these. One query.
    """
    rows = RankDelivery.objects.filter(
        workload__in=workloads, at__gte=begin, at__lte=end + timedelta(hours=1)
    ).order_by()
    sums: dict[tuple[uuid.UUID, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    columns = ("workload_id", "attempt", "at", "span", "waited", "computed")
    for workload, attempt, at, span, waited, computed in rows.values_list(*columns):
        # Rows from before lines were bounded may tell any number.
        since = at - timedelta(seconds=min(span, LONGEST_COUNTERS))
        overlap = min(end, at) - max(begin, since)
        if 2 * overlap >= end - begin:
            sums[workload, attempt][0] += max(0.0, waited)
            sums[workload, attempt][1] += max(0.0, computed)
    return {
        key: waited / (waited + computed)
        for key, (waited, computed) in sums.items()
        if waited + computed > 0
    }


def load_preparing(
    cluster_id: uuid.UUID, begin: datetime, end: datetime
) -> Iterator[tuple[uuid.UUID, int, int, int]]:
    """Yield workload, milli-GPUs, begin and end of what prepared its data instead of holding GPUs.

    One query.
    """
    rows = DataPreparation.objects.filter(
        Q(is_open=True)
        | Q(resumed_at__gt=begin)
        | Q(failed_at__gt=begin)
        | Q(workload__ended_at__gt=begin),
        wanted__gt=0,
        created_at__lt=end,
        workload__cluster=cluster_id,
    ).order_by()
    columns = (
        *("workload_id", "attempt", "workload__attempt", "workload__gpus_requested"),
        *("created_at", "resumed_at", "failed_at", "workload__ended_at"),
    )
    for workload, attempt, newest, gpus, created, *moments in rows.values_list(*columns):
        until = min((each for each in moments if each is not None), default=end)
        if attempt == newest and until > begin:
            yield workload, int(gpus * 1000), to_milliseconds(created), to_milliseconds(until)


def load_pools(cluster_id: uuid.UUID) -> Mapping[str, Pool]:
    """Load the pool of each node that has one, by the node's name. Two queries.

    Of several pools, the first by name that has a price; else the first by name.
    """
    pools = sorted(
        NodePool.objects.filter(cluster=cluster_id),
        key=lambda each: (each.gpu_hour_price is None, each.name),
    )
    if not pools:
        return {}
    rows = Node.objects.filter(cluster=cluster_id).order_by().values_list("name", "labels")
    by_node = {}
    for name, labels in rows[:MOST_NODES]:
        pool = next((each for each in pools if each.matches_labels(labels)), None)
        if pool is not None:
            by_node[name] = Pool(
                pool.pk, pool.name, pool.gpu_hour_price, pool.currency, pool.gpu_watts
            )
    return by_node

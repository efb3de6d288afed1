"""What pages show of the figures of a workload's pods: the newest, and those of a time."""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from clusters.metrics.catalogue import METRICS, Metric
from clusters.models import Node
from workloads.metrics.frames import Frame
from workloads.metrics.packing import COUNTED, pack_figures
from workloads.metrics.reading import (
    MOST_FILE_BYTES,
    LastingFrame,
    Span,
    choose_spacing,
    describe_reading,
    find_series,
    iterate_series_frames,
    load_series_rows,
)
from workloads.metrics.words import format_figure
from workloads.models import Event, Workload
from workloads.states import Status

VIRTUAL_PRODUCT: Final = "Virtual-GPU"
"""What the embedded cluster calls devices that compute nothing."""
NEWEST_SECONDS: Final = 120
"""How old the newest figures may be, where it is measured often."""
MOST_PODS: Final = 4096
"""Pods whose figures a page names; the newest attempts first."""
MOST_MARKS: Final = 200
UNCOUNTED: Final = -1
"""Pods that are left out, and nobody counted."""


@dataclass(frozen=True, slots=True)
class NewestFigure:
    """A metric over all pods of a workload, at the newest moment."""

    metric: Metric
    least: str
    median: str
    most: str


@dataclass(frozen=True, slots=True)
class MetricsView:
    """What is known of the figures of a workload, before any of them is drawn."""

    at: datetime | None
    """The moment of the newest figures; None where there are none of the last minutes."""
    newest: Sequence[NewestFigure]
    pods: int
    """How many pods the newest figures are of."""
    has_any: bool
    """Whether anything was ever measured."""
    problem: str
    """Why the cluster's sources gave less than there should be, at the last sweep."""
    has_virtual_gpus: bool
    has_shares: bool
    """Whether pods have parts of devices: figures of GPUs are then those of whole devices."""


def view_metrics(workload: Workload) -> MetricsView:
    """Return what is known of the workload's figures. It is loaded with its cluster."""
    series = find_series(workload=workload)
    now = timezone.now()
    frames: list[LastingFrame] = []
    if series is not None:
        until = int(now.timestamp()) + 1
        span = Span(until - _get_newest_seconds(), until)
        frames = list(iterate_series_frames(series, span, now))
    at, newest = None, list[NewestFigure]()
    if frames:
        seconds, _, frame = frames[-1]
        at = datetime.fromtimestamp(seconds, UTC)
        for metric in METRICS:
            if metric.name in COUNTED:
                continue
            values = [each for each in frame.list_values(metric.code) if each == each]
            # Faults are shown where there are any.
            if any(values) if metric.is_fault else values:
                figures = (min(values), statistics.median(values), max(values))
                words = [format_figure(each, metric.unit) for each in figures]
                newest.append(NewestFigure(metric, *words))
    gpus = workload.pods.filter(attempt=workload.attempt, gpus__gt=0).values_list("gpus", "node")
    holdings = list(gpus[:MOST_PODS])
    return MetricsView(
        at,
        newest,
        len(frames[-1].frame.ids) if frames else 0,
        series is not None,
        workload.cluster.metrics_problem,
        _has_virtual_gpus(workload, {node for _, node in holdings if node}),
        any(number != int(number) for number, _ in holdings if number is not None),
    )


def pack_metrics(workload: Workload, span: Span, after: int | None = None) -> bytes:
    """Return the figures of the span as the page's script reads them.

    With `after` those until then may be missing: the script has them.
    """
    now = timezone.now()
    series = find_series(workload=workload)
    pods = list_measured_pods(workload, span)
    spacing = choose_spacing(span, now, _count_pods_at_once(workload, pods))
    new_span = span.begin_after(after, now)
    rows = [] if series is None else load_series_rows([series], new_span, now, spacing)
    head = describe_reading(span, now, spacing)
    head |= {"pods": pods, "marks": list_marks(workload, span), "hidden": 0}
    if len(pods) == MOST_PODS:
        head["hidden"] = max(0, workload.requested_pods - MOST_PODS) or UNCOUNTED
    return pack_figures(head, ((0, start, data) for _, start, data in rows))


def _count_pods_at_once(workload: Workload, pods: Sequence[Mapping[str, Any]]) -> int:
    """Return about how many pods a frame has: those of other attempts do not run beside them."""
    by_attempt = Counter(pod["attempt"] for pod in pods)
    return max(workload.requested_pods, *by_attempt.values(), 0)


def iterate_frames(workload: Workload, span: Span) -> Iterator[tuple[datetime, Frame]]:
    """Yield the moments and frames of the span, in order; of many pods some are left out."""
    series, now = find_series(workload=workload), timezone.now()
    if series is None:
        return
    spacing = choose_spacing(span, now, workload.requested_pods, MOST_FILE_BYTES)
    for at, _, frame in iterate_series_frames(series, span, now, spacing):
        yield datetime.fromtimestamp(at, UTC), frame


def list_measured_pods(workload: Workload, span: Span) -> list[dict[str, Any]]:
    """Return the pods that ran in the span, the present attempt first, by rank. One query."""
    since, until = (datetime.fromtimestamp(at, UTC) for at in (span.since, span.until))
    pods = workload.pods.filter(
        Q(started_at=None) | Q(started_at__lt=until),
        Q(ended_at=None) | Q(ended_at__gte=since),
        Q(vanished_at=None) | Q(vanished_at__gte=since),
    )
    columns = ("pk", "name", "attempt", "rank", "node", "gpus")
    return [
        {
            "id": pk,
            "name": name,
            "attempt": attempt,
            "rank": rank,
            "node": node,
            "isShare": gpus is not None and gpus != int(gpus),
        }
        for pk, name, attempt, rank, node, gpus in pods.order_by(
            "-attempt", "rank", "pk"
        ).values_list(*columns)[:MOST_PODS]
    ]


def list_marks(workload: Workload, span: Span) -> list[dict[str, Any]]:
    """Return the changes of status in the span, the newest last: what charts are marked with."""
    since, until = (datetime.fromtimestamp(at, UTC) for at in (span.since, span.until))
    events = Event.objects.filter(
        workload=workload, kind=Event.Kind.STATUS, at__gte=since, at__lt=until
    )
    rows = events.order_by("-at", "-pk").values_list("at", "new", "attempt")[:MOST_MARKS]
    return [
        {
            "at": at.timestamp(),
            "title": _describe_status(status, attempt),
            "isRestart": status == Status.CREATING.value and attempt > 1,
        }
        for at, status, attempt in reversed(rows)
    ]


def _get_newest_seconds() -> int:
    # A sweep is stored under a moment up to one interval before, and the next comes one later.
    return max(NEWEST_SECONDS, 3 * settings.OPTIONS.metric_seconds)


def _has_virtual_gpus(workload: Workload, nodes: set[str]) -> bool:
    if not nodes or not workload.cluster.is_local:
        return False
    rows = Node.objects.filter(cluster=workload.cluster_id, name__in=nodes)
    return rows.filter(gpu_type=VIRTUAL_PRODUCT).exists()


def _describe_status(status: str, attempt: int) -> str:
    label = next((each.label for each in Status if each.value == status), status)
    return label if attempt == 1 else f"{label} (attempt {attempt})"

"""Loading what the radar knows of running workloads, a constant number of queries for many."""

import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Count, F, Max, Q

from clusters import connections
from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.models import Node
from workloads import logbook
from workloads.kube_objects import DATA_WORKER
from workloads.logbook import stamps
from workloads.logbook.attempt_state import has_capture_ended
from workloads.logbook.collecting import WAITING_NOTE
from workloads.metrics.resolutions import Resolution
from workloads.metrics.rows import load_frames
from workloads.models import Log, LossCurve, MetricSeries, Pod, RankProgress, Workload
from workloads.pod_counts import Standing
from workloads.quantities import format_count, parse_or_zero
from workloads.radar import LaggingReport, NodeEvidence, RankEvidence, WorkloadEvidence
from workloads.specs import Spec
from workloads.states import Status
from workloads.training_progress import Lagging, RankState, decode_history

logger = logging.getLogger(__name__)

MOST_RANKS = 2048
"""Ranks of a workload that are compared, the first ones; the logs of more say little more."""
FIGURES = (
    "cpu",
    "memory",
    "gpu_use",
    "gpu_power",
    "sm_clock",
    "disk_written",
    "xid",
    "ecc_errors",
    "nvlink_errors",
)
_CODES = {name: METRICS_BY_NAME[name].code for name in FIGURES}
MOST_FIGURES = 60_000
"""Figures of a metric that are read of a workload: of many ranks a shorter time."""
LONGEST_FIGURES = timedelta(minutes=30)
SHORTEST_FIGURES = timedelta(minutes=4)
TAIL_BYTES = 4096
MOST_LINE = 300
FAILED_DAYS = timedelta(days=7)
MOST_FAILED = 100
MOST_NODES = 5
_ENDED = ("Succeeded", "Failed")

Figures = Mapping[int, Mapping[str, Sequence[tuple[float, float]]]]
"""Points by the names of metrics, by the pod's row."""
_WAITING = WAITING_NOTE.partition("{")[0]
"""How the note of a log begins that waits for its turn."""


@dataclass(frozen=True, slots=True)
class _Capture:
    """What is captured of a pod's logs: when it printed last, by its cluster's clock.

    `is_going_on` is False where one of them is not read now, as its note says.
    """

    line_at: datetime | None = None
    is_going_on: bool = True


@dataclass(slots=True)
class Target:
    """A workload that is looked at, with its spec."""

    workload: Workload
    spec: Spec
    evidence: WorkloadEvidence | None = None
    """None where it cannot be read."""
    pods: Sequence[Pod] = field(default=())


def load_evidence(targets: Sequence[Target], now: datetime) -> None:
    """Load what lines and pods tell of these workloads. Six queries."""
    by_id = {each.workload.pk: each for each in targets}
    pods = _load_pods(list(by_id))
    captures = _load_captures([pod.pk for rows in pods.values() for pod in rows])
    progress: dict[uuid.UUID, dict[int, RankProgress]] = defaultdict(dict)
    for row in RankProgress.objects.filter(
        workload__in=by_id, rank__lt=MOST_RANKS, attempt=F("workload__attempt")
    ).order_by():
        progress[row.workload_id][row.rank] = row
    curves = dict(
        LossCurve.objects.filter(workload__in=by_id).order_by().values_list("workload", "history")
    )
    nodes = _load_nodes(pods, by_id)
    for key, target in by_id.items():
        target.pods = pods.get(key, ())
        try:
            target.evidence = _build_evidence(
                target, progress[key], captures, nodes, curves.get(key), now
            )
        except Exception:
            # Whatever is stored of one workload, the others are looked at.
            logger.exception("what is known of workload %s cannot be read", key)


def load_figures(workload: Workload, evidence: WorkloadEvidence, is_due: bool) -> WorkloadEvidence:
    """Return the evidence with what the pods used: of the last minutes, when due of half an hour.

    Two queries; when due another one for each node that looks faulty.
    """
    rows = MetricSeries.objects.filter(workload=workload)
    key = rows.values_list("pk", flat=True).first()
    if key is not None:
        seconds = SHORTEST_FIGURES.total_seconds()
        if is_due:
            points = MOST_FIGURES / max(1, len(evidence.ranks))
            seconds = max(seconds, min(LONGEST_FIGURES.total_seconds(), 15 * points))
        until = int(evidence.now) + 1
        figures = _load_figures(key, until - int(seconds), until)
        ranks = [replace(each, figures=figures.get(each.pod, {})) for each in evidence.ranks]
        evidence = replace(evidence, ranks=ranks)
    return _add_failures(workload, evidence) if is_due else evidence


def load_last_lines(suspects: Sequence[RankEvidence]) -> Mapping[int, str]:
    """Load what these ranks printed last. A query and a short reading for each."""
    return {each.rank: _read_last_line(each.pod) for each in suspects}


def _add_failures(workload: Workload, evidence: WorkloadEvidence) -> WorkloadEvidence:
    """Add how many other workloads failed on nodes that look faulty. A query for each."""
    faulty = {
        each.node
        for each in evidence.ranks
        if any(value for name in _FAULTS for _, value in each.figures.get(name, ()))
    } | {name for name, node in evidence.nodes.items() if not node.is_ready}
    nodes = dict(evidence.nodes)
    for name in sorted(faulty - {""})[:MOST_NODES]:
        node_evidence = nodes.get(name, NodeEvidence(name))
        count = _count_failures(name, workload, evidence.now)
        nodes[name] = replace(node_evidence, failed_elsewhere=count)
    return replace(evidence, nodes=nodes)


def _count_failures(node: str, workload: Workload, now: float) -> int:
    """Count the other workloads of the project that failed on a node of late. One query.

    Those of other projects are not everybody's to know of.
    """
    rows = Pod.objects.filter(
        node=node,
        phase="Failed",
        workload__cluster=workload.cluster_id,
        workload__project=workload.project_id,
        workload__status=Status.FAILED,
        workload__ended_at__gte=datetime.fromtimestamp(now, UTC) - FAILED_DAYS,
    ).exclude(workload=workload.pk)
    return len(set(rows.order_by().values_list("workload", flat=True)[:MOST_FAILED]))


_FAULTS = ("xid", "ecc_errors", "nvlink_errors")


def _load_pods(workloads: Sequence[uuid.UUID]) -> Mapping[uuid.UUID, Sequence[Pod]]:
    """Load the newest pod of each rank, by workload. One query."""
    rows = (
        Pod.objects.filter(
            Q(rank=None) | Q(rank__lt=MOST_RANKS),
            workload__in=workloads,
            attempt=F("workload__attempt"),
            vanished_at=None,
        )
        .exclude(role=DATA_WORKER)
        .exclude(standing=Standing.FOREIGN)
        .order_by("created_at", "pk")
        .only(
            *("workload", "name", "rank", "role", "phase", "status", "reason", "node"),
            *("started_at", "ended_at"),
        )
    )
    newest: dict[uuid.UUID, dict[Any, Pod]] = defaultdict(dict)
    for pod in rows:
        newest[pod.workload_id][0 if pod.rank is None else pod.rank] = pod
    return {
        key: sorted(by_rank.values(), key=lambda pod: pod.rank or 0)
        for key, by_rank in newest.items()
    }


def _load_captures(pods: Sequence[int]) -> Mapping[int, _Capture]:
    """Load what is captured of each pod's logs. One query."""
    # A log that waits for its turn is captured: that comes soon, and in turn to all.
    has_stopped = Q(state=Log.State.CAPTURING) & ~Q(note="") & ~Q(note__startswith=_WAITING)
    logs = Log.objects.filter(pod__in=pods, is_init=False).order_by().values_list("pod")
    rows = logs.annotate(newest=Max("last_at"), stopped=Count("pk", filter=has_stopped))
    return {pod: _Capture(newest, is_going_on=not stopped) for pod, newest, stopped in rows}


def _load_nodes(
    pods: Mapping[uuid.UUID, Sequence[Pod]], targets: Mapping[uuid.UUID, Target]
) -> Mapping[tuple[uuid.UUID, str], Node]:
    """Load the nodes of these pods, by cluster and name. One query."""
    names = {pod.node for rows in pods.values() for pod in rows if pod.node}
    clusters = {each.workload.cluster_id for each in targets.values()}
    rows = Node.objects.filter(cluster__in=clusters, name__in=names).order_by()
    return {
        (row.cluster_id, row.name): row
        for row in rows.only("cluster", "name", "is_ready", "trouble", "memory")
    }


def _build_evidence(
    target: Target,
    progress: Mapping[int, RankProgress],
    captures: Mapping[int, _Capture],
    nodes: Mapping[tuple[uuid.UUID, str], Node],
    curve: Any,
    now: datetime,
) -> WorkloadEvidence:
    workload = target.workload
    lead = connections.clock_offset(workload.cluster_id)
    is_captured = not has_capture_ended(workload.cluster.captured_until, now)
    processes = partial(_count_processes, workload.requested_pods, int(workload.gpus_allocated))
    ranks = []
    for pod in target.pods:
        node = nodes.get((workload.cluster_id, pod.node))
        capture = captures.get(pod.pk, _Capture())
        line_at = None if capture.line_at is None else min(now, capture.line_at - lead)
        limit = _find_memory_limit(target.spec, node)
        row = progress.get(pod.rank or 0)
        rank = _build_rank(pod, row, line_at, limit, processes)
        ranks.append(replace(rank, is_captured=is_captured and capture.is_going_on))
    named = {
        pod.node: NodeEvidence(pod.node, node.is_ready, node.trouble[:300])
        for pod in target.pods
        if (node := nodes.get((workload.cluster_id, pod.node))) is not None
    }
    gpus = workload.gpus_allocated
    return WorkloadEvidence(
        now=now.timestamp(),
        ranks=ranks,
        nodes=named,
        started_at=_to_seconds(workload.started_at),
        losses=[(at, loss) for at, _, loss in decode_history(curve).points],
        idle_since=_to_seconds(workload.idle_since),
        gpus="" if not gpus else f"Its {format_count(gpus, 'GPU')}",
        is_changing=workload.disrupted_at is not None,
    )


def _build_rank(
    pod: Pod,
    row: RankProgress | None,
    line_at: datetime | None,
    memory_limit: float | None,
    count_processes: Callable[[int], int | None],
) -> RankEvidence:
    state = RankState() if row is None else RankState(**row.state)
    has_ended = pod.phase in _ENDED
    is_done = pod.phase == "Succeeded" or (
        state.step is not None and state.total is not None and state.step >= state.total
    )
    return RankEvidence(
        rank=pod.rank or 0,
        pod=pod.pk,
        pod_name=pod.name,
        node=pod.node,
        is_running=pod.phase == "Running",
        ended_at=_to_seconds(pod.ended_at) if has_ended else None,
        end=(pod.reason or pod.status)[:120] if has_ended else "",
        started_at=_to_seconds(pod.started_at),
        line_at=_to_seconds(line_at),
        read_at=None if row is None else row.read_at.timestamp(),
        step=state.step,
        is_done=is_done,
        step_times=dict(state.step_times),
        longest_gap=state.longest_gap,
        has_bad_loss=state.has_bad_loss,
        loss_at=state.bad_loss_at,
        checkpoints=state.checkpoints,
        checkpoint_at=state.checkpoint_at,
        checkpoint_gaps=state.checkpoint_gaps,
        report=_build_report(state.lagging, count_processes),
        memory_limit=memory_limit,
    )


def _build_report(
    lagging: Lagging, count_processes: Callable[[int], int | None]
) -> LaggingReport | None:
    """Return what a log says of ranks that did not come; None where it is of a part of all."""
    processes = count_processes(lagging.size)
    if not lagging.ranks or processes is None:
        return None
    ranks = sorted({each // processes for each in lagging.ranks})
    line = lagging.line[:MOST_LINE]
    return LaggingReport(ranks, line, lagging.since, lagging.at, lagging.is_of_ras)


def _count_processes(pods: int, gpus: int, size: int) -> int | None:
    """Return how many processes each pod has: one, or one for each of its GPUs.

    A communicator of `size` ranks tells which, 0 is one of all. None where it is of a part of them,
    or where pods have different numbers of GPUs.
    """
    if pods == 0 or gpus % pods:
        return None
    each = max(1, gpus // pods)
    if size in (0, each * pods):
        return each
    return 1 if size == pods else None


def _find_memory_limit(spec: Spec, node: Node | None) -> float | None:
    """Return the bytes with which a pod is killed: its limit, or all that its node has."""
    limit = parse_or_zero(spec.setup.compute.memory_limit)
    if limit:
        return float(limit)
    return float(node.memory) if node is not None and node.memory else None


def _load_figures(series: int, since: int, until: int) -> Figures:
    figures: dict[int, dict[str, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for _, (at, frame) in load_frames([series], Resolution.RAW, since, until):
        for name, code in _CODES.items():
            for pod, value in zip(frame.ids, frame.list_values(code), strict=False):
                if value == value:
                    figures[pod][name].append((float(at), value))
    return figures


def _read_last_line(pod: int) -> str:
    """Return the last line of a pod's newest log; "" where there is none, or it is unreadable."""
    log = (
        Log.objects.filter(pod=pod, is_init=False, size__gt=0)
        .exclude(state=Log.State.REMOVED)
        .order_by(F("last_at").desc(nulls_last=True), "-run")
        .first()
    )
    if log is None:
        return ""
    try:
        content = logbook.read_tail(log, TAIL_BYTES)
    except Exception:
        # Whatever the disk or the object store's client raises, the others are looked at.
        logger.exception("the log of pod %s is unreadable", pod)
        return ""
    lines = [each for each in content.splitlines() if each.strip()]
    if not lines:
        return ""
    _, begin = stamps.parse_stamp(lines[-1][:64])
    text = lines[-1][begin:].decode("utf-8", "replace").rsplit("\r", 1)[-1].strip()
    return "".join(each for each in text if each.isprintable())[:MOST_LINE]


def _to_seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()

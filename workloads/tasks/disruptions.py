"""The step that tells in the history what took pods from workloads, and how they went on."""

import hashlib
import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import groupby, islice
from operator import itemgetter
from time import monotonic
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from clusters import connections
from clusters.tasks import claim_task
from console.celery import step
from workloads import journal, logbook
from workloads.disruptions import (
    Cause,
    Disruption,
    Line,
    Progress,
    decode_cause,
    find_pod_cause,
    parse_progress,
)
from workloads.disruptions.causes import EVICT
from workloads.journal import DisruptionRecord
from workloads.journal.cluster_events import MAX_CLOCK_LAG, parse_moment
from workloads.kube_objects import DATA_WORKER
from workloads.logbook import stamps
from workloads.models import Event, Log, Pod, Workload
from workloads.pod_counts import Standing
from workloads.quantities import format_count
from workloads.specs import UnreadableSpec, decode_spec
from workloads.states import RESTING, Status

logger = logging.getLogger(__name__)

KEY = "lost-"
"""What the keys of disruptions begin with; no event of a cluster has such a uid."""
MOST_WORKLOADS = 200
"""Workloads of one run, from the oldest disruption on; the next run goes on with the rest."""
MOST_SECONDS = 3.0
"""How long a run begins with further workloads: each may read thousands of lines."""
MOST_KEYS = 10_000
"""Disruptions of workloads that wait for their turn; beyond, what is told is looked at again."""
MOST_PODS = 500
"""Taken pods of a workload that are read; beyond, they are counted."""
MOST_NODES = 3
MOST_LOGS = 4
MOST_LINES = 20_000
"""Lines that are read of the logs of one workload in one run."""
MOST_BYTES = 8 << 20
LOG_SPAN = timedelta(seconds=30)
"""How long before a disruption the last step is looked for."""
LOG_PATIENCE = timedelta(seconds=60)
"""How long the log has to tell where training went on; then that stays unknown."""
LONGEST = timedelta(minutes=15)
"""How long a workload that runs is looked at for one disruption."""
_ENDED = frozenset({"Succeeded", "Failed"})
_UP = frozenset({Status.RUNNING, Status.DEGRADED})

_last_place: tuple[datetime, uuid.UUID] | None = None
"""The disruption and the workload that the last run ended with; None: begin with the oldest."""


@dataclass(frozen=True, slots=True)
class TakenPod:
    """A pod that was taken; `ended_at` is None while it still ends."""

    uid: str
    name: str
    cause: Cause
    at: datetime
    gpus: Decimal
    node: str
    ended_at: datetime | None


@step
def tell_disruptions() -> None:
    """Write or complete the disruptions of workloads that pods are taken from.

    May run twice or late. Where a run lasts longer than its period, the next ones are left out:
    else all threads would read the same logs.
    """
    with claim_task("disruptions", "all") as is_claimed:
        if is_claimed:
            _tell_workloads(timezone.now())


def _tell_workloads(now: datetime) -> None:
    global _last_place
    deadline = monotonic() + MOST_SECONDS
    workloads = _load_workloads()
    idle_keys = _load_idle_keys(workloads)
    place = None
    for workload in workloads:
        if place is not None and monotonic() > deadline:
            _last_place = place
            return
        if (workload.pk, _build_prefix(workload)) not in idle_keys:
            try:
                _tell_workload(workload, now)
            except Exception:
                # A log that cannot be read keeps nothing from the others.
                logger.exception("the disruption of workload %s cannot be told", workload.pk)
        assert workload.disrupted_at is not None
        place = workload.disrupted_at, workload.pk
    _last_place = place if len(workloads) == MOST_WORKLOADS else None


def _load_workloads() -> Sequence[Workload]:
    """Load the workloads with the oldest disruptions behind the place where the last run ended."""
    rows = Workload.objects.filter(disrupted_at__isnull=False)
    if _last_place is not None:
        since, key = _last_place
        rows = rows.filter(Q(disrupted_at__gt=since) | Q(disrupted_at=since, pk__gt=key))
    rows = rows.select_related("project").defer("job", "pod_group", "data_job")
    return list(rows.order_by("disrupted_at", "pk")[:MOST_WORKLOADS])


def _load_idle_keys(workloads: Iterable[Workload]) -> Collection[tuple[uuid.UUID, str]]:
    """Load which workloads wait for their turn and have their disruption in the history.

    They may wait for days: nothing is asked until they go on. Return what their keys begin with.
    """
    idle = [each.pk for each in workloads if _is_idle(each)]
    # Of a workload with a long history only the events of its present disruption are read.
    rows = Event.objects.filter(
        workload__in=idle,
        kind=Event.Kind.SCALE,
        uid__startswith=KEY,
        at__gte=F("workload__disrupted_at") - MAX_CLOCK_LAG,
    ).order_by()
    keys = rows.values_list("workload_id", "uid")[:MOST_KEYS] if idle else ()
    return {(key, find_prefix(uid)) for key, uid in keys}


def _is_idle(workload: Workload) -> bool:
    return workload.status not in _UP | RESTING and workload.running_pods == 0


def _tell_workload(workload: Workload, now: datetime) -> None:
    assert workload.disrupted_at is not None
    taken = _load_taken_pods(workload, workload.disrupted_at - MAX_CLOCK_LAG)
    status = Status(workload.status)
    is_late = now - workload.disrupted_at > LONGEST
    if not taken:
        # Its event may come after its pod, or belongs to an earlier attempt.
        is_over = is_late or now - workload.disrupted_at > LOG_PATIENCE
        journal.record_disruptions(workload.pk, workload.disrupted_at, [], is_over=is_over)
        return
    going_on, is_over = _find_going_on(workload, status, taken, now, is_late)
    records = [_build_record(workload, group, going_on) for group in _group_taken_pods(taken)]
    used_up = _describe_used_up_restarts(workload, records) if status is Status.FAILED else ""
    journal.record_disruptions(
        workload.pk, workload.disrupted_at, records, is_over=is_over, used_up=used_up
    )


def _load_taken_pods(workload: Workload, since: datetime) -> list[TakenPod]:
    """Load the pods of the attempt that were taken since then. Three queries."""
    clock_lead = connections.clock_offset(workload.cluster_id)
    rows = Pod.objects.filter(workload=workload, attempt=workload.attempt).order_by("-pk")
    is_gone = Q(vanished_at__gte=since) | Q(ended_at__gte=since)
    fields = (
        "uid",
        "name",
        "created_at",
        "gpus",
        "node",
        "phase",
        "ended_at",
        "vanished_at",
        "data",
    )
    still_there = Q(vanished_at=None, standing__in=[Standing.ENDING, Standing.FAILED])
    preempted = Q(vanished_at=None, is_preempted=True)
    taken_pods: dict[str, TakenPod] = {}
    candidates = rows.filter(is_gone | still_there | preempted)
    for pod in candidates.only(*fields)[:MOST_PODS]:
        caused = find_pod_cause(pod.data)
        if caused is None:
            continue
        at = parse_moment(caused[1], clock_lead) or pod.vanished_at or pod.ended_at
        if at is not None and at >= since:
            taken_pods[pod.uid] = _build_taken_pod(pod, caused[0], at)
    events = Event.objects.filter(
        workload=workload, attempt=workload.attempt, at__gte=since, reason=EVICT
    )
    causes: dict[str, list[tuple[Cause, datetime]]] = defaultdict(list)
    for at, stored_cause in events.order_by("at").values_list("at", "cause")[:MOST_PODS]:
        if (cause := decode_cause(stored_cause)) is not None:
            causes[cause.pod].append((cause, at))
    missing = causes.keys() - {pod.name for pod in taken_pods.values()} - {""}
    if missing:
        # The scheduler may be set to write no condition, and pods may go unseen.
        by_name: dict[str, list[Pod]] = defaultdict(list)
        for pod in rows.filter(name__in=missing).only(*fields)[:MOST_PODS]:
            by_name[pod.name].append(pod)
        for name, namesakes in by_name.items():
            for cause, at in causes[name]:
                pod = _get_pod_at(namesakes, at)
                taken_pods[pod.uid] = _build_taken_pod(pod, cause, at)
    return [replace(pod, cause=_choose_cause(pod, causes)) for pod in taken_pods.values()]


def _choose_cause(pod: TakenPod, causes: Mapping[str, Sequence[tuple[Cause, datetime]]]) -> Cause:
    """Return why a pod was taken, as its event says it if there is one.

    The event's annotations name who gets the room; the condition has but a sentence.
    """
    named = causes.get(pod.name)
    if named:
        # Pods of one name follow each other.
        return min(named, key=lambda each: abs(each[1] - pod.at))[0]
    unnamed = {cause.action: cause for cause, _ in causes.get("", ())}
    return unnamed.get(pod.cause.action, pod.cause)


def _get_pod_at(pods: Sequence[Pod], at: datetime) -> Pod:
    """Return the newest pod that was there at a moment; `pods` begin with the newest."""
    # Clocks differ: where all seem to be newer, the oldest is the nearest.
    return next((pod for pod in pods if pod.created_at and pod.created_at <= at), pods[-1])


def _build_taken_pod(pod: Pod, cause: Cause, at: datetime) -> TakenPod:
    has_ended = pod.vanished_at is not None or pod.phase in _ENDED
    ends = [each for each in (pod.ended_at, pod.vanished_at) if each is not None]
    ended_at = max(at, min(ends, default=at)) if has_ended else None
    return TakenPod(pod.uid, pod.name, cause, at, pod.gpus or Decimal(0), pod.node, ended_at)


def _group_taken_pods(taken: Iterable[TakenPod]) -> Iterator[Sequence[TakenPod]]:
    """Yield the pods that were taken for one cause together."""
    groups: dict[tuple[str, str, str], list[TakenPod]] = defaultdict(list)
    for pod in taken:
        groups[pod.cause.action, pod.cause.namespace, pod.cause.workload].append(pod)
    yield from groups.values()


def _build_prefix(workload: Workload) -> str:
    assert workload.disrupted_at is not None
    return f"{KEY}{workload.attempt}-{workload.disrupted_at.timestamp():.3f}"


def find_prefix(uid: str) -> str:
    """Return what the events of one disruption have in common: it has one for each taker."""
    return uid.rpartition("-")[0]


def _build_record(
    workload: Workload, group: Sequence[TakenPod], going_on: Mapping[str, Any]
) -> DisruptionRecord:
    cause, at = group[0].cause, min(pod.at for pod in group)
    text = f"{cause.action} {cause.namespace} {cause.workload}"
    key = f"{_build_prefix(workload)}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    pods, gpus = len(group), sum((pod.gpus for pod in group), Decimal(0))
    if pods >= MOST_PODS // 2:
        # More may have been taken than were read. So many are alike: what one holds, all hold.
        since = at - MAX_CLOCK_LAG
        still_there_or_new = Q(vanished_at=None) | Q(vanished_at__gte=since)
        taken = _filter_pods(workload).filter(still_there_or_new, is_preempted=True).count()
        pods, gpus = max(pods, taken), gpus / pods * max(pods, taken)
    disruption = Disruption(
        cause.action,
        pods,
        gpus.normalize(),
        cause.namespace,
        cause.workload,
        nodes=tuple(sorted({pod.node for pod in group if pod.node})[:MOST_NODES]),
        pods_before=_count_pods_at(workload, at),
        **going_on,
    )
    is_own = cause.namespace == workload.project.namespace
    taker = "another project" if cause.namespace and not is_own else "another workload"
    return DisruptionRecord(key[:64], at, disruption, (is_own and cause.workload) or taker)


def _filter_pods(workload: Workload) -> "QuerySet[Pod]":
    rows = Pod.objects.filter(workload=workload, attempt=workload.attempt)
    return rows.exclude(standing=Standing.FOREIGN).exclude(role=DATA_WORKER).order_by()


def _count_pods_at(workload: Workload, at: datetime, but_for: Collection[str] = ()) -> int:
    """Count the pods that had started and not ended at a moment, but for those of these uids."""
    rows = _filter_pods(workload).filter(
        Q(ended_at=None) | Q(ended_at__gte=at),
        Q(vanished_at=None) | Q(vanished_at__gte=at),
        started_at__lte=at,
    )
    return rows.exclude(uid__in=but_for).count()


def _find_going_on(
    workload: Workload, status: Status, taken: Sequence[TakenPod], now: datetime, is_late: bool
) -> tuple[dict[str, Any], bool]:
    """Return how the workload goes on, as fields of Disruption, and whether that is all."""
    if status in RESTING and status is not Status.COMPLETED:
        return {"is_open": False}, True
    ends = [pod.ended_at for pod in taken]
    if status not in _UP | RESTING:
        return {"is_waiting": True}, status in (Status.STOPPING, Status.DELETING)
    if any(each is None for each in ends) and not is_late:
        return {}, False
    began = min(pod.at for pod in taken)
    ended = max((each for each in ends if each), default=began)
    # The lines have the time of the cluster's clock.
    progress = _find_progress(workload, began + connections.clock_offset(workload.cluster_id))
    is_known = progress is not None and progress.seconds is not None
    is_over = is_known or is_late or status in RESTING or now - ended > LOG_PATIENCE
    if not is_over:
        return {}, False
    pods = _count_pods_at(workload, ended, [pod.uid for pod in taken])
    fields = _describe_progress(progress)
    # With fewer pods than it needs it waited for more: it went on with what it has now.
    if pods < (workload.min_pods or workload.requested_pods):
        if not pods and status in _UP and workload.status_at > began:
            fields.setdefault("lost_seconds", (workload.status_at - began).total_seconds())
        pods = workload.running_pods or pods
    return fields | {"is_open": False, "pods_after": pods}, True


def _describe_progress(progress: Progress | None) -> dict[str, Any]:
    """Return what the log tells, as fields of Disruption.

    The seconds until the taken pods had ended tell nothing: the others may have gone on at once.
    """
    if progress is None:
        return {}
    fields: dict[str, Any] = {
        "resumed_step": progress.resumed_step,
        "began_anew": progress.began_anew,
        "lost_steps": progress.lost_steps,
    }
    if progress.seconds is not None:
        fields["lost_seconds"] = round(progress.seconds, 1)
    return fields


def _find_progress(workload: Workload, began: datetime) -> Progress | None:
    """Return how a training went on after a moment of its cluster, as its first ranks tell it.

    A rank that was taken while its group formed anew knows less than one that went on.
    """
    since, best = stamps.to_nanoseconds(began), None
    for _, lines in groupby(_read_lines(workload, began), key=itemgetter(0)):
        progress = parse_progress((line for _, line in lines), since)
        if progress is not None and progress.seconds is not None:
            return progress
        best = best or progress
    return best


def _read_lines(workload: Workload, began: datetime) -> Iterator[tuple[int | None, Line]]:
    """Yield the lines of the first ranks around a disruption, each with its rank.

    A rank's lines come together, those of its old pod before those of its new one.
    """
    since = began - LOG_SPAN
    first = (
        _filter_pods(workload)
        .filter(rank__isnull=False)
        .filter(Q(vanished_at=None) | Q(vanished_at__gte=since))
        .order_by("rank", "-created_at")
        .values_list("pk", flat=True)
    )
    logs = Log.objects.filter(
        Q(last_at=None) | Q(last_at__gte=since),
        pod__in=list(first[:MOST_LOGS]),
        is_init=False,
        size__gt=0,
    )
    logs = logs.exclude(state=Log.State.REMOVED).order_by("pod__rank", "pod__created_at", "run")
    begin = stamps.to_nanoseconds(since)
    lines = (
        (log.pod.rank, line)
        for log in logs.select_related("pod")[:MOST_LOGS]
        for line in logbook.read_lines(log, since=begin, timestamps=True)
    )
    size = 0
    for rank, line in islice(lines, MOST_LINES):
        size += len(line)
        if size > MOST_BYTES:
            return
        at, offset = stamps.parse_stamp(line[:64])
        yield rank, (at, line[offset:].decode(errors="replace"))


def _describe_used_up_restarts(workload: Workload, records: Sequence[DisruptionRecord]) -> str:
    """Say that a failed workload has no restart left, with what took them; "" where it has."""
    try:
        elastic = decode_spec(workload.spec).elastic
    except (UnreadableSpec, AttributeError):
        return ""
    if elastic is None or elastic.max_restarts is None:
        return ""
    rows = Event.objects.filter(
        workload=workload, attempt=workload.attempt, kind=Event.Kind.SCALE
    ).exclude(uid__in=[each.key for each in records])
    counts: dict[str, int] = defaultdict(int)
    for reason in rows.values_list("reason", flat=True)[:MOST_PODS]:
        counts[reason] += 1
    for record in records:
        counts[journal.DISRUPTION_REASONS[record.disruption.action]] += 1
    causes = {
        words: count for reason, words in _CAUSE_WORDS.items() if (count := counts.get(reason, 0))
    }
    if sum(causes.values()) <= elastic.max_restarts:
        return ""
    listed = ", ".join(f"{count} {words[count > 1]}" for words, count in causes.items())
    are = "is" if elastic.max_restarts == 1 else "are"
    return f"Its {format_count(elastic.max_restarts, 'restart')} {are} used up, by {listed}."


_CAUSE_WORDS = {
    "Reclaimed": ("reclaim", "reclaims"),
    "Preempted": ("preemption", "preemptions"),
    "Consolidated": ("move", "moves"),
    "GangEvicted": ("eviction of its gang", "evictions of its gang"),
    "NodeLost": ("lost node", "lost nodes"),
    "Drained": ("eviction on request", "evictions on request"),
    "PodsLost": ("other eviction", "other evictions"),
    "ScaledUp": ("growth", "times of growth"),
}
"""What costs a restart, in words."""

"""Keeping the counts and the ranks of workloads' pods: from what changed, or anew from all pods."""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from django.db.models import Count, Q, Sum, TextField
from django.db.models.functions import Cast

from clusters.job_kinds import RANK_0_ROLES
from workloads.journal import bulk_sql
from workloads.journal.cluster_events import parse_moment
from workloads.journal.workload_updates import WorkloadUpdate, find_share
from workloads.kube_objects import DATA_WORKER, Object, is_data_worker, is_own_pod, nested_dict
from workloads.models import Pod, Workload
from workloads.pod_counts import PodCounts, PodShare, Standing, decode_counts, find_standing
from workloads.pod_views import build_pod_view, compute_rank
from workloads.states import RESTING

_JSON_DECODER = msgspec.json.Decoder(dict)
_READ_AT_ONCE = 500
"""Pods that are decoded at a time while all pods of workloads are counted."""
_COUNTED_FIELDS = (
    *("id", "workload", "uid", "attempt", "role", "index", "rank", "phase", "node", "gpus"),
    *("cpu", "memory"),
    *("standing", "is_preempted", "ready_at", "vanished_at"),
)


def update_pod_counts(
    updates: Iterable[WorkloadUpdate], *, anew: Collection[uuid.UUID] = ()
) -> list[bulk_sql.RowChange]:
    """Bring the counts and ranks in line with what was merged.

    All pods are read only of the workloads in `anew`, and of those whose counts are of another
    attempt or job, or whose ranks begin with another pod. Return the changes of rows that the
    batch does not mention.
    """
    recounted = []
    for update in updates:
        if not (update.changed_pod_uids or update.affects_status):
            continue
        if update.workload.pk in anew or not _adjust_counts(update):
            recounted.append(update)
        else:
            _rank_pods(update, update.changed_pod_uids)
    return _recount(recounted) if recounted else []


def _adjust_counts(update: WorkloadUpdate) -> bool:
    """Adjust the counts by the pods that changed. Return False where all have to be counted."""
    counts = update.counts
    if counts is None or not _set_attempt_and_job(counts, update):
        return False
    for uid in update.changed_pod_uids:
        pod = update.pods[uid]
        _add_share(counts, update, pod, update.shares.get(uid), -1)
        _add_share(counts, update, pod, find_share(pod), 1)
    if _is_led(update, counts) == counts.is_led:
        return True
    is_unranked = counts.own + counts.data_workers == sum(
        pod.attempt == counts.attempt and pod.vanished_at is None for pod in update.pods.values()
    )
    if is_unranked:
        # All its pods are in this batch, as in the first one.
        counts.is_led = not counts.is_led
        update.changed_pod_uids |= update.pods.keys()
    return is_unranked


def _set_attempt_and_job(counts: PodCounts, update: WorkloadUpdate) -> bool:
    """Let the counts be of the workload's attempt and job. Return False where they cannot be."""
    attempt, job_uid = update.workload.attempt, _find_job_uid(update)
    if (counts.attempt, counts.job_uid) == (attempt, job_uid):
        return True
    foreign = counts.count(Standing.FOREIGN) + counts.data.get(Standing.FOREIGN, 0)
    has_same_pods = counts.attempt == attempt and not job_uid and not foreign
    if counts.existing and not has_same_pods:
        return False
    if not has_same_pods:
        counts.standings = {}
        counts.data = {}
        counts.preempted = counts.masters = 0
        counts.milli_gpus = counts.milli_cores = counts.memory = 0
    if counts.attempt != attempt:
        # What led the pods of the last attempt says nothing of this one's, whose job is unseen yet.
        counts.is_led = False
    counts.attempt, counts.job_uid = attempt, job_uid
    return True


def _find_job_uid(update: WorkloadUpdate) -> str:
    return str(nested_dict(update.job, "metadata").get("uid") or "") if update.job else ""


def _add_share(
    counts: PodCounts, update: WorkloadUpdate, pod: Pod, share: PodShare | None, times: int
) -> None:
    if share is None:
        return
    counts.existing += times
    if pod.attempt == counts.attempt:
        counts.add(share, times)


def _is_led(update: WorkloadUpdate, counts: PodCounts) -> bool:
    """Return whether rank 0 is a leading pod; once the job is gone that stays as it was."""
    was_led = counts.is_led and update.job is None
    return counts.masters > 0 or was_led or _has_master(update.job)


def _has_master(job: Object | None) -> bool:
    """Return whether the job will have a leading pod, even before that pod exists."""
    kinds = [
        kind
        for name in nested_dict(job, "spec")
        if name.endswith("ReplicaSpecs")
        for kind in nested_dict(job, "spec", name)
    ]
    return any(str(kind).lower() in RANK_0_ROLES for kind in kinds)


def _rank_pods(update: WorkloadUpdate, uids: Iterable[str]) -> None:
    assert update.counts is not None
    for uid in uids:
        pod = update.pods[uid]
        if _is_ranked(pod, update.counts):
            pod.rank = compute_rank(pod.role, pod.index, has_master=update.counts.is_led)


def _is_ranked(pod: Pod, counts: PodCounts) -> bool:
    return (
        pod.attempt == counts.attempt
        and pod.vanished_at is None
        and pod.standing != Standing.FOREIGN
    )


def _recount(updates: Sequence[WorkloadUpdate]) -> list[bulk_sql.RowChange]:
    """Count all existing pods of these workloads. Return the changes of rows they did not load."""
    by_id = {update.workload.pk: update for update in updates}
    for update in updates:
        earlier, attempt = update.counts, update.workload.attempt
        update.counts = PodCounts(attempt=attempt, job_uid=_find_job_uid(update))
        update.counts.is_led = earlier is not None and earlier.attempt == attempt and earlier.is_led
        for pod in update.pods.values():
            if _set_standing(update, pod, pod.data):
                update.changed_pod_uids.add(pod.uid)
            _add_share(update.counts, update, pod, find_share(pod), 1)
    others: list[tuple[Pod, Any]] = []
    for pod, data in _iterate_other_pods(by_id):
        update = by_id[pod.workload_id]
        before = _list_counted_values(pod)
        _set_standing(update, pod, data)
        assert update.counts is not None
        _add_share(update.counts, update, pod, find_share(pod), 1)
        others.append((pod, before))
    for update in updates:
        assert update.counts is not None
        update.counts.is_led = _is_led(update, update.counts)
        ranks = {uid: pod.rank for uid, pod in update.pods.items()}
        _rank_pods(update, update.pods)
        update.changed_pod_uids |= {
            uid for uid, pod in update.pods.items() if pod.rank != ranks[uid]
        }
    return [change for pod, before in others if (change := _rank_other_pod(by_id, pod, before))]


def _rank_other_pod(
    updates: Mapping[uuid.UUID, WorkloadUpdate], pod: Pod, before: object
) -> bulk_sql.RowChange | None:
    counts = updates[pod.workload_id].counts
    assert counts is not None
    if _is_ranked(pod, counts):
        pod.rank = compute_rank(pod.role, pod.index, has_master=counts.is_led)
    after = _list_counted_values(pod)
    return None if after == before else bulk_sql.RowChange(pod.pk, new_values=after)


def _list_counted_values(pod: Pod) -> Mapping[str, Any]:
    return {name: getattr(pod, name) for name in ("rank", "standing", "is_preempted", "ready_at")}


def _iterate_other_pods(
    updates: Mapping[uuid.UUID, WorkloadUpdate],
) -> Iterator[tuple[Pod, Object]]:
    """Iterate over the existing pods that were not loaded, with their objects.

    The objects of many pods are not in memory at once.
    """
    rows = Pod.objects.filter(workload__in=list(updates), vanished_at=None).only(*_COUNTED_FIELDS)
    rows = rows.annotate(written=Cast("data", TextField())).order_by()
    for pod in rows.iterator(chunk_size=_READ_AT_ONCE):
        written = pod.__dict__.pop("written")
        if pod.uid not in updates[pod.workload_id].pods:
            yield pod, _JSON_DECODER.decode(written)


def _set_standing(update: WorkloadUpdate, pod: Pod, data: Object) -> bool:
    """Set the fields of a pod's row that its counts depend on. Return whether one changed."""
    before = _list_counted_values(pod)
    view, job = build_pod_view(data), update.job
    is_foreign = (
        pod.attempt == update.workload.attempt
        and job is not None
        and not is_own_pod(job, data)
        and not is_data_worker(data, update.workload.name)
    )
    pod.standing = (Standing.FOREIGN if is_foreign else find_standing(view)).value
    pod.is_preempted = view.preempted
    if pod.ready_at is None:
        pod.ready_at = parse_moment(view.ready_at, update.clock_lead)
    return before != _list_counted_values(pod)


def find_miscounted_workloads(cluster_id: uuid.UUID) -> list[uuid.UUID]:
    """Return the workloads of a cluster whose kept counts are not those of their pods' rows.

    One statement counts all pods. Outside a journal transaction, what is written meanwhile may
    seem to differ.
    """
    holds_gpus = ~Q(node="") & ~Q(phase__in=("Succeeded", "Failed"))
    groups = (
        Pod.objects.filter(workload__cluster=cluster_id, vanished_at=None)
        .order_by()
        .values_list("workload", "attempt", "standing")
        .annotate(
            count=Count("pk"),
            data_workers=Count("pk", filter=Q(role=DATA_WORKER)),
            preempted=Count("pk", filter=Q(is_preempted=True) & ~Q(role=DATA_WORKER)),
            masters=Count("pk", filter=Q(role__in=RANK_0_ROLES)),
            held_gpus=Sum("gpus", filter=holds_gpus),
        )
    )
    groups_by_workload: dict[uuid.UUID, list[_PodGroup]] = {}
    for workload_id, *group in groups:
        groups_by_workload.setdefault(workload_id, []).append(_PodGroup(*group))
    having_pods = Pod.objects.filter(workload__cluster=cluster_id, vanished_at=None)
    workloads = Workload.objects.filter(
        ~Q(status__in=RESTING) | Q(pk__in=having_pods.order_by().values("workload")),
        cluster=cluster_id,
        released_at=None,
        pod_counts__isnull=False,
    )
    return [
        pk
        for pk, attempt, counts in workloads.order_by().values_list("pk", "attempt", "pod_counts")
        if _is_miscounted(decode_counts(counts), attempt, groups_by_workload.get(pk, []))
    ]


class _PodGroup(NamedTuple):
    """What the rows of one workload's existing pods of an attempt and a standing add up to."""

    attempt: int
    standing: str
    pods: int
    data_workers: int
    preempted: int
    masters: int
    gpus: Decimal | None


def _is_miscounted(counts: PodCounts | None, attempt: int, groups: Sequence[_PodGroup]) -> bool:
    if counts is None:
        return True
    if counts.existing != sum(each.pods for each in groups):
        return True
    if counts.attempt != attempt:
        return False
    mine = [each for each in groups if each.attempt == attempt]
    own = [each for each in mine if each.standing != Standing.FOREIGN]
    return (
        counts.standings
        != _drop_zeros({each.standing: each.pods - each.data_workers for each in mine})
        or counts.data != _drop_zeros({each.standing: each.data_workers for each in mine})
        or counts.preempted != sum(each.preempted for each in own)
        or counts.masters != sum(each.masters for each in own)
        # SQLite adds decimals up as floats.
        or counts.milli_gpus != round(sum((each.gpus or 0) for each in own) * 1000)
    )


def _drop_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    return {standing: count for standing, count in counts.items() if count}

"""Changes of the number of workers of elastic workloads: planned, done, or made by others.

A change is planned in the attempt's row before the cluster is asked, and becomes an event once the
cluster has it. Whoever finds a plan after a kill compares it with the job and goes on.
"""

import uuid
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from clusters.job_kinds import JOB_KINDS
from workloads.elastic import replicas
from workloads.journal.batch_writing import write_batch
from workloads.journal.left_out_events import make_room_for_change
from workloads.journal.observed_objects import Observation, parse_objects
from workloads.journal.transactions import JournalTransaction, journal_transaction
from workloads.kube_objects import Object
from workloads.models import Attempt, Desired, Event, Workload
from workloads.specs import Spec
from workloads.specs.spec_summary import MAX_PODS
from workloads.status_rules import count_requested_pods

SCALED_UP, SCALED_DOWN, SCALED_BY_OTHERS = "ScaledUp", "ScaledDown", "ScaledByOthers"
"""The reasons of the events of a change of the number of pods."""
SCALE_REFUSED, NO_GROWTH = "ScaleRefused", "NoGrowth"
PLAN_LIFE = timedelta(minutes=3)
"""How long a planned change may be begun: later there may be no room for it any more, or somebody
may have decided otherwise.
"""


def build_scale_fields(spec: Spec, job_kind: str) -> dict[str, Any]:
    """Build the fields of a new attempt that say whether and from where Muster scales its job."""
    workers = replicas.count_submitted_workers(spec, job_kind)
    return {"workers_set": workers, "workers_wanted": workers}


def plan_scaling(workload_id: uuid.UUID, attempt: int, workers: int, wanted: int) -> bool:
    """Record that the job is to have `wanted` workers instead of `workers`, within PLAN_LIFE.

    Return False where something else is wanted by now: a stop, another attempt, another number.
    """
    with journal_transaction():
        rows = _filter_scalable(workload_id, attempt)
        return (
            rows.filter(workers_set=workers, workers_wanted=workers).update(
                workers_wanted=wanted, scale_after=timezone.now() + PLAN_LIFE
            )
            == 1
        )


def drop_scaling(workload_id: uuid.UUID, attempt: int) -> None:
    """Forget a planned change that the cluster does not have; the rules choose anew."""
    with journal_transaction():
        _filter_scalable(workload_id, attempt).update(
            workers_wanted=F("workers_set"), scale_after=None, room_since=None
        )


def cancel_scaling(workload_id: uuid.UUID, attempt: int, refusal: str, pause: timedelta) -> None:
    """Record that the cluster refused a planned change, once a run in the history.

    Nothing is tried again within `pause`.
    """
    with journal_transaction() as journal_tx:
        rows = _filter_scalable(workload_id, attempt)
        row = rows.select_related("workload").first()
        if row is None:
            return
        rows.update(
            workers_wanted=row.workers_set, scale_after=timezone.now() + pause, room_since=None
        )
        workload = row.workload
        if not workload.events.filter(attempt=attempt, reason=SCALE_REFUSED).exists():
            _create_event(journal_tx, workload, SCALE_REFUSED, refusal, is_warning=True)


def record_scaling(
    workload_id: uuid.UUID, attempt: int, job: Object, text: str, pause: timedelta
) -> bool:
    """Record that the planned number of workers is in the cluster, with the job as it is there.

    Return False where that was recorded before. Within `pause` the number is not changed again.
    """
    with journal_transaction() as journal_tx:
        row = _filter_scalable(workload_id, attempt).select_related("workload").first()
        if row is None or row.workers_set == row.workers_wanted:
            return False
        before, after = row.workers_set or 0, row.workers_wanted or 0
        Attempt.objects.filter(pk=row.pk).update(
            workers_set=after, scale_after=timezone.now() + pause, room_since=None
        )
        reason = SCALED_UP if after > before else SCALED_DOWN
        _record_number(journal_tx, row.workload, job, reason, text, before=before, after=after)
    return True


def record_foreign_scaling(workload_id: uuid.UUID, attempt: int, job: Object) -> bool:
    """Record that somebody else changed the number of workers: Muster leaves it alone from now on.

    Return False where that was recorded before.
    """
    with journal_transaction() as journal_tx:
        rows = _filter_scalable(workload_id, attempt).select_related("workload")
        row = rows.filter(is_scaled_by_others=False).first()
        if row is None:
            return False
        before = row.workers_set or 0
        after = replicas.count_workers(job, JOB_KINDS[row.workload.job_kind])
        Attempt.objects.filter(pk=row.pk).update(
            is_scaled_by_others=True, workers_wanted=row.workers_set, room_since=None
        )
        workers = "1 worker" if after == 1 else f"{after:,} workers"
        text = (
            f"Somebody else gave it {workers} in the cluster. Muster leaves their number alone "
            "until it is run again."
        )
        _record_number(
            journal_tx, row.workload, job, SCALED_BY_OTHERS, text, before=before, after=after
        )
    return True


def record_no_growth(attempts: Sequence[Attempt], text: str) -> None:
    """Record why these attempts are not looked at for growth, once in the history of each.

    One query where that was recorded for all of them. The rows are loaded with their workloads.
    """
    keys = {each.workload_id: f"no-growth-{each.number}" for each in attempts}
    recorded_keys = set(
        Event.objects.filter(workload__in=list(keys), uid__in=set(keys.values()))
        .order_by()
        .values_list("workload", "uid")
    )
    new = [
        each for each in attempts if (each.workload_id, keys[each.workload_id]) not in recorded_keys
    ]
    if not new:
        return
    with journal_transaction() as journal_tx:
        for each in new:
            workload = each.workload
            Event.objects.get_or_create(
                workload=workload,
                uid=keys[workload.pk],
                defaults={
                    "attempt": each.number,
                    "kind": Event.Kind.ACTION,
                    "is_warning": True,
                    "reason": NO_GROWTH,
                    "text": text,
                    "source": "Muster",
                },
            )
            Workload.objects.filter(pk=workload.pk).update(changed=journal_tx.position)
            journal_tx.mark_changed(workload.project_id)


def record_room(with_room: Collection[int], without_room: Collection[int]) -> None:
    """Record since when attempts, by their keys, have room for another worker, or that they have
    none.
    """
    now = timezone.now()
    # One of a time to come was written while the clock was ahead.
    unknown = Q(room_since=None) | Q(room_since__gt=now)
    Attempt.objects.filter(unknown, pk__in=with_room).update(room_since=now)
    Attempt.objects.filter(pk__in=without_room, room_since__isnull=False).update(room_since=None)


def _filter_scalable(workload_id: uuid.UUID, attempt: int) -> "QuerySet[Attempt]":
    """Return the attempt's row as long as it goes on and its workload is to run."""
    return Attempt.objects.filter(
        workload=workload_id,
        number=attempt,
        workload__attempt=attempt,
        workload__desired=Desired.RUNNING,
        workers_set__isnull=False,
        ended_at=None,
    )


def _record_number(
    journal_tx: JournalTransaction,
    workload: Workload,
    job: Object,
    reason: str,
    text: str,
    *,
    before: int,
    after: int,
) -> None:
    """Write the job as it is in the cluster now, and the event of its new number of pods."""
    write_batch(journal_tx, workload.cluster_id, list(parse_objects([Observation("job", job)])))
    others = count_requested_pods(job) - replicas.count_workers(job, JOB_KINDS[workload.job_kind])
    # Somebody may have written any number into the cluster.
    pods_before, pods_after = (max(0, min(others + count, MAX_PODS)) for count in (before, after))
    _create_event(journal_tx, workload, reason, text, pods=(pods_before, pods_after))


def _create_event(
    journal_tx: JournalTransaction,
    workload: Workload,
    reason: str,
    text: str,
    *,
    is_warning: bool = False,
    pods: tuple[int, int] | tuple[None, None] = (None, None),
) -> None:
    make_room_for_change(workload)
    Event.objects.create(
        workload=workload,
        attempt=workload.attempt,
        kind=Event.Kind.ACTION if pods == (None, None) else Event.Kind.SCALE,
        is_warning=is_warning,
        reason=reason,
        text=text,
        source="Muster",
        pods_before=pods[0],
        pods_after=pods[1],
    )
    Workload.objects.filter(pk=workload.pk).update(changed=journal_tx.position)
    journal_tx.mark_changed(workload.project_id)

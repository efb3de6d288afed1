"""Forecasts of starts, and what became of them: written for many workloads at once."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import (
    Count,
    DateTimeField,
    Exists,
    Max,
    OuterRef,
    Q,
    Subquery,
    Value,
)
from django.db.models.functions import Coalesce

from workloads.journal import bulk_sql
from workloads.journal.transactions import journal_transaction
from workloads.kube_objects import DATA_WORKER
from workloads.models import (
    NO_LIKELY_START,
    ClusterForecast,
    Event,
    ForecastRecord,
    Pod,
    Workload,
    WorkloadForecast,
)
from workloads.pod_counts import Standing
from workloads.states import STARTING, Status

UNSTARTED = frozenset({*STARTING, Status.PREPARING, Status.PENDING})
"""Statuses from which a workload starts."""
_STARTED = frozenset({Status.INITIALIZING, Status.RUNNING, Status.DEGRADED, Status.COMPLETED})
_ROW_FIELDS = [each.name for each in WorkloadForecast._meta.concrete_fields if not each.primary_key]
BATCH_SIZE = 200
MOST_SETTLED = 5_000
"""Records that are settled at a time; the rest comes the next time."""


@dataclass(slots=True)
class ForecastUpdate:
    """What was forecast for one workload, and whether it is kept for the record.

    `is_news` says that pages show something else now.
    """

    row: WorkloadForecast
    record: ForecastRecord | None = None
    is_news: bool = False


def claim_forecast(cluster_id: uuid.UUID, now: datetime, until: datetime) -> bool:
    """Return whether the caller may play a cluster forward, until it has recorded that or a moment.

    Of one that was never forecast two may: there is no row to claim yet. One statement.
    """
    rows = ClusterForecast.objects.filter(pk=cluster_id)
    # One that ends much later than this one would is of before the clock was set back.
    longest = until + (until - now)
    is_free = Q(claimed_until=None) | Q(claimed_until__lte=now) | Q(claimed_until__gt=longest)
    return bool(rows.filter(is_free).update(claimed_until=until)) or not rows.exists()


def record_forecasts(
    computed: ClusterForecast, before: ClusterForecast | None, updates: Sequence[ForecastUpdate]
) -> bool:
    """Write the forecasts of all that waits in a cluster, save of what waits no longer.

    Return False where somebody else forecast it since `before` was read. One transaction, whose
    statements grow by one for some hundreds of workloads.
    """
    with journal_transaction() as journal_tx:
        rows = ClusterForecast.objects.filter(pk=computed.pk)
        known_at = rows.values_list("computed_at", flat=True).first()
        if known_at is not None and (before is None or known_at != before.computed_at):
            return False
        computed.save()
        waiting = _load_waiting(update.row for update in updates)
        current = [
            each
            for each in updates
            if (waiting_workload := waiting.get(each.row.workload_id)) is not None
            and waiting_workload.attempt == each.row.attempt
        ]
        stale = WorkloadForecast.objects.filter(workload__cluster=computed.pk)
        _remove_forecasts(
            set(stale.order_by().values_list("pk", flat=True))
            - {each.row.workload_id for each in current}
        )
        WorkloadForecast.objects.bulk_create(
            [each.row for each in current],
            batch_size=BATCH_SIZE,
            update_conflicts=True,
            unique_fields=["workload"],
            update_fields=_ROW_FIELDS,
        )
        records = [each.record for each in current if each.record is not None]
        ForecastRecord.objects.bulk_create(records, batch_size=BATCH_SIZE)
        changes = []
        for each in current:
            workload = waiting[each.row.workload_id]
            likely = each.row.likely_at or NO_LIKELY_START
            values: dict[str, object] = {}
            if workload.likely_start_at != likely:
                values["likely_start_at"] = likely
            if each.is_news:
                values["changed"] = journal_tx.position
                journal_tx.mark_changed(workload.project_id)
            changes.append(bulk_sql.RowChange(workload.pk, new_values=values))
        bulk_sql.update_rows(Workload, "id", changes)
        return True


def _load_waiting(rows: Iterable[WorkloadForecast]) -> Mapping[uuid.UUID, Workload]:
    ids = [row.workload_id for row in rows]
    waiting = Workload.objects.filter(pk__in=ids, status__in=UNSTARTED).order_by()
    return waiting.only("attempt", "project", "likely_start_at").in_bulk()


def clear_forecasts(cluster_id: uuid.UUID) -> None:
    """Forget what was forecast in a cluster in which nothing waits."""
    if not ClusterForecast.objects.filter(pk=cluster_id).exists():
        return
    with journal_transaction():
        rows = WorkloadForecast.objects.filter(workload__cluster=cluster_id)
        _remove_forecasts(rows.order_by().values_list("pk", flat=True))
        ClusterForecast.objects.filter(pk=cluster_id).delete()


def hide_likely_starts(cluster_id: uuid.UUID) -> None:
    """Take the likely starts out of lists, where no forecast of a cluster is new enough."""
    Workload.objects.filter(
        cluster=cluster_id,
        status=Status.PENDING,
        released_at=None,
        likely_start_at__lt=NO_LIKELY_START,
    ).update(likely_start_at=NO_LIKELY_START)


def _remove_forecasts(ids: Iterable[uuid.UUID]) -> None:
    """Remove what is forecast for these workloads. Pages show it of waiting ones alone."""
    stale = list(ids)
    if stale:
        WorkloadForecast.objects.filter(pk__in=stale).delete()
        Workload.objects.filter(pk__in=stale).update(likely_start_at=NO_LIKELY_START)


def settle_forecast_records(cluster_id: uuid.UUID, now: datetime) -> None:
    """Close records of what will not start any more, and mark those that are wrong by now.

    That is decided before a start is known: else forecasts of what starts late would not count
    until then. What waits no longer counts up to when it was stopped, since a cluster may not be
    looked at for long. Two queries, and two statements where there is something to write.
    """
    waited_until = Coalesce(_build_end_of_wait(), Value(now, DateTimeField()))
    records = ForecastRecord.objects.filter(cluster=cluster_id, closed_at=None).order_by()
    waiting = Workload.objects.filter(
        pk=OuterRef("workload"),
        attempt=OuterRef("attempt"),
        status__in=UNSTARTED,
        released_at=None,
    )
    # The plain bound first: few are looked up in the history.
    is_late = Q(is_right=None, latest_at__lt=now) & Q(latest_at__lt=waited_until)
    late, over = records.filter(is_late), records.filter(~Exists(waiting))
    late_ids = list(late.values_list("pk", flat=True)[:MOST_SETTLED])
    over_ids = list(over.values_list("pk", flat=True)[:MOST_SETTLED])
    if not late_ids and not over_ids:
        return
    with journal_transaction():
        late.filter(pk__in=late_ids).update(is_right=False)
        # What is late and not marked yet is closed the next time: it does count.
        over.filter(pk__in=over_ids).exclude(is_late).update(closed_at=waited_until)


def _build_end_of_wait() -> Subquery:
    """Build the subquery of when the workload of a record left waiting after that was made."""
    changes = Event.objects.filter(
        workload=OuterRef("workload"),
        attempt=OuterRef("attempt"),
        at__gte=OuterRef("made_at"),
        old__in=UNSTARTED,
        # That it says what is new lets a database use the index of changes.
        new__gt="",
    ).exclude(new__in=UNSTARTED)
    return Subquery(changes.order_by("at", "id").values("at")[:1])


def record_starts(events: Iterable[Event], now: datetime) -> None:
    """Close the records of workloads that start by these changes of status.

    It belongs to the transaction of the changes. One query, and five statements more where
    forecasts were made.
    """
    changes = {event.workload_id: event for event in events if _may_be_start(event)}
    if not changes:
        return
    records = list(ForecastRecord.objects.filter(workload__in=list(changes), closed_at=None))
    if not records:
        return
    placed = _load_placed_moments({record.workload for record in records})
    closed = []
    for record in records:
        event, pods = changes[record.workload], placed.get(record.workload)
        if event.attempt != record.attempt or (event.new not in _STARTED and pods is None):
            continue
        moment = pods.last_at if pods is not None and pods.is_whole else now
        started_at = max(record.made_at, min(moment, now))
        closed.append(
            bulk_sql.RowChange(
                record.pk,
                new_values={
                    "closed_at": now,
                    "started_at": started_at,
                    "is_right": record.earliest_at <= started_at
                    and (record.latest_at is None or started_at <= record.latest_at),
                },
            )
        )
    bulk_sql.update_rows(ForecastRecord, "id", closed)
    _remove_forecasts({record.workload for record in records})


def _may_be_start(event: Event) -> bool:
    """Return whether a workload leaves waiting by a change; one that fails may have started."""
    is_left = event.kind == Event.Kind.STATUS and event.old in UNSTARTED
    return is_left and (event.new in _STARTED or event.new == Status.FAILED)


@dataclass(frozen=True, slots=True)
class _PlacedPods:
    """When the last pod of an attempt came to its node, and whether that is known of all."""

    last_at: datetime
    is_whole: bool


def _load_placed_moments(ids: Collection[uuid.UUID]) -> Mapping[uuid.UUID, _PlacedPods]:
    pods = Pod.objects.filter(workload__in=ids, vanished_at=None).exclude(node="")
    own = pods.exclude(role=DATA_WORKER).exclude(standing=Standing.FOREIGN.value)
    moments = (
        own.order_by()
        .values_list("workload")
        .annotate(last=Max("started_at"), unknown=Count("pk", filter=Q(started_at=None)))
    )
    return {
        workload: _PlacedPods(last, not unknown)
        for workload, last, unknown in moments
        if last is not None
    }

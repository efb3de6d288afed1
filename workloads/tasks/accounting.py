"""The step that adds what became of GPU time to the ledger, minute by minute.

Each span of a cluster is added once: its entries and the bookmark are one transaction. A span is
added some minutes late, when its pods' news and figures are there; after an outage the step catches
up, and what was not measured meanwhile stays unknown.
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from time import monotonic

from django.conf import settings
from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery
from django.utils import timezone

from clusters.models import Cluster
from clusters.tasks import claim_task
from console.celery import step
from console.chunks import split_chunks
from workloads.ledger import AMOUNT_NAMES, Amounts, account_pod, measure_overlap
from workloads.metrics.resolutions import Resolution
from workloads.models import LedgerBookmark, LedgerEntry, MetricRollup
from workloads.tasks import ledger_evidence, ledger_losses
from workloads.tasks.ledger_evidence import NO_POOL, HoldingPod, Owner, Pool, to_milliseconds

logger = logging.getLogger(__name__)

MINUTE = timedelta(minutes=1)
LONGEST_SPAN = timedelta(minutes=10)
"""How much one transaction adds: figures of so long are in memory at once."""
MOST_SECONDS = 20.0
"""How long a run begins further spans; the next one goes on."""
PAUSE = timedelta(minutes=10)
"""A time without this step after which nobody followed the cluster either."""
PATIENCE = timedelta(days=3)
"""How long a cluster that does not answer is waited for; then the time from its silence on is left
out.
"""
ROLLUP_PATIENCE = timedelta(minutes=15)
"""How long figures by the minute are waited for."""
REMOVED_FOR = timedelta(days=1)
"""How long the last minutes of a removed cluster are still added."""
BATCH_SIZE = 500
_CLUSTER_FIELDS = ("is_enabled", "disabled_at", "unreachable_since", "removed_at")
_FIELDS = (
    *("project", "user", "workload_name", "pool_name", "price", "currency", "watts"),
    *AMOUNT_NAMES,
)

EntryKey = tuple[uuid.UUID, Pool]


def get_lag() -> timedelta:
    """Return how long after a minute its pods are known: a whole listing may have to come."""
    return timedelta(seconds=max(180, 2 * settings.OPTIONS.poll_seconds + 60))


@step
def account_gpu_hours() -> None:
    """Add to the ledger what became of GPU time since the last run, of every cluster.

    May run twice or late.
    """
    with claim_task("ledger", "all") as is_claimed:
        if is_claimed:
            now, deadline = timezone.now(), monotonic() + MOST_SECONDS
            counted_until = LedgerBookmark.objects.filter(cluster=OuterRef("pk")).values("until")
            clusters = Cluster.objects.filter(
                Q(removed_at=None) | Q(removed_at__gt=now - REMOVED_FOR)
            ).annotate(counted_until=Subquery(counted_until))
            # Those that have least to add come first: one that catches up after an outage may take
            # all of the time, and the counters of what waits for data soon tell of later minutes.
            newest_first = F("counted_until").desc(nulls_first=True)
            for cluster in clusters.only(*_CLUSTER_FIELDS).order_by(newest_first, "pk"):
                try:
                    _account_cluster(cluster, now, deadline)
                except Exception:
                    # What goes wrong with one cluster does not stop the ledger of the others.
                    logger.exception("the ledger of cluster %s does not go on", cluster.pk)


def _account_cluster(cluster: Cluster, now: datetime, deadline: float) -> None:
    """Add all spans of a cluster that are due, as far as the time allows."""
    bookmark = _open_bookmark(cluster, now)
    due = _find_due_time(cluster, now)
    blind_since = _find_blind_since(cluster, now)
    if blind_since is None and bookmark.held_until is not None and now < bookmark.held_until:
        return
    begin = bookmark.until
    last = due if blind_since is None else min(due, _floor_minute(blind_since))
    while begin < last and monotonic() < deadline:
        midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        end = min(begin + LONGEST_SPAN, midnight, last)
        if not account_span(cluster.pk, begin, end):
            return
        begin = end
    if last <= begin < due:
        LedgerBookmark.objects.filter(cluster=cluster.pk, until=begin).update(until=due)


def _find_blind_since(cluster: Cluster, now: datetime) -> datetime | None:
    """Return since when nobody knows what a cluster's pods do, so that nothing counts; else None.

    It is disabled, or has not answered for longer than it is waited for.
    """
    if cluster.removed_at is not None:
        return None
    if not cluster.is_enabled:
        return cluster.disabled_at or now
    silent_since = cluster.unreachable_since
    is_given_up = silent_since is not None and now - silent_since >= PATIENCE
    return silent_since if is_given_up else None


def _open_bookmark(cluster: Cluster, now: datetime) -> LedgerBookmark:
    """Return the bookmark of a cluster, with the time of this look.

    After a pause, and while a cluster does not answer, nothing is added for a while: what is known
    of its pods is old.
    """
    bookmark, _ = LedgerBookmark.objects.get_or_create(
        cluster=cluster,
        defaults={"until": _floor_minute(now - get_lag()), "looked_at": now},
    )
    is_silent = cluster.unreachable_since is not None or not cluster.is_enabled
    held_until = bookmark.held_until
    # One that ends later than any that begins now was written while the clock was ahead.
    is_of_false_time = held_until is not None and held_until > now + get_lag()
    has_paused = now - bookmark.looked_at > PAUSE
    if (is_silent and cluster.removed_at is None) or has_paused or is_of_false_time:
        bookmark.held_until = now + get_lag()
    bookmark.looked_at = now
    bookmark.save(update_fields=["looked_at", "held_until"])
    return bookmark


def _find_due_time(cluster: Cluster, now: datetime) -> datetime:
    """Return up to when a cluster's time may be added: what is later is not known well yet."""
    due = _floor_minute(now - get_lag())
    rollup = MetricRollup.objects.filter(resolution=Resolution.MINUTE).first()
    if rollup is not None:
        made_until = _floor_minute(ledger_evidence.EPOCH + timedelta(seconds=rollup.until))
        if made_until > due - ROLLUP_PATIENCE:
            due = min(due, made_until)
    return due


def _floor_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def account_span(cluster_id: uuid.UUID, begin: datetime, end: datetime) -> bool:
    """Add a span of one day to the ledger, unless that was done already.

    Returns whether this call did it.
    """
    pods = ledger_evidence.load_pods(cluster_id, begin, end)
    pools = ledger_evidence.load_pools(cluster_id)
    by_workload: dict[uuid.UUID, list[HoldingPod]] = defaultdict(list)
    for pod in pods:
        by_workload[pod.workload].append(pod)
    preparing = _sum_preparing(cluster_id, begin, end)
    workloads = sorted(by_workload.keys() | preparing.keys())
    batches = []
    for chunk in split_chunks(workloads, BATCH_SIZE):
        amounts_by_entry = _account_workloads(by_workload, chunk, pools, begin, end)
        for workload in preparing.keys() & set(chunk):
            amounts_by_entry[workload, NO_POOL].preparing += preparing[workload]
        batches.append((amounts_by_entry, ledger_evidence.load_owners(chunk)))
    losses = ledger_losses.load_losses(cluster_id, end)
    with transaction.atomic():
        # Whoever else adds this span waits here for the row, and then finds it moved on.
        claimed = LedgerBookmark.objects.filter(cluster=cluster_id, until=begin).update(until=end)
        if not claimed:
            return False
        for amounts_by_entry, owners in batches:
            _write_entries(amounts_by_entry, owners, begin.date())
        ledger_losses.write_losses(losses)
    return True


def _account_workloads(
    by_workload: Mapping[uuid.UUID, Sequence[HoldingPod]],
    chunk: Sequence[uuid.UUID],
    pools: Mapping[str, Pool],
    begin: datetime,
    end: datetime,
) -> dict[EntryKey, Amounts]:
    """Split the time of all pods of some workloads, by workload and node pool."""
    figures = ledger_evidence.load_figures(chunk, begin, end)
    shares = ledger_evidence.load_waiting_shares(chunk, begin, end)
    since, until = to_milliseconds(begin), to_milliseconds(end)
    amounts_by_entry: dict[EntryKey, Amounts] = defaultdict(Amounts)
    for workload in chunk:
        for pod in by_workload.get(workload, ()):
            share = shares.get((workload, pod.attempt))
            amounts = account_pod(pod.times, since, until, figures.get(pod.key, ()), share)
            if amounts != Amounts():
                amounts_by_entry[workload, pools.get(pod.node, NO_POOL)].add(amounts)
    return amounts_by_entry


def _sum_preparing(
    cluster_id: uuid.UUID, begin: datetime, end: datetime
) -> Mapping[uuid.UUID, int]:
    since, until = to_milliseconds(begin), to_milliseconds(end)
    sums: dict[uuid.UUID, int] = defaultdict(int)
    for workload, milli_gpus, first, last in ledger_evidence.load_preparing(cluster_id, begin, end):
        sums[workload] += milli_gpus * measure_overlap(since, until, first, last)
    return {key: amount for key, amount in sums.items() if amount}


def _write_entries(
    amounts_by_entry: Mapping[EntryKey, Amounts], owners: Mapping[uuid.UUID, Owner], day: date
) -> None:
    """Add amounts to the entries of a day. Two statements for each batch of entries."""
    stored_entries = _load_entries({workload for workload, _ in amounts_by_entry}, day)
    entries = []
    for (workload, pool), amounts in amounts_by_entry.items():
        owner = owners.get(workload)
        if owner is None:
            # Its row went while this ran, long after it was deleted.
            continue
        entry = stored_entries.get((workload, pool.key))
        if entry is None:
            entry = LedgerEntry(day=day, workload=workload, pool=pool.key)
        entry.project_id, entry.user, entry.workload_name = owner.project, owner.user, owner.name
        entry.pool_name, entry.price, entry.currency = pool.name, pool.price, pool.currency
        entry.watts = pool.watts
        total = entry.amounts
        total.add(amounts)
        entry.set_amounts(total)
        entry.pk = None
        entries.append(entry)
    LedgerEntry.objects.bulk_create(
        entries,
        batch_size=BATCH_SIZE,
        update_conflicts=True,
        unique_fields=["workload", "day", "pool"],
        update_fields=_FIELDS,
    )


def _load_entries(
    workloads: Iterable[uuid.UUID], day: date
) -> Mapping[tuple[uuid.UUID, int], LedgerEntry]:
    rows = LedgerEntry.objects.filter(workload__in=list(workloads), day=day)
    return {(entry.workload, entry.pool): entry for entry in rows}

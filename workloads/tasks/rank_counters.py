"""The counters of ranks out of their logs: how long they waited for data, and what they got."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from clusters import connections
from workloads import data_delivery, journal, logbook
from workloads.data_delivery import RankLine
from workloads.kube_objects import DATA_WORKER
from workloads.logbook import stamps
from workloads.models import DataPreparation, Log, RankDelivery, Workload

logger = logging.getLogger(__name__)

SAMPLE_EVERY = timedelta(seconds=15)
MOST_LOGS = 500
"""Logs of one workload that are read in one run; the next goes on behind them."""
TAIL_BYTES = 32 << 10
"""Of the end of a log that are read: a rank says its counters every half minute at least."""
MOST_RANKS = 64
"""Ranks that may speak in one log: the processes of one pod."""
LATE = timedelta(seconds=30)
"""For how long a log's row may be behind its file."""

_places: dict[int, int] = {}
"""Behind which log the next run of this process begins, by the key of the attempt's row."""


def record_counters(row: DataPreparation, now: datetime, deadline: float) -> None:
    """Record the newest counters of an attempt's ranks, unless that was done of late.

    After `deadline`, by the monotonic clock, no further logs are read.
    """
    is_due = row.sampled_at is None or now - row.sampled_at >= SAMPLE_EVERY
    if not (is_due or row.pk in _places) or time.monotonic() > deadline:
        return
    workload: Workload = row.workload
    logs = _load_logs(row, _places.pop(row.pk, 0))
    newest: dict[int, tuple[int, RankLine]] = {}
    last = 0
    for log in logs:
        if time.monotonic() > deadline:
            break
        last = log.pk
        for rank, stamped in _read_ranks(log).items():
            newest[rank] = max(newest.get(rank, stamped), stamped, key=lambda each: each[0])
    is_whole = len(logs) < MOST_LOGS and (not logs or last == logs[-1].pk)
    if not is_whole:
        _places[row.pk] = last
    lead = connections.clock_offset(workload.cluster_id)
    counters = [
        _build_row(row, line, min(now, stamps.to_datetime(ns) - lead))
        for ns, line in newest.values()
    ]
    journal.record_rank_counters(
        workload.pk, row.attempt, counters, now if is_whole else row.sampled_at
    )


def _load_logs(row: DataPreparation, behind: int) -> Sequence[Log]:
    """Load the logs of ranks that may have news, in their order. One query."""
    logs = Log.objects.filter(
        pod__workload=row.workload_id, pod__attempt=row.attempt, is_init=False, pk__gt=behind
    )
    logs = logs.exclude(pod__role=DATA_WORKER).exclude(state=Log.State.REMOVED)
    if row.sampled_at is not None:
        lead = connections.clock_offset(row.workload.cluster_id)
        logs = logs.filter(last_at__gte=row.sampled_at + lead - LATE)
    return list(logs.order_by("pk")[:MOST_LOGS])


def _read_ranks(log: Log) -> Mapping[int, tuple[int, RankLine]]:
    """Return the last counters of each rank in a log, with their times in nanoseconds."""
    newest: dict[int, tuple[int, RankLine]] = {}
    for ns, line in _read_tail(log):
        if line.rank in newest or len(newest) < MOST_RANKS:
            newest[line.rank] = ns, line
    return newest


def _read_tail(log: Log) -> Iterator[tuple[int, RankLine]]:
    try:
        tail = logbook.read_tail(log, TAIL_BYTES)
    except Exception:
        # Whatever the disk or the object store's client raises, other ranks are read.
        logger.exception("the log %s is unreadable", log.pk)
        return
    for raw in tail.split(b"\n"):
        ns, begin = stamps.parse_stamp(raw[:64])
        line = data_delivery.parse_line(raw[begin:])
        if ns is not None and isinstance(line, RankLine):
            yield ns, line


def _build_row(row: DataPreparation, line: RankLine, at: datetime) -> RankDelivery:
    return RankDelivery(
        workload_id=row.workload_id,
        attempt=row.attempt,
        rank=line.rank,
        at=at,
        span=line.span,
        waited=line.waited,
        computed=line.computed,
        depth=line.depth,
        rate=line.rate,
        delivered=line.delivered,
        epoch=line.epoch,
    )

"""Finished rows of metrics packed, several as one: they take half the room or less.

A row is finished once the coarser figures were made of it. Nobody appends to it any more, and the
readers of `rows.py` read both kinds.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Min, Sum
from django.db.models.functions import Length

from workloads.metric_models import MetricRollup, MetricRow
from workloads.metrics.frames import MAX_UNPACKED, DamagedFrames, pack_rows
from workloads.metrics.resolutions import FINER, ROW_SECONDS, Resolution, get_retention
from workloads.metrics.rollups import LARGEST_LEAD
from workloads.metrics.rows import PACKED, PACKED_ROWS, append_packed_rows

MOST_SPANS = 2
"""Packed starts of one resolution that one turn makes: after a pause it catches up over several."""
BATCH_SERIES = 100
"""Series of one transaction: some 15 ms of SQLite's only writer."""
BATCH_BYTES = 2 << 20
"""Bytes of rows of one transaction, unless one series has more."""
_COARSER = {finer: coarser for coarser, finer in FINER.items()}


def compact_rows(now: datetime) -> None:
    """Pack the rows of each resolution that are finished by now. May run twice or late."""
    made_until = dict(MetricRollup.objects.values_list("resolution", "until"))
    for resolution in Resolution:
        finished = made_until.get(_COARSER.get(resolution, resolution).value)
        if finished is None:
            continue
        # By a clock that was ahead it would be of later than now.
        finished = min(finished, int(now.timestamp()))
        length = ROW_SECONDS[resolution] * PACKED_ROWS[resolution]
        number = PACKED[resolution]
        packed_until = made_until.get(number)
        if packed_until is None:
            packed_until = _find_oldest(resolution, finished)
            MetricRollup.objects.get_or_create(resolution=number, defaults={"until": packed_until})
        elif packed_until > finished + LARGEST_LEAD:
            # What is packed already has left no rows, and is not packed again.
            rows = MetricRollup.objects.filter(resolution=number, until=packed_until)
            packed_until = _find_oldest(resolution, finished)
            rows.update(until=packed_until)
        # Older rows are deleted soon.
        oldest = int((now - get_retention(resolution)).timestamp())
        at = max(packed_until, oldest) // length * length
        for _ in range(MOST_SPANS):
            if at + length > finished:
                break
            _pack_span(resolution, at // ROW_SECONDS[resolution])
            at += length
            MetricRollup.objects.filter(resolution=number, until__lt=at).update(until=at)


def _find_oldest(resolution: Resolution, finished: int) -> int:
    """Return when the oldest row begins, in seconds since 1970; `finished` where there is none."""
    rows = MetricRow.objects.filter(resolution=resolution)
    start: int | None = rows.aggregate(oldest=Min("start"))["oldest"]
    return finished if start is None else start * ROW_SECONDS[resolution]


def _pack_span(resolution: Resolution, start: int) -> None:
    """Pack the rows from this start on that become packed rows of it."""
    starts = range(start, start + PACKED_ROWS[resolution])
    for series in _split_series(resolution, starts):
        _pack_series(resolution, starts, series)


def _split_series(resolution: Resolution, starts: range) -> Iterator[list[int]]:
    """Yield the series that have rows, as many together as one transaction packs. One query."""
    rows = MetricRow.objects.filter(resolution=resolution, start__in=starts).order_by()
    batch: list[int] = []
    total = 0
    for series, size in rows.values_list("series").annotate(size=Sum(Length("data"))):
        # A packed row that would be too large to unpack is not made.
        if size > MAX_UNPACKED // 2:
            continue
        if batch and (len(batch) == BATCH_SERIES or total + size > BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(series)
        total += size
    if batch:
        yield batch


def _pack_series(resolution: Resolution, starts: range, series: Sequence[int]) -> None:
    """Put packed rows in the place of these series' rows, in one transaction."""
    collected: dict[int, list[tuple[int, bytes]]] = {}
    rows = MetricRow.objects.filter(resolution=resolution, start__in=starts)
    for key, start, data in (
        rows.filter(series__in=series).order_by("start").values_list("series", "start", "data")
    ):
        offset = (start - starts[0]) * ROW_SECONDS[resolution]
        collected.setdefault(key, []).append((offset, bytes(data)))
    packed, count = {}, 0
    for key, series_rows in collected.items():
        try:
            packed[key] = pack_rows(series_rows)
            count += len(series_rows)
        except DamagedFrames:
            # It stays until it is too old; whoever reads it says so.
            continue
    with transaction.atomic():
        deleted, _ = rows.filter(series__in=list(packed)).delete()
        if deleted == count:
            append_packed_rows(resolution, starts[0], packed)
        else:
            # Another process packs these, too.
            transaction.set_rollback(True)

"""The rows of metrics in the database: frames appended, read and deleted, packed rows too."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from workloads.metric_models import MetricRow
from workloads.metrics.frames import DamagedFrames, Frame, decode_frames, unpack_frames
from workloads.metrics.resolutions import ROW_SECONDS, Resolution

log = logging.getLogger(__name__)

BATCH_SIZE = 400
"""Rows of one statement."""
PACKED: Final = {Resolution.RAW: 3, Resolution.MINUTE: 4, Resolution.TEN_MINUTES: 5}
"""What is stored as the resolution of packed rows, by that of their frames."""
PACKED_ROWS: Final = {Resolution.RAW: 10, Resolution.MINUTE: 6, Resolution.TEN_MINUTES: 6}
"""How many rows become a packed one, whose start is a multiple of that."""

TimedFrame = tuple[int, Frame]
"""Seconds since 1970, and the figures of then."""


def append_frames(resolution: Resolution, at: int, frames: Mapping[int, bytes]) -> None:
    """Append a frame to the row of each series that covers this moment; one statement a batch."""
    _append_data(resolution.value, at // ROW_SECONDS[resolution], frames)


def append_packed_rows(resolution: Resolution, start: int, packed: Mapping[int, bytes]) -> None:
    """Append what is packed to the packed row of each series that begins at this start."""
    _append_data(PACKED[resolution], start, packed)


def _append_data(resolution: int, start: int, data_by_series: Mapping[int, bytes]) -> None:
    rows = sorted(data_by_series.items())
    append = _append_slices if connection.vendor == "postgresql" else _append_values
    with connection.cursor() as cursor:
        for first in range(0, len(rows), BATCH_SIZE):
            append(cursor, resolution, start, rows[first : first + BATCH_SIZE])


def _append_values(
    cursor: CursorWrapper, resolution: int, start: int, rows: Sequence[tuple[int, bytes]]
) -> None:
    table = connection.ops.quote_name(MetricRow._meta.db_table)
    values = ", ".join(["(%s, %s, %s, %s)"] * len(rows))
    parameters: list[Any] = []
    for series, data in rows:
        parameters += (resolution, start, series, data)
    # SQLite joins blobs as a text of the same bytes.
    statement = (
        f"INSERT INTO {table} (resolution, start, series, data) VALUES {values} "  # noqa: S608 - names of our own
        "ON CONFLICT (resolution, start, series) DO UPDATE "
        f"SET data = CAST({table}.data || excluded.data AS BLOB)"
    )
    cursor.execute(statement, parameters)


def _append_slices(
    cursor: CursorWrapper, resolution: int, start: int, rows: Sequence[tuple[int, bytes]]
) -> None:
    """Append in PostgreSQL: all data is one parameter, of which each row is given its slice.

    A parameter for each value takes two to eight times the processor.
    """
    table = connection.ops.quote_name(MetricRow._meta.db_table)
    lengths = [len(data) for _, data in rows]
    # SQL counts from 1.
    begins = list(accumulate(lengths[:-1], initial=1))
    statement = (
        f"INSERT INTO {table} (resolution, start, series, data) "  # noqa: S608 - names of our own
        "SELECT %s, %s, series, substring(%s::bytea FROM begins FOR length) "
        "FROM unnest(%s::int[], %s::int[], %s::int[]) AS added (series, begins, length) "
        "ON CONFLICT (resolution, start, series) DO UPDATE "
        f"SET data = {table}.data || excluded.data"
    )
    data = b"".join(each for _, each in rows)
    series = [key for key, _ in rows]
    cursor.execute(statement, [resolution, start, data, series, begins, lengths])


def load_rows(
    series: Sequence[int], resolution: Resolution, since: int, until: int, spacing: int = 0
) -> Iterator[tuple[int, int, bytes]]:
    """Yield series, start and bytes of each row that covers any of this time, in order.

    One query. All moments are seconds since 1970. With a spacing only rows are read that cover one
    of its multiples, and the first. A packed row comes unpacked; one that is damaged is left out.
    """
    seconds, together = ROW_SECONDS[resolution], PACKED_ROWS[resolution]
    packed = PACKED[resolution]
    step = max(seconds, spacing)
    multiples = {at // seconds for at in range(since // step * step, until, step)}
    starts = sorted(multiples | {since // seconds})
    # Every start is named: the key begins with it, and so each is found without reading others.
    rows = MetricRow.objects.filter(
        Q(resolution=resolution, start__in=starts)
        | Q(resolution=packed, start__in={start // together * together for start in starts}),
        series__in=series,
    ).order_by("start", "series")
    columns = ("resolution", "start", "series", "data")
    for number, start, key, data in rows.values_list(*columns).iterator(chunk_size=500):
        row_bytes = bytes(data)
        if number == packed:
            try:
                row_bytes = unpack_frames(row_bytes)
            except DamagedFrames as error:
                _log_damage(key, error)
                continue
        yield key, start * seconds, row_bytes


def load_frames(
    series: Sequence[int], resolution: Resolution, since: int, until: int
) -> Iterator[tuple[int, TimedFrame]]:
    """Yield each frame of these series from `since` to before `until`, with its series, in order.

    One query. Both moments are seconds since 1970.
    """
    for key, start, data in load_rows(series, resolution, since, until):
        for frame in decode_row(key, data):
            if since <= start + frame.seconds < until:
                yield key, (start + frame.seconds, frame)


def decode_row(series: int, data: bytes) -> list[Frame]:
    """Return the frames of a row; none of a row that is damaged, which spoils no other."""
    try:
        return list(decode_frames(data))
    except DamagedFrames as error:
        _log_damage(series, error)
        return []


def _log_damage(series: int, error: DamagedFrames) -> None:
    log.warning("a row of metrics of series %d is left out: %s", series, error)


def delete_rows(resolution: Resolution, before: int, most: int) -> int:
    """Delete rows that end before this moment, those of one start in each transaction.

    Returns how many starts were deleted, at most `most`.
    """
    last = before // ROW_SECONDS[resolution]
    deleted = 0
    for number, length in ((PACKED[resolution], PACKED_ROWS[resolution]), (resolution.value, 1)):
        rows = MetricRow.objects.filter(resolution=number)
        while deleted < most:
            start = rows.order_by("start").values_list("start", flat=True).first()
            if start is None or start + length > last:
                break
            rows.filter(start=start).delete()
            deleted += 1
    return deleted

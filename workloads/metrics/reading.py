"""The kept figures of an owner between two moments, at the resolution that its length asks for."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from clusters.metrics.catalogue import (
    METRICS_BY_NAME,
    Combination,
    Metric,
    combine_values,
)
from workloads.metric_models import MetricRollup, MetricSeries
from workloads.metrics.frames import Frame, combine_over_time, space_frames
from workloads.metrics.resolutions import FINER, Resolution, get_frame_seconds, get_retention
from workloads.metrics.rows import decode_row, load_rows

LONGEST: Final = {Resolution.RAW: timedelta(hours=2), Resolution.MINUTE: timedelta(hours=12)}
"""The longest time that is read at a resolution: 500 to 700 frames."""
MOST_BYTES: Final = 8 << 20
"""Bytes of frames that one reading is meant to have at most."""
MOST_FILE_BYTES: Final = 64 << 20
"""The same of what is not for a page: a file, or an answer of the REST API."""
SOURCE_BYTES: Final = 40
"""About what one source has in a frame: its id, and two bytes of each metric."""
_GPUS_MEASURED = METRICS_BY_NAME["gpus_measured"].code

Row = tuple[int, int, bytes]
"""Series, start in seconds since 1970, and frames."""


class LastingFrame(NamedTuple):
    """The figures of a moment, and for how long they stand."""

    at: int
    """Seconds since 1970."""
    seconds: int
    frame: Frame


@dataclass(frozen=True, slots=True)
class Span:
    """The time that figures are read of: from `since` to before `until`, in seconds since 1970."""

    since: int
    until: int

    def begin_after(self, after: int | None, now: datetime) -> "Span":
        """Return the part after a moment, where figures are read as they were measured.

        Coarser ones change at their end: of these all are read again.
        """
        if after is None or self.choose_resolution(now) is not Resolution.RAW:
            return self
        return Span(min(max(self.since, after), self.until), self.until)

    def choose_resolution(self, now: datetime) -> Resolution:
        """Return the finest resolution that is kept of all of it and has not too many frames."""
        length = timedelta(seconds=self.until - self.since)
        for resolution, longest in LONGEST.items():
            kept_since = (now - get_retention(resolution)).timestamp()
            if length <= longest and self.since >= kept_since:
                return resolution
        return Resolution.TEN_MINUTES


def plan_reading(span: Span, now: datetime) -> list[tuple[Resolution, Span]]:
    """Return which resolution is read of which part of the span, in order. One query.

    The newest of a coarse resolution are not made yet: the finer ones stand in for them.
    """
    resolution = span.choose_resolution(now)
    made_until = dict(MetricRollup.objects.values_list("resolution", "until"))
    # Nothing is of later than now, and of no resolution more is read than is kept.
    present = int(now.timestamp())
    end = min(span.until, present + 60)
    parts: list[tuple[Resolution, Span]] = []
    since = span.since
    while True:
        is_raw = resolution is Resolution.RAW
        # What was made by a clock that was ahead is not of later than now either.
        rollup_end = min(made_until.get(resolution.value, 0), present)
        until = end if is_raw else max(since, min(end, rollup_end))
        kept_since = int((now - get_retention(resolution)).timestamp())
        if max(since, kept_since) < until:
            parts.append((resolution, Span(max(since, kept_since), until)))
        if is_raw:
            return parts
        since, resolution = until, FINER[resolution]


def find_series(**owner: Any) -> int | None:
    """Return the number of an owner's series; None where nothing was ever measured. One query."""
    return MetricSeries.objects.filter(**owner).values_list("pk", flat=True).first()


def choose_spacing(span: Span, now: datetime, sources: int, most_bytes: int = MOST_BYTES) -> int:
    """Return how many seconds apart frames are read, so that they are not too many bytes.

    0 where all of them are read: so many sources have few enough.
    """
    seconds = get_frame_seconds(span.choose_resolution(now))
    size = (span.until - span.since) / seconds * sources * SOURCE_BYTES
    return seconds * math.ceil(size / most_bytes) if size > most_bytes else 0


def describe_reading(span: Span, now: datetime, spacing: int) -> dict[str, Any]:
    """Return what the page's script is told of a reading, but for whose figures they are."""
    return {
        "since": span.since,
        "until": span.until,
        "now": int(now.timestamp()),
        "isRaw": span.choose_resolution(now) is Resolution.RAW,
        "spacing": spacing,
    }


def iterate_series_frames(
    series: int, span: Span, now: datetime, spacing: int = 0
) -> Iterator[LastingFrame]:
    """Yield the frames of a series in order, `spacing` seconds apart. Four queries at most."""
    for resolution, part, (_, start, data) in _iterate_rows([series], span, now, spacing):
        for frame in decode_row(series, data):
            at = start + frame.seconds
            if part.since <= at < part.until:
                yield LastingFrame(at, max(spacing, get_frame_seconds(resolution)), frame)


def load_series_rows(
    series: Sequence[int], span: Span, now: datetime, spacing: int = 0
) -> list[Row]:
    """Load series, start and bytes of the rows with the span's frames. Four queries at most.

    They are not decoded: the page's script does that. Where resolutions meet, a row may have
    frames outside its part; the reader leaves out what does not come after the frame before.
    """
    return [row for _, _, row in _iterate_rows(series, span, now, spacing)]


def _iterate_rows(
    series: Sequence[int], span: Span, now: datetime, spacing: int
) -> Iterator[tuple[Resolution, Span, Row]]:
    """Yield the rows of each part of the span, with frames `spacing` seconds apart."""
    last_numbers: dict[int, int] = {}
    for resolution, part in plan_reading(span, now):
        for key, start, data in load_rows(series, resolution, part.since, part.until, spacing):
            row_bytes = data
            if spacing:
                last = last_numbers.get(key, -1)
                row_bytes, last_numbers[key] = space_frames(data, start, part.since, spacing, last)
            yield resolution, part, (key, start, row_bytes)


def measure_frame(frame: Frame, metric: Metric, source: int | None = None) -> float | None:
    """Return a metric of one source of a frame, or of all of them together; None where unknown.

    Of all together, each source counts as much as it was there; one alone is that of its own time.
    """
    values = frame.list_values(metric.code)
    if source is not None:
        place = frame.ids.index(source) if source in frame.ids else -1
        value = values[place] if values and place >= 0 else math.nan
        return value if value == value else None
    if not values:
        return None
    if metric.over_pods is Combination.MEAN:
        return _combine_weighted(frame, metric)
    if metric.over_pods is Combination.SUM:
        values = list(map(operator.mul, values, frame.list_presence()))
    known = [value for value in values if value == value]
    return combine_values(known, metric.over_pods) if known else None


@dataclass(frozen=True, slots=True)
class Measure:
    """How a value is made of a frame, None where it is unknown, and of all those of a time."""

    of_frame: Callable[[Frame], float | None]
    over_time: Combination


def build_use(metric: Metric, source: int | None = None) -> Measure:
    """Return the measure of a metric, of one source or of all together."""
    return Measure(partial(measure_frame, metric=metric, source=source), metric.over_time)


def build_share(metric: Metric, capacity: Metric, present_capacity: float) -> Measure:
    """Return the measure of the use in percent of the capacity.

    A frame without a capacity is measured by the present one; where that is 0, it has no share.
    """

    def measure_share(frame: Frame) -> float | None:
        value = measure_frame(frame, metric)
        whole = measure_frame(frame, capacity) or present_capacity
        return None if value is None or not whole else 100 * value / whole

    return Measure(measure_share, metric.over_time)


def pick_values(
    frames: Iterable[LastingFrame], measures: Mapping[str, Measure], span: Span, count: int
) -> dict[str, list[tuple[int, float]]]:
    """Return of each measure its value in each of `count` equal parts of the span, at their ends.

    A part without figures has none. A mean over time counts each frame as long as it stands for.
    The frames are read once, and none of them is kept: all of a large gang's take gigabytes.
    """
    if not count:
        return {name: [] for name in measures}
    part = (span.until - span.since) / count
    by_part: dict[str, dict[int, tuple[list[float], list[float]]]] = {name: {} for name in measures}
    for at, seconds, frame in frames:
        number = int((at - span.since) / part)
        for name, measure in measures.items():
            value = measure.of_frame(frame)
            if value is not None:
                values, weights = by_part[name].setdefault(number, ([], []))
                values.append(value)
                weights.append(seconds)
    return {
        name: [
            (
                round(span.since + (number + 1) * part),
                combine_over_time(*weighted_values, measures[name].over_time),
            )
            for number, weighted_values in sorted(parts.items())
        ]
        for name, parts in by_part.items()
    }


def _combine_weighted(frame: Frame, metric: Metric) -> float | None:
    """Return the mean over devices: a pod of eight counts eight times, one of half the time half.

    What no device measures is the mean over pods.
    """
    devices: Sequence[float] = frame.list_values(_GPUS_MEASURED) if metric.of_device else ()
    devices = devices or [1.0] * len(frame.ids)
    total = total_weight = 0.0
    for value, number, share in zip(
        frame.list_values(metric.code), devices, frame.list_presence(), strict=False
    ):
        if value == value:
            weight = share * (number if number > 0 else 1.0)
            total += value * weight
            total_weight += weight
    return total / total_weight if total_weight else None

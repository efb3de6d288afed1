"""Coarser figures made from finer ones as time passes, each moment once; old rows deleted."""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from workloads.metric_models import MetricRollup, MetricRow
from workloads.metrics.frames import merge_frames
from workloads.metrics.resolutions import FINER, ROW_SECONDS, Resolution, get_retention
from workloads.metrics.rows import append_frames, decode_row, delete_rows

SWEEP_SECONDS = 45
"""How long a sweep may take until it is written."""
MOST_MOMENTS = 30
"""Moments of one resolution that one turn makes: after a pause it catches up over several."""
LARGEST_LEAD = 600
"""Seconds by which what was made may be ahead of the present: it was another process's clock."""
MOST_DELETED = 20
"""Starts of one resolution that one turn deletes."""


def get_grace() -> int:
    """Return the seconds after a moment until its figures are taken as complete."""
    # A sweep is stored under a moment that may be one interval before it began.
    return settings.OPTIONS.metric_seconds + SWEEP_SECONDS


def roll_up(now: datetime) -> None:
    """Make the frames of each coarser resolution that are due. May run twice or late."""
    complete = int(now.timestamp()) - get_grace()
    for resolution, finer in FINER.items():
        step = ROW_SECONDS[finer]
        due = complete // step * step
        rollup, _ = MetricRollup.objects.get_or_create(
            resolution=resolution, defaults={"until": due - step}
        )
        if rollup.until > due + LARGEST_LEAD and not _has_later_rows(now):
            _set_back(rollup, due)
        # What is older than the finer rows are kept cannot be made any more.
        oldest = int((now - get_retention(finer)).timestamp()) // step * step
        at = max(rollup.until, oldest)
        for _ in range(MOST_MOMENTS):
            if at + step > due or not _roll_up_moment(resolution, rollup.until, at):
                break
            at += step
            rollup.until = at
        # The next resolution is made of what this one has by now.
        complete = min(rollup.until, due)


def delete_old_rows(now: datetime) -> None:
    """Delete the rows that were kept as long as the settings say."""
    for resolution in Resolution:
        before = int((now - get_retention(resolution)).timestamp())
        delete_rows(resolution, before, MOST_DELETED)


def _has_later_rows(now: datetime) -> bool:
    """Tell whether there are figures of the next minutes: then our clock is behind."""
    seconds = ROW_SECONDS[Resolution.RAW]
    start = int(now.timestamp()) // seconds
    rows = MetricRow.objects.filter(
        resolution=Resolution.RAW, start__gt=start + 1, start__lte=start + LARGEST_LEAD // seconds
    )
    return rows.exists()


def _set_back(rollup: MetricRollup, until: int) -> None:
    """Set back what a clock that was ahead has set, unless another process did so meanwhile."""
    rows = MetricRollup.objects.filter(resolution=rollup.resolution, until=rollup.until)
    rows.update(until=until)
    rollup.until = until


def _roll_up_moment(resolution: Resolution, previous: int, at: int) -> bool:
    """Make the frames from `at` on out of one finer row each.

    Returns False where another process has done so meanwhile.
    """
    finer = FINER[resolution]
    offset = at % ROW_SECONDS[resolution]
    frames = {}
    rows = MetricRow.objects.filter(resolution=finer, start=at // ROW_SECONDS[finer])
    for series, data in rows.order_by().values_list("series", "data").iterator(chunk_size=200):
        if finer_frames := decode_row(series, bytes(data)):
            frames[series] = merge_frames(finer_frames, offset)
    with transaction.atomic():
        claimed = MetricRollup.objects.filter(resolution=resolution, until=previous).update(
            until=at + ROW_SECONDS[finer]
        )
        if claimed:
            append_frames(resolution, at, {key: data for key, data in frames.items() if data})
    return bool(claimed)

"""The resolutions in which figures are kept, and the rows of each."""

from datetime import timedelta
from enum import IntEnum
from typing import Final

from django.conf import settings


class Resolution(IntEnum):
    """How closely figures follow each other. The numbers are stored."""

    RAW = 0
    """As they were sampled."""
    MINUTE = 1
    TEN_MINUTES = 2


ROW_SECONDS: Final = {Resolution.RAW: 60, Resolution.MINUTE: 600, Resolution.TEN_MINUTES: 3600}
"""What one row covers: of a finer resolution, what becomes one frame of the next."""
FINER: Final = {
    Resolution.MINUTE: Resolution.RAW,
    Resolution.TEN_MINUTES: Resolution.MINUTE,
}
"""What the frames of a resolution are made from."""


def get_frame_seconds(resolution: Resolution) -> int:
    """Return how many seconds one frame of a resolution stands for."""
    if resolution is Resolution.RAW:
        return settings.OPTIONS.metric_seconds
    # Where it is measured less often than each minute, frames of minutes are as rare.
    return max(ROW_SECONDS[FINER[resolution]], settings.OPTIONS.metric_seconds)


def get_retention(resolution: Resolution) -> timedelta:
    """Return how long rows of a resolution are kept."""
    options = settings.OPTIONS
    return {
        Resolution.RAW: timedelta(hours=options.metric_hours),
        Resolution.MINUTE: timedelta(days=options.metric_minute_days),
        Resolution.TEN_MINUTES: timedelta(days=options.metric_days),
    }[resolution]

"""How figures are written in CSV files of metrics."""

from collections.abc import Sequence
from typing import Final

from clusters.metrics.catalogue import METRICS
from workloads.metrics.frames import Frame
from workloads.metrics.packing import COUNTED

_SHOWN: Final = [metric for metric in METRICS if metric.name not in COUNTED]
METRIC_COLUMNS: Final[Sequence[str]] = [
    f"{metric.name} {metric.unit.value}".strip() for metric in _SHOWN
]
"""The heads of the columns of figures: name and unit."""


def format_metrics(frame: Frame, place: int) -> list[str]:
    """Return the figures of the source at this place in the order of the columns; "" for gaps."""
    columns = [frame.list_values(metric.code) for metric in _SHOWN]
    values = [column[place] if column else float("nan") for column in columns]
    return [f"{value:.6g}" if value == value else "" for value in values]

"""Figures as bytes for the script of metrics pages (`static/js/metrics.js`). Pure."""

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from clusters.metrics.catalogue import METRICS, Metric

COUNTED: Final = (
    "gpus_measured",
    "gpus_unused",
    "presence",
    "cpu_capacity",
    "memory_capacity",
)
"""Metrics that are counted with, and not drawn."""
_LENGTH: Final = struct.Struct("<I")
_ROW: Final = struct.Struct("<QII")

PackedRow = tuple[int, int, bytes]
"""Whose frames these are, the start in seconds since 1970, and the frames. Source 0: the ids in the
frames say whose."""


def pack_figures(head: Mapping[str, Any], rows: Iterable[PackedRow]) -> bytes:
    """Return what the script reads: the length of a JSON text, the text, then rows.

    A row is its source, its start, its length and its frames.
    """
    text = msgspec.json.encode({"metrics": [_describe_metric(each) for each in METRICS], **head})
    parts = [_LENGTH.pack(len(text)), text]
    for source, start, data in rows:
        parts += (_ROW.pack(source, start, len(data)), data)
    return b"".join(parts)


def _describe_metric(metric: Metric) -> Mapping[str, Any]:
    return {
        "code": metric.code,
        "name": metric.name,
        "title": metric.title,
        "unit": metric.unit.value,
        "isDevice": metric.of_device,
        "isShown": metric.name not in COUNTED,
        "isFault": metric.is_fault,
    }

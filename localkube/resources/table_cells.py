"""Cells that columns of many kinds show: names, ages, durations, labels and simple JSON paths.

They are formatted as kubectl prints them.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from localkube import clock
from localkube.metadata import Object, name_of
from localkube.resources.resource import Column

NONE = "<none>"
UNKNOWN = "<unknown>"

NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request "
    "the generation of an appropriate name automatically. Name is primarily intended for "
    "creation idempotence and configuration "
    "definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
AGE_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It is not guaranteed to be set in "
    "happens-before order across separate operations. Clients may not set this value. It is "
    "represented in RFC3339 form and is in UTC."
    "\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)

_YEAR_HOURS = 24 * 365


def format_duration(duration: timedelta) -> str:
    """Format a duration in one or two units, coarser the longer it is.

    Examples: "59s", "2m5s", "3h10m", "7d" (apimachinery `HumanDuration`).
    """
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes = seconds // 60
    if minutes < 10:
        return _format_pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _format_pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _format_pair(hours // 24, "d", hours % 24, "h")
    if hours < _YEAR_HOURS * 2:
        return f"{hours // 24}d"
    if hours < _YEAR_HOURS * 8:
        return _format_pair(hours // _YEAR_HOURS, "y", hours // 24 % 365, "d")
    return f"{hours // _YEAR_HOURS}y"


def _format_pair(large: int, unit: str, small: int, part: str) -> str:
    return f"{large}{unit}{small}{part}" if small else f"{large}{unit}"


def format_since(timestamp: str | None) -> str:
    """Format how long ago a time was, or "<unknown>"."""
    moment = parse_optional_time(timestamp)
    return UNKNOWN if moment is None else format_duration(clock.current_time() - moment)


def parse_optional_time(timestamp: Any) -> datetime | None:
    """Parse a time of an object; return None when it is absent or malformed."""
    try:
        return clock.parse_time(timestamp) if isinstance(timestamp, str) and timestamp else None
    except ValueError:
        return None


def format_age(obj: Object) -> str:
    return format_since(obj["metadata"].get("creationTimestamp"))


def format_labels(texts: Mapping[str, str] | None) -> str:
    """Format labels as `a=b,c=d`, or "<none>"."""
    return ",".join(f"{key}={value}" for key, value in sorted(texts.items())) if texts else NONE


NAME = Column("Name", name_of, format="name", description=NAME_DESCRIPTION)
AGE = Column("Age", format_age, description=AGE_DESCRIPTION)


_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[(-?[0-9]+):\]")


def compile_path(expression: str) -> Callable[[Object], Any]:
    """Compile a JSON path of a printer column, `.a.b` and `[-1:]`, into a reader.

    The reader returns None where the path leads nowhere. Raises ValueError for another path.
    """
    steps: list[str | int] = [field or int(index) for field, index in _STEP.findall(expression)]
    if "".join(match.group() for match in _STEP.finditer(expression)) != expression:
        raise ValueError(f"not a path that columns use: {expression}")

    def read(obj: Object) -> Any:
        value: Any = obj
        for step in steps:
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and value else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        return value

    return read


def build_custom_column(definition: Mapping[str, Any]) -> Column:
    """Build a column of a custom kind from its `additionalPrinterColumns` entry."""
    read, kind = compile_path(definition["jsonPath"]), definition["type"]

    def cell(obj: Object) -> Any:
        value = read(obj)
        if value is None:
            return None
        if kind == "date":
            return format_since(value) if parse_optional_time(value) else "<invalid>"
        if kind == "string":
            return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        return value

    text = (
        definition.get("description")
        or f"Custom resource definition column (in JSONPath format): {definition['jsonPath']}"
    )
    return Column(
        definition["name"],
        cell,
        kind,
        definition.get("format", ""),
        definition.get("priority", 0),
        text,
    )

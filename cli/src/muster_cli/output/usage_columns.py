"""The columns of GPU hours."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muster_cli.output.tables import TableColumn

_HOURS = (
    ("ALLOCATED", "allocatedHours"),
    ("USEFUL", "usefulHours"),
    ("WAITING", "waitingForDataHours"),
    ("IDLE", "idleHours"),
    ("LOST", "lostHours"),
    ("STARTING", "startingHours"),
    ("UNKNOWN", "unknownHours"),
    ("QUEUED", "queuedHours"),
    ("PREPARING", "preparingDataHours"),
)


def build_usage_columns(group_by: str) -> Sequence[TableColumn]:
    """Return the columns of usage by this: the hours of each kind, and what they cost."""
    columns = [TableColumn("NAME", lambda item: item.get("name"))]
    if group_by == "workload":
        columns += [
            TableColumn("PROJECT", lambda item: item.get("projectName")),
            TableColumn("USER", lambda item: item.get("user"), is_wide=True),
        ]
    columns += [TableColumn(title, _build_hours_reader(name)) for title, name in _HOURS]
    return [
        *columns,
        TableColumn("COST", _read_costs),
        TableColumn("KWH", lambda item: item.get("kilowattHours"), is_wide=True),
    ]


def _build_hours_reader(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda item: f"{float(item.get(name) or 0):.1f}"


def _read_costs(item: Mapping[str, Any]) -> str:
    costs = item.get("costs") or []
    return ", ".join(f"{float(each['amount']):.2f} {each['currency']}" for each in costs)

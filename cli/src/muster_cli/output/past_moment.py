"""A past moment as lines and tables for people."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from muster_cli.output.tables import TableColumn

_ROW_COLUMNS = (
    TableColumn("NAME", lambda item: item.get("name")),
    TableColumn("PROJECT", lambda item: item.get("projectName")),
    TableColumn("USER", lambda item: item.get("submittedBy"), is_wide=True),
    TableColumn("STATUS", lambda item: item.get("phase")),
    TableColumn("SINCE", lambda item: format_local(item.get("since"))),
)
WAITING_COLUMNS: Sequence[TableColumn] = (
    *_ROW_COLUMNS,
    TableColumn("WANTS", lambda item: _format_number(item.get("requestedGpus"))),
    TableColumn("PLACE", lambda item: _format_place(item)),
    TableColumn("WHY", lambda item: item.get("reason")),
)
RUNNING_COLUMNS: Sequence[TableColumn] = (
    *_ROW_COLUMNS,
    TableColumn("GPUS", lambda item: _format_number(item.get("allocatedGpus"))),
    TableColumn("PODS", lambda item: f"{item.get('runningPods')}/{item.get('requestedPods')}"),
    TableColumn("NODES", lambda item: ", ".join(item.get("nodes") or ())),
)
NODE_COLUMNS: Sequence[TableColumn] = (
    TableColumn("NODE", lambda item: item.get("name")),
    TableColumn("READY", lambda item: "yes" if item.get("isReady") else "no"),
    TableColumn("GPUS", lambda item: _format_number(item.get("gpus"))),
    TableColumn("FREE", lambda item: _format_number(item.get("freeGpus"))),
    TableColumn("HELD BY", lambda item: _format_holders(item)),
)
QUOTA_COLUMNS: Sequence[TableColumn] = (
    TableColumn("PROJECT", lambda item: item.get("name")),
    TableColumn("ALLOCATED", lambda item: _format_number(item.get("allocatedGpus"))),
    TableColumn("QUOTA", lambda item: _format_number(item.get("gpuQuota"))),
    TableColumn("LIMIT", lambda item: _format_number(item.get("gpuLimit"))),
)


def list_notes(moment: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is to be known of a moment before its tables."""
    yield f"The state at {format_local(moment.get('at'))}."
    if gap := moment.get("gap"):
        begin = format_local(gap.get("begin"))
        yield (
            f"Nothing was recorded between {begin} and {format_local(gap['end'])}."
            if gap.get("end")
            else f"Nothing has been recorded since {begin}."
        )
    for each in moment.get("silentClusters") or ():
        since = format_local(each.get("since"))
        yield f"Nothing was known of the cluster {each['name']} since {since}."
    if workload := moment.get("workload"):
        yield f"{workload['name']}: {workload['phase']}. {workload['reason']}".rstrip()


def describe_hidden(rows: Mapping[str, Any], verb: str) -> str:
    """Describe workloads that the reader may not see; "" where there are none."""
    hidden = rows.get("anotherProject") or {}
    count = hidden.get("count")
    if not count:
        return ""
    noun = "workload" if count == 1 else "workloads"
    return f"Another project: {count} {noun} {verb} {_format_number(hidden.get('gpus'))} GPUs."


def format_local(text: str | None) -> str:
    """Return a moment of the API in local time, by the minute."""
    if not text:
        return "–"
    moment = datetime.fromisoformat(text)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def _format_number(number: float | None) -> str:
    return "–" if number is None else f"{number:g}"


def _format_place(item: Mapping[str, Any]) -> str:
    position = item.get("queuePosition")
    return "" if position is None else f"{position}/{item.get('queueLength')}"


def _format_holders(item: Mapping[str, Any]) -> str:
    holders = item.get("holders") or ()
    return ", ".join(f"{each['holder']} {_format_number(each['gpus'])}" for each in holders)

"""`arena list`, `get`, `top` and `data list`, with Arena's columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster_cli import routes
from muster_cli.actions import moments, nodes, workloads
from muster_cli.actions import resources as resource_actions
from muster_cli.dialects.arena_words import check_type, get_status, get_trainer, parse_type
from muster_cli.dialects.listing import (
    JOBS_LIMIT,
    NODES,
    add_nodes,
    read_allocated_gpus,
    read_requested_gpus,
)
from muster_cli.dialects.tables import Call
from muster_cli.errors import UsageProblem
from muster_cli.output.formats import OutputFormat, write_items, write_value
from muster_cli.output.tables import TableColumn, build_rows, format_value, render_table
from muster_cli.output.terminal import Terminal, clean_text
from muster_cli.output.workload_columns import read_pod_status
from muster_cli.resource_types import get_value
from muster_cli.resources import RESOURCES

Item = Mapping[str, Any]
SHOWN_EVENTS = 50
DATA_LIMIT = 1_000


def _read_duration(item: Item) -> str:
    return moments.describe_duration(item.get("totalRunningTimeSeconds") or 0)


def _read_age(item: Item) -> str:
    return moments.describe_duration(moments.compute_age(item.get("createdAt")))


def _read_nodes(item: Item) -> str:
    return ",".join(item.get(NODES) or ()) or "N/A"


NAMESPACE = TableColumn("NAMESPACE", lambda item: item.get("namespace"))
_NAME = TableColumn("NAME", lambda item: item["name"])
_STATUS = TableColumn("STATUS", get_status)
_TRAINER = TableColumn("TRAINER", get_trainer)
_GPUS = (
    TableColumn("GPU(Requested)", lambda item: format_value(read_requested_gpus(item))),
    TableColumn("GPU(Allocated)", lambda item: format_value(read_allocated_gpus(item))),
)
_NODE = TableColumn("NODE", _read_nodes)
LIST_COLUMNS = [
    _NAME,
    _STATUS,
    _TRAINER,
    TableColumn("DURATION", _read_duration),
    *_GPUS,
    _NODE,
    TableColumn("ID", lambda item: item["id"], is_wide=True),
]
HOLDER_COLUMNS = [_NAME, _STATUS, _TRAINER, TableColumn("AGE", _read_age), *_GPUS, _NODE]
INSTANCE_COLUMNS = [
    _NAME,
    TableColumn("STATUS", read_pod_status),
    TableColumn("AGE", _read_age),
    TableColumn(
        "IS_CHIEF",
        lambda item: "true" if item.get("rank") == 0 or item.get("role") == "launcher" else "false",
    ),
    TableColumn(
        "GPU(Requested)", lambda item: get_value(item, "requestedResources.gpu.request") or 0
    ),
    TableColumn("NODE", lambda item: item.get("nodeName") or "N/A"),
]
EVENT_COLUMNS = [
    TableColumn("SOURCE", lambda item: get_value(item, "involvedObject.name")),
    TableColumn("TYPE", lambda item: item.get("type")),
    TableColumn("AGE", _read_age),
    TableColumn("MESSAGE", lambda item: item.get("message")),
]
NODE_COLUMNS = [
    _NAME,
    TableColumn("IPADDRESS", lambda item: "N/A"),
    TableColumn("ROLE", lambda item: ",".join(item.get("roles") or ()) or "<none>"),
    TableColumn("STATUS", lambda item: item.get("status")),
    TableColumn("GPU(Total)", lambda item: get_value(item, "gpuInfo.gpuCount") or 0),
    TableColumn("GPU(Allocated)", lambda item: get_value(item, "gpuInfo.allocated") or 0),
    TableColumn("UNHEALTHY", lambda item: get_value(item, "gpuInfo.unhealthy"), is_wide=True),
    TableColumn("CLUSTER", lambda item: item.get("clusterName"), is_wide=True),
]
DATA_COLUMNS = [
    TableColumn("NAME", lambda item: get_value(item, "meta.name")),
    TableColumn("ACCESSMODE", lambda item: _read_access_modes(item)),
    TableColumn("DESCRIPTION", lambda item: get_value(item, "meta.description")),
    TableColumn("OWNER", lambda item: get_value(item, "meta.createdBy")),
    TableColumn(
        "AGE",
        lambda item: moments.describe_duration(
            moments.compute_age(get_value(item, "meta.createdAt"))
        ),
    ),
]
_ACCESS_MODES = {
    "readWriteOnce": "ReadWriteOnce",
    "readOnlyMany": "ReadOnlyMany",
    "readWriteMany": "ReadWriteMany",
}


def _read_access_modes(item: Item) -> str:
    modes = get_value(item, "spec.claimInfo.accessModes") or {}
    return ",".join(text for name, text in _ACCESS_MODES.items() if modes.get(name)) or "N/A"


def _read_output(call: Call) -> OutputFormat:
    return OutputFormat(call.get_text("--output") or "table")


def _write_rows(
    call: Call, items: Sequence[Item], columns: Sequence[TableColumn], output: OutputFormat
) -> None:
    if call.has("--all-namespaces"):
        columns = [NAMESPACE, *columns]
    write_items(items, columns, output, call.invocation.terminal)


def list_jobs(call: Call) -> None:
    """List the newest workloads."""
    session, output = call.invocation.session, _read_output(call)
    trainer = parse_type(call.get_text("--type"))
    jobs = list(
        workloads.list_workloads(
            session, filter_by=workloads.build_filter(project=call.project), limit=JOBS_LIMIT + 1
        )
    )
    rows = [each for each in jobs[:JOBS_LIMIT] if trainer in ("", get_trainer(each))]
    if output in (OutputFormat.TABLE, OutputFormat.WIDE):
        add_nodes(session, rows, call.project)
    _write_rows(call, rows, LIST_COLUMNS, output)
    if len(jobs) > JOBS_LIMIT:
        call.invocation.notify(
            f"These are the newest {JOBS_LIMIT}: `muster list --limit` has more."
        )


def get_job(call: Call) -> None:
    """Show a workload, its pods, and what happened to those that wait."""
    session, terminal = call.invocation.session, call.invocation.terminal
    details = workloads.get_details(session, call.get_name(), call.project)
    check_type(details, call.get_text("--type"))
    output = _read_output(call)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(details, output, terminal)
        return
    facts = {
        "Name": details["name"],
        "Status": get_status(details),
        "Namespace": details.get("namespace"),
        "Priority": details.get("priorityClassName") or "N/A",
        "Trainer": get_trainer(details),
        "Duration": _read_duration(details),
        "CreateTime": details.get("createdAt"),
        "EndTime": details.get("completedAt") or "",
    }
    explained = workloads.explain(details)
    if parts := [explained[name] for name in ("message", "clusterMessage") if explained[name]]:
        facts["Message"] = " ".join(parts)
    for label, value in facts.items():
        terminal.write_line(f"{label + ':':<12}{clean_text(str(value))}".rstrip())
    pods = workloads.list_pods(session, str(details["id"]))
    terminal.write_line()
    terminal.write_line("Instances:")
    _write_underlined(INSTANCE_COLUMNS, pods, terminal)
    if call.has("--events"):
        events = workloads.list_events(session, str(details["id"]), SHOWN_EVENTS)
        terminal.write_line()
        terminal.write_line("Events:")
        _write_underlined(EVENT_COLUMNS, events, terminal)


def _write_underlined(
    columns: Sequence[TableColumn], items: Sequence[Item], terminal: Terminal
) -> None:
    """Write a table as Arena does: moved in, with a line below each heading."""
    titles, rows = build_rows(columns, items, is_wide=False)
    underlined = [["-" * len(title) for title in titles], *rows]
    for line in render_table(titles, underlined, terminal):
        terminal.write_line(f"  {line}")


def show_nodes(call: Call) -> None:
    """Show how full the nodes are, and all of them together."""
    output, terminal = _read_output(call), call.invocation.terminal
    items = nodes.list_nodes(call.invocation.session)
    wanted = set(call.arguments)
    if absent := wanted - {each["name"] for each in items}:
        raise UsageProblem(f"There is no node {', '.join(sorted(absent))}.", "`arena top node`")
    rows = [each for each in items if not wanted or each["name"] in wanted]
    write_items(rows, NODE_COLUMNS, output, terminal)
    if output not in (OutputFormat.TABLE, OutputFormat.WIDE):
        return
    total = sum(float(get_value(each, "gpuInfo.gpuCount") or 0) for each in rows)
    allocated_gpus = sum(float(get_value(each, "gpuInfo.allocated") or 0) for each in rows)
    share = 100 * allocated_gpus / total if total else 0.0
    terminal.write_line("-" * 80)
    terminal.write_line("Allocated/Total GPUs In Cluster:")
    terminal.write_line(f"{format_value(allocated_gpus)}/{format_value(total)} ({share:.1f}%)")


def show_holders(call: Call) -> None:
    """Show the workloads that hold GPUs, those with most first."""
    if call.arguments:
        raise UsageProblem(
            "REST has no figures of single instances.", f"`arena get {call.arguments[0]}`"
        )
    session, output = call.invocation.session, _read_output(call)
    trainer = parse_type(call.get_text("--type"))
    holders = [
        each
        for each in nodes.list_holders(session, call.project, JOBS_LIMIT)
        if trainer in ("", get_trainer(each))
    ]
    if output in (OutputFormat.TABLE, OutputFormat.WIDE):
        add_nodes(session, holders, call.project)
    _write_rows(call, holders, HOLDER_COLUMNS, output)


def list_data(call: Call) -> None:
    """List the data sources that are claims, which --data names."""
    session, query = call.invocation.session, {}
    if call.project:
        filter_by = {"filterBy": f"name=={call.project}"}
        for each in session.list_items(routes.LIST_PROJECTS, "projects", query=filter_by, limit=1):
            query = {"projectId": str(each["id"])}
    claims = resource_actions.list_resources(
        session, RESOURCES["datasource"], kind="pvc", query=query, limit=DATA_LIMIT
    )
    write_items(list(claims), DATA_COLUMNS, OutputFormat.TABLE, call.invocation.terminal)

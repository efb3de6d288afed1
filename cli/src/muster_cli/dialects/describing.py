"""`runai describe`: a workload or a node, in the lines of each version."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster_cli import routes
from muster_cli.actions import moments, workloads
from muster_cli.dialects.listing import (
    format_gpus,
    read_allocated_gpus,
    read_output,
    read_pending_pods,
    read_requested_gpus,
)
from muster_cli.dialects.tables import Call
from muster_cli.errors import NotFound, UsageProblem
from muster_cli.output.descriptions import describe_part
from muster_cli.output.formats import OutputFormat, write_value
from muster_cli.output.tables import TableColumn, build_rows, format_value, render_table
from muster_cli.output.terminal import Terminal, clean_text
from muster_cli.output.workload_columns import read_pod_status
from muster_cli.resource_types import get_value

Item = Mapping[str, Any]
SHOWN_EVENTS = 15
POD_LIMIT, EVENT_LIMIT, MOST_ROWS = 10, 50, 10_000
_SECTIONS = ("general", "compute", "pods", "events", "networks")


def _read_age(item: Item) -> str:
    return moments.describe_duration(moments.compute_age(item.get("createdAt")))


POD_COLUMNS = [
    TableColumn("POD", lambda item: item["name"]),
    TableColumn("STATUS", read_pod_status),
    TableColumn("TYPE", lambda item: str(item.get("role") or "").upper()),
    TableColumn("AGE", _read_age),
    TableColumn("NODE", lambda item: item.get("nodeName") or "<none>"),
]
EVENT_COLUMNS = [
    TableColumn(
        "SOURCE",
        lambda item: (
            f"{str(get_value(item, 'involvedObject.kind') or '').lower()}/"
            f"{get_value(item, 'involvedObject.name')}"
        ),
    ),
    TableColumn("TYPE", lambda item: item.get("type")),
    TableColumn("AGE", _read_age),
    TableColumn("MESSAGE", lambda item: item.get("message")),
]


def describe_job(call: Call) -> None:
    """Show a workload in the lines of version 1: its facts, pods and newest events."""
    session, terminal = call.invocation.session, call.invocation.terminal
    details = workloads.get_details(session, call.get_name(), call.project)
    if _write_data(call, details):
        return
    pods = workloads.list_pods(session, str(details["id"]))
    events = workloads.list_events(session, str(details["id"]), SHOWN_EVENTS)
    for line in list_job_lines(details, pods):
        terminal.write_line(line)
    terminal.write_line()
    terminal.write_line("Pods:")
    for line in render_table(*build_rows(POD_COLUMNS, pods, is_wide=False), terminal):
        terminal.write_line(line)
    terminal.write_line()
    terminal.write_line("Events:")
    for line in render_table(*build_rows(EVENT_COLUMNS, events, is_wide=False), terminal):
        terminal.write_line(line)


def _write_data(call: Call, value: Item | Sequence[Item]) -> bool:
    """Write an item, or several, as JSON or YAML where that is asked for; tell whether it was."""
    output = read_output(call)
    if output not in (OutputFormat.JSON, OutputFormat.YAML):
        return False
    write_value(value, output, call.invocation.terminal)
    return True


def list_job_lines(workload: Item, pods: Sequence[Item]) -> Iterator[str]:
    """Yield the facts of a workload, one a line."""
    allocated_gpus = format_gpus(read_allocated_gpus(workload))
    succeeded = sum(1 for each in pods if each.get("k8sPhase") == "Succeeded")
    failed = sum(1 for each in pods if each.get("k8sPhase") == "Failed")
    facts = {
        "NAME": workload["name"],
        "NAMESPACE": workload.get("namespace"),
        "TYPE": "Train",
        "STATUS": workload["phase"],
        "MESSAGE": _read_reason(workload),
        "TRAINING DURATION": moments.describe_duration(
            workload.get("totalRunningTimeSeconds") or 0
        ),
        "GPUS": format_value(get_value(workload, "podsRequestedResources.gpu.request") or 0),
        "TOTAL REQUESTED GPUS": format_gpus(read_requested_gpus(workload)),
        "ALLOCATED GPUS": allocated_gpus,
        "ALLOCATED GPUS MEMORY": format_value(
            get_value(workload, "workloadRequestedResources.gpuMemory.request")
        )
        or "-",
        "RUNNING PODS": workload.get("runningPods") or 0,
        "PENDING PODS": read_pending_pods(workload),
        "PARALLELISM": get_value(workload, "requestedPods.parallelism") or 1,
        "COMPLETIONS": get_value(workload, "requestedPods.completions") or 1,
        "SUCCEEDED PODS": succeeded,
        "FAILED PODS": failed,
        "IS DISTRIBUTED WORKLOAD": str(workload.get("type") == "Distributed").lower(),
        "CREATED BY CLI": "-",
        "SERVICE URL(S)": ", ".join(map(str, workload.get("urls") or ())),
        "COMMAND LINE": " ".join(
            str(workload[each]) for each in ("command", "arguments") if workload.get(each)
        ),
    }
    for label, value in facts.items():
        if label != "MESSAGE" or value:
            yield f"{label}: {clean_text(str(value))}".rstrip()
    limits = get_value(workload, "requestedPods")
    if isinstance(limits, Mapping) and limits.get("max") is not None:
        yield f"ELASTIC PODS: {limits['min']} to {limits['max']}"


def _read_reason(workload: Item) -> str:
    """Return why a workload waits or failed, with the line that a failed pod wrote."""
    explained = workloads.explain(dict(workload))
    parts = [str(explained[name]) for name in ("message", "clusterMessage", "logLine")]
    return " ".join(each for each in dict.fromkeys(parts) if each)


def describe_workload(call: Call) -> None:
    """Show a workload in the sections of version 2."""
    session, terminal = call.invocation.session, call.invocation.terminal
    details = workloads.get_details(session, call.get_name(), call.project)
    if _write_data(call, details):
        return
    named = [each for each in _SECTIONS if call.has(f"--{each}")] or list(_SECTIONS)
    for section in named:
        for line in _describe_section(call, section, details, terminal):
            terminal.write_line(line)


_GENERAL = (
    ("Name", "name"),
    ("ID", "id"),
    ("Type", "type"),
    ("Framework", "distributedFramework"),
    ("Status", "phase"),
    ("Project", "projectName"),
    ("Department", "departmentName"),
    ("Namespace", "namespace"),
    ("Priority", "priorityClassName"),
    ("Preemptible", "preemptible"),
    ("Images", "images"),
    ("Command", "command"),
    ("Arguments", "arguments"),
    ("Created By", "submittedBy"),
    ("Creation Time", "createdAt"),
    ("Completion Time", "completedAt"),
)
_COMPUTE = (
    ("Running Pods", "runningPods"),
    ("Requested Pods", "requestedPods.number"),
    ("Minimum Pods", "requestedPods.min"),
    ("Maximum Pods", "requestedPods.max"),
    ("GPU Request", "workloadRequestedResources.gpu.request"),
    ("GPU Allocation", "allocatedResources.gpu"),
    ("GPU Memory Request", "workloadRequestedResources.gpuMemory.request"),
    ("CPU Core Request", "workloadRequestedResources.cpu.request"),
    ("CPU Memory Request", "workloadRequestedResources.cpuMemory.request"),
    ("Node Pools", "requestedNodePools"),
)


def _describe_section(
    call: Call, section: str, workload: Item, terminal: Terminal
) -> Iterator[str]:
    session, workload_id = call.invocation.session, str(workload["id"])
    match section:
        case "general":
            yield from _describe_facts("General", _GENERAL, workload)
            if reason := _read_reason(workload):
                yield f"Message: {clean_text(reason)}"
        case "compute":
            yield from _describe_facts("Compute", _COMPUTE, workload)
        case "pods":
            limit = _parse_limit(call, "--pod-limit", POD_LIMIT)
            pods = workloads.list_pods(session, workload_id)
            yield from describe_part("Pods", POD_COLUMNS, pods[:limit], terminal)
            if len(pods) > limit:
                yield f"… and {len(pods) - limit} more: --pod-limit shows them."
        case "events":
            limit = _parse_limit(call, "--event-limit", EVENT_LIMIT)
            events = workloads.list_events(session, workload_id, limit) if limit else []
            if call.get_text("--sortEvents") == "desc":
                events.reverse()
            yield from describe_part("Events", EVENT_COLUMNS, events, terminal)
        case "networks":
            urls = [{"url": each} for each in workload.get("urls") or ()]
            columns = [TableColumn("URL", lambda item: item["url"])]
            yield from describe_part("Networks", columns, urls, terminal)


def _describe_facts(title: str, facts: Sequence[tuple[str, str]], workload: Item) -> Iterator[str]:
    yield f"{title}:"
    for label, path in facts:
        if text := format_value(get_value(workload, path)):
            yield f"{label}: {text}"


def _parse_limit(call: Call, flag: str, otherwise: int) -> int:
    text = call.get_text(flag)
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit()) or len(text) > 5:
        raise UsageProblem(f"{flag} is a number up to {MOST_ROWS:,}, and not {text}.")
    return min(int(text), MOST_ROWS)


def describe_node(call: Call) -> None:
    """Show what is known of a node, one fact a line."""
    name = call.arguments[0]
    if set(name) & set(",=<>!") or not name.isprintable():
        raise UsageProblem(f"'{name}' is not the name of a node.")
    query = {"filterBy": f"name=={name}"}
    nodes = list(
        call.invocation.session.list_items(routes.LIST_NODES, "nodes", query=query, limit=20)
    )
    if not nodes:
        raise NotFound(
            f"There is no node {name} among those that you may see.", "`runai list nodes` has them."
        )
    # A name may be that of a node in each of several clusters.
    if _write_data(call, nodes[0] if len(nodes) == 1 else nodes):
        return
    for node in nodes:
        for label, path in _NODE_FACTS:
            if text := format_value(get_value(node, path)):
                call.invocation.terminal.write_line(f"{label}: {text}")


_NODE_FACTS = (
    ("NAME", "name"),
    ("CLUSTER", "clusterName"),
    ("STATUS", "status"),
    ("MESSAGE", "statusReason"),
    ("ROLES", "roles"),
    ("NODE POOL", "nodePool"),
    ("GPU TYPE", "gpuInfo.gpuType"),
    ("GPUS", "gpuInfo.gpuCount"),
    ("ALLOCATED GPUS", "gpuInfo.allocated"),
    ("FREE GPUS", "gpuInfo.free"),
    ("UNHEALTHY GPUS", "gpuInfo.unhealthy"),
    ("CPUS", "cpu.total"),
    ("ALLOCATED CPUS", "cpu.allocated"),
    ("PODS", "pods"),
)

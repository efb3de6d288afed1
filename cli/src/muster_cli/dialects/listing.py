"""`runai list jobs`, `list projects` and the lists of version 2, with their columns."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from muster_cli import routes
from muster_cli.actions import moments, workloads
from muster_cli.dialects.tables import Call
from muster_cli.errors import UsageProblem
from muster_cli.output.formats import OutputFormat, write_items
from muster_cli.output.tables import TableColumn, build_rows, format_value, render_table
from muster_cli.resource_types import get_value
from muster_cli.session import Session

Item = Mapping[str, Any]
JOBS_LIMIT = 500
DEFAULT_LIMIT = 50
MOST_ITEMS = 10_000
MOST_PODS = 5_000
"""Pods whose nodes are looked up for a list."""
NODES = "nodes"
"""Where a listed workload keeps the names of its nodes."""
FRAMEWORKS = {
    "pytorch": "PyTorch",
    "tensorflow": "TF",
    "mpi": "MPI",
    "xgboost": "XGBoost",
    "jax": "JAX",
}


def format_gpus(value: Any) -> str:
    """Return a number of GPUs as Run:ai writes it: with two digits after the point."""
    return f"{float(value or 0):.2f}"


def read_requested_gpus(item: Item) -> float:
    """Return how many GPUs a workload asks for."""
    return float(get_value(item, "workloadRequestedResources.gpu.request") or 0)


def read_allocated_gpus(item: Item) -> float:
    """Return how many GPUs a workload holds."""
    return float(get_value(item, "allocatedResources.gpu") or 0)


def read_pending_pods(item: Item) -> int:
    """Return how many pods of a workload that has not ended do not run."""
    if item["phase"] in workloads.ENDED:
        return 0
    requested = int(get_value(item, "requestedPods.number") or 0)
    return max(0, requested - int(item.get("runningPods") or 0))


def _read_age(item: Item) -> str:
    return moments.describe_duration(moments.compute_age(item.get("createdAt")))


JOB_COLUMNS = [
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("STATUS", lambda item: item["phase"]),
    TableColumn("AGE", _read_age),
    TableColumn("NODE", lambda item: ",".join(item.get(NODES) or ()) or "<none>"),
    TableColumn("IMAGE", lambda item: (item.get("images") or [""])[0]),
    TableColumn("TYPE", lambda item: "Train"),
    TableColumn("PROJECT", lambda item: item.get("projectName")),
    TableColumn("USER", lambda item: item.get("submittedBy")),
    TableColumn(
        "GPUs Allocated (Requested)",
        lambda item: (
            f"{format_gpus(read_allocated_gpus(item))} ({format_gpus(read_requested_gpus(item))})"
        ),
    ),
    TableColumn(
        "PODs Running (Pending)",
        lambda item: f"{item.get('runningPods') or 0} ({read_pending_pods(item)})",
    ),
    TableColumn("SERVICE URL(S)", lambda item: ", ".join(map(str, item.get("urls") or ()))),
]
WORKLOAD_COLUMNS = [
    TableColumn("Workload", lambda item: item["name"]),
    TableColumn("Type", lambda item: item.get("type")),
    TableColumn("Status", lambda item: item["phase"]),
    TableColumn("Project", lambda item: item.get("projectName")),
    TableColumn("Preemptible", lambda item: "Yes" if item.get("preemptible") else "No"),
    TableColumn(
        "Running/Requested Pods",
        lambda item: (
            f"{item.get('runningPods') or 0}/{get_value(item, 'requestedPods.number') or 0}"
        ),
    ),
    TableColumn("GPU Allocation", lambda item: format_gpus(read_allocated_gpus(item))),
]
PROJECT_COLUMNS = [
    TableColumn("PROJECT", lambda item: item["name"]),
    TableColumn("DEPARTMENT", lambda item: item.get("departmentName")),
    TableColumn(
        "DESERVED GPUs", lambda item: format_value(get_value(item, "totalResources.gpuQuota"))
    ),
    TableColumn("INT LIMIT", lambda item: "-"),
    TableColumn("INT AFFINITY", lambda item: "-"),
    TableColumn("TRAIN AFFINITY", lambda item: format_value(item.get("nodePools")) or "-"),
]


def read_output(call: Call) -> OutputFormat:
    """Return the format that flags ask for. Raises UsageProblem."""
    flags = [each for each in ("--json", "--yaml", "--table") if call.has(each)]
    if len(flags) > 1:
        raise UsageProblem(f"{' and '.join(flags)} exclude each other.")
    named = flags[0][2:] if flags else call.get_text("--output")
    return OutputFormat(named) if named else OutputFormat.TABLE


def add_nodes(session: Session, items: Sequence[dict[str, Any]], project: str) -> None:
    """Write into each workload the names of the nodes that its pods are on."""
    active = {str(each["id"]): each for each in items if each["phase"] not in workloads.ENDED}
    if not active:
        return
    query = {
        "completed": "false",
        "filterBy": f"projectName=={project}" if project else None,
    }
    for pod in session.list_items(routes.LIST_PODS, "pods", query=query, limit=MOST_PODS):
        workload, node = active.get(str(pod.get("workloadId"))), pod.get("nodeName")
        if workload is not None and node and node not in workload.setdefault(NODES, []):
            workload[NODES].append(node)


def list_jobs(call: Call) -> None:
    """List the newest workloads with the columns of version 1."""
    session = call.invocation.session
    jobs = list(
        workloads.list_workloads(
            session, filter_by=workloads.build_filter(project=call.project), limit=JOBS_LIMIT + 1
        )
    )
    rows, output = jobs[:JOBS_LIMIT], read_output(call)
    if output in (OutputFormat.TABLE, OutputFormat.WIDE):
        add_nodes(session, rows, call.project)
    write_items(rows, JOB_COLUMNS, output, call.invocation.terminal)
    if len(jobs) > JOBS_LIMIT:
        call.invocation.notify(
            f"These are the newest {JOBS_LIMIT}: `muster list --limit` has more."
        )


def list_workloads(call: Call) -> None:
    """List workloads with the columns of version 2."""
    settings, output = call.command.settings, read_output(call)
    framework = FRAMEWORKS.get(str(settings["framework"]), "")
    phases = workloads.parse_phases(call.values.get("--status") or ())
    limit = _parse_count(call, "--limit", DEFAULT_LIMIT)
    offset = _parse_count(call, "--offset", 0)
    matches = workloads.list_workloads(
        call.invocation.session,
        filter_by=workloads.build_filter(
            project=call.project,
            phases=phases,
            workload_type=str(settings["type"]),
            conditions=[f"distributedFramework=={framework}"] if framework else [],
        ),
        phases=phases,
        limit=offset + limit + 1,
    )
    items = list(islice(matches, offset, None))
    page, terminal = items[:limit], call.invocation.terminal
    if call.has("--no-headers") and output is OutputFormat.TABLE:
        titles, rows = build_rows(WORKLOAD_COLUMNS, page, is_wide=False)
        for line in render_table(titles, rows, terminal)[1:]:
            terminal.write_line(line)
    else:
        write_items(page, WORKLOAD_COLUMNS, output, terminal)
    if len(items) > limit:
        call.invocation.notify(f"There are more than {limit}: --limit and --offset show others.")


def _parse_count(call: Call, flag: str, otherwise: int) -> int:
    text = call.get_text(flag)
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit()) or len(text) > 5 or int(text) > MOST_ITEMS:
        raise UsageProblem(f"{flag} is a number up to {MOST_ITEMS:,}, and not {text}.")
    return int(text)


def list_projects(call: Call) -> None:
    """List projects with the columns of version 1."""
    projects = call.invocation.session.list_items(
        routes.LIST_PROJECTS, "projects", limit=MOST_ITEMS
    )
    write_items(list(projects), PROJECT_COLUMNS, read_output(call), call.invocation.terminal)

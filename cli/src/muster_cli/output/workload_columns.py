"""The columns of workloads, pods and events."""

from collections.abc import Mapping
from typing import Any

from muster_cli.actions import moments
from muster_cli.output.tables import TableColumn, format_value
from muster_cli.resource_types import get_value

Item = Mapping[str, Any]


def read_status(item: Item) -> str:
    """Return the status as pages call it: to REST, data is prepared while it is Initializing."""
    return "Preparing data" if item.get("dataDelivery") else str(item["phase"])


def read_pod_status(item: Item) -> str:
    """Return the status of a pod: Deleted where the cluster removed it before it ended.

    To REST such a pod keeps the last status that was known of it.
    """
    has_vanished = item.get("deletedAt") and not item.get("completedAt")
    return "Deleted" if has_vanished else str(item.get("status") or "")


def _read_age(item: Item) -> str:
    return moments.describe_duration(moments.compute_age(item.get("createdAt")))


def _read_pods(item: Item) -> str:
    requested = get_value(item, "requestedPods.number")
    return f"{item.get('runningPods', 0)}/{format_value(requested)}"


def _read_bounds(item: Item) -> str:
    least, most = (get_value(item, f"requestedPods.{name}") for name in ("min", "max"))
    return "" if least is None else f"{format_value(least)}-{format_value(most)}"


def _read_progress(item: Item) -> str:
    progress = item.get("progress") or {}
    step, total, epoch = (progress.get(name) for name in ("step", "total", "epoch"))
    if step is not None:
        return f"{format_value(step)}/{format_value(total)}" if total else f"step {step}"
    return "" if epoch is None else f"epoch {format_value(epoch)}"


def _read_gpus(item: Item) -> str:
    allocated = format_value(get_value(item, "allocatedResources.gpu") or 0)
    requested = format_value(get_value(item, "workloadRequestedResources.gpu.request") or 0)
    return f"{allocated}/{requested}"


def _read_framework(item: Item) -> str:
    return str(item.get("distributedFramework") or "Standard")


def _read_running(item: Item) -> str:
    return moments.describe_duration(item.get("totalRunningTimeSeconds") or 0)


def _read_use(item: Item) -> str:
    percent = get_value(item, "gpuUse.percent") if item.get("gpuUse") else None
    return "" if percent is None else f"{percent:.0f}%"


def _read_idle(item: Item) -> str:
    since = item.get("idleSince")
    return moments.describe_duration(moments.compute_age(since)) if since else ""


WORKLOAD_COLUMNS = [
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("FRAMEWORK", _read_framework),
    TableColumn("STATUS", read_status),
    TableColumn("PODS", _read_pods),
    TableColumn("GPUS", _read_gpus),
    TableColumn("AGE", _read_age),
    TableColumn("PROJECT", lambda item: item.get("projectName")),
    TableColumn("BY", lambda item: item.get("submittedBy")),
    TableColumn("RAN", _read_running, is_wide=True),
    TableColumn("ELASTIC", _read_bounds, is_wide=True),
    TableColumn("PROGRESS", _read_progress, is_wide=True),
    TableColumn("GPU USE", _read_use, is_wide=True),
    TableColumn("PRIORITY", lambda item: item.get("priorityClassName"), is_wide=True),
    TableColumn("ID", lambda item: item["id"], is_wide=True),
    TableColumn("MESSAGE", lambda item: item.get("phaseMessage")),
]
HOLDER_COLUMNS = [
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("GPUS", _read_gpus),
    TableColumn("GPU USE", _read_use),
    TableColumn("IDLE FOR", _read_idle),
    TableColumn("PODS", _read_pods),
    TableColumn("CPU", lambda item: get_value(item, "workloadRequestedResources.cpu.request")),
    TableColumn("RAN", _read_running),
    TableColumn("PROJECT", lambda item: item.get("projectName")),
    TableColumn("BY", lambda item: item.get("submittedBy")),
    TableColumn("STATUS", read_status),
]
POD_COLUMNS = [
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("ROLE", lambda item: item.get("role")),
    TableColumn("RANK", lambda item: item.get("rank")),
    TableColumn("STATUS", read_pod_status),
    TableColumn("RESTARTS", lambda item: item.get("restarts")),
    TableColumn("NODE", lambda item: item.get("nodeName")),
    TableColumn("AGE", _read_age),
    TableColumn("ATTEMPT", lambda item: item.get("attempt"), is_wide=True),
    TableColumn("IP", lambda item: item.get("ip"), is_wide=True),
    TableColumn("MESSAGE", lambda item: item.get("message")),
]
EVENT_COLUMNS = [
    TableColumn("WHEN", lambda item: moments.format_moment(item.get("createdAt"))),
    TableColumn("TYPE", lambda item: item.get("type")),
    TableColumn("REASON", lambda item: item.get("reason")),
    TableColumn(
        "OF",
        lambda item: (
            f"{get_value(item, 'involvedObject.kind')}/{get_value(item, 'involvedObject.name')}"
        ),
    ),
    TableColumn("MESSAGE", lambda item: item.get("message")),
    TableColumn("SOURCE", lambda item: item.get("source"), is_wide=True),
]
NODE_COLUMNS = [
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("STATUS", lambda item: item.get("status")),
    TableColumn("GPU TYPE", lambda item: get_value(item, "gpuInfo.gpuType")),
    TableColumn(
        "GPUS",
        lambda item: _format_share(
            get_value(item, "gpuInfo.allocated"), get_value(item, "gpuInfo.gpuCount")
        ),
    ),
    TableColumn(
        "CPU",
        lambda item: _format_share(get_value(item, "cpu.allocated"), get_value(item, "cpu.total")),
    ),
    TableColumn(
        "MEMORY (GIB)",
        lambda item: _format_share(
            _convert_gib(get_value(item, "memoryBytes.allocated")),
            _convert_gib(get_value(item, "memoryBytes.total")),
        ),
    ),
    TableColumn("PODS", lambda item: item.get("pods")),
    TableColumn("CLUSTER", lambda item: item.get("clusterName")),
    TableColumn("POOL", lambda item: item.get("nodePool"), is_wide=True),
    TableColumn("WHY", lambda item: item.get("statusReason"), is_wide=True),
]


def _format_share(part: Any, total: Any) -> str:
    if not total:
        return format_value(part or 0) + "/0" if part else "-"
    share = round(100 * float(part or 0) / float(total))
    return f"{format_value(part or 0)}/{format_value(total)} ({share}%)"


def _convert_gib(count: Any) -> int | None:
    return None if count is None else round(float(count) / (1 << 30))

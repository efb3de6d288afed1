"""The columns of `kubectl get pods`, by the logic of the real server's printer (`printPod`)."""

from datetime import datetime
from typing import Any

from localkube import clock
from localkube.metadata import FINISHED_PHASES, Object, find_condition, is_terminating
from localkube.resources.resource import Column
from localkube.resources.table_cells import AGE, NAME, NONE, format_duration, parse_optional_time


class PodSummary:
    """The state of a pod's containers, folded into one word and two counts."""

    def __init__(self, pod: Object) -> None:
        self.spec: dict[str, Any] = pod.get("spec") or {}
        self.status: dict[str, Any] = pod.get("status") or {}
        self.reason = str(self.status.get("reason") or self.status.get("phase") or "")
        self.ready_count = 0
        self.restart_count = 0
        self.last_restart: datetime | None = None
        # Init containers with restartPolicy Always keep running and count as containers.
        self.sidecars = {
            c["name"]
            for c in self.spec.get("initContainers") or ()
            if c.get("restartPolicy") == "Always"
        }
        self.container_count = len(self.spec.get("containers") or ()) + len(self.sidecars)
        scheduled = find_condition(self.status.get("conditions") or (), "PodScheduled")
        if scheduled and scheduled.get("reason") == "SchedulingGated":
            self.reason = "SchedulingGated"
        self._read_containers()
        if is_terminating(pod):
            if self.status.get("reason") == "NodeLost":
                self.reason = "Unknown"
            elif self.status.get("phase") not in FINISHED_PHASES:
                self.reason = "Terminating"

    def _read_containers(self) -> None:
        initializing = self._read_init_containers()
        initialized = find_condition(self.status.get("conditions") or (), "Initialized")
        if not initializing or (initialized is not None and initialized.get("status") == "True"):
            self.restart_count, self.last_restart = 0, None
            for status in self.status.get("initContainerStatuses") or ():
                if status["name"] in self.sidecars:
                    self._count_restarts(status)
            self._read_main_containers()

    def _count_restarts(self, status: dict[str, Any]) -> None:
        self.restart_count += status.get("restartCount", 0)
        ended = parse_optional_time(
            ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        )
        if ended and (self.last_restart is None or self.last_restart < ended):
            self.last_restart = ended

    def _read_init_containers(self) -> bool:
        """Return whether an init container still holds the pod up.

        `reason` then says which or why.
        """
        for index, status in enumerate(self.status.get("initContainerStatuses") or ()):
            self._count_restarts(status)
            state = status.get("state") or {}
            ended, waiting = state.get("terminated"), state.get("waiting") or {}
            if ended is not None and ended.get("exitCode", 0) == 0:
                continue
            if status["name"] in self.sidecars and status.get("started"):
                self.ready_count += bool(status.get("ready"))
                continue
            if ended is not None:
                self.reason = f"Init:{_describe_ending(ended)}"
            elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{index}/{len(self.spec.get('initContainers') or ())}"
            return True
        return False

    def _read_main_containers(self) -> None:
        running = False
        for status in reversed(self.status.get("containerStatuses") or ()):
            self._count_restarts(status)
            state = status.get("state") or {}
            if (state.get("waiting") or {}).get("reason"):
                self.reason = state["waiting"]["reason"]
            elif state.get("terminated") is not None:
                self.reason = _describe_ending(state["terminated"])
            elif status.get("ready") and state.get("running") is not None:
                running = True
                self.ready_count += 1
        if self.reason == "Completed" and running:
            ready = find_condition(self.status.get("conditions") or (), "Ready")
            self.reason = "Running" if ready and ready.get("status") == "True" else "NotReady"


def _describe_ending(terminated: dict[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _format_ready(pod: Object) -> str:
    summary = PodSummary(pod)
    return f"{summary.ready_count}/{summary.container_count}"


def _format_restarts(pod: Object) -> str:
    summary = PodSummary(pod)
    if not summary.restart_count or summary.last_restart is None:
        return str(summary.restart_count)
    age = format_duration(clock.current_time() - summary.last_restart)
    return f"{summary.restart_count} ({age} ago)"


def _format_address(pod: Object) -> str:
    addresses = (pod.get("status") or {}).get("podIPs") or ()
    return (addresses[0].get("ip") if addresses else "") or NONE


def _format_readiness_gates(pod: Object) -> str:
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return NONE
    conditions = (pod.get("status") or {}).get("conditions") or ()
    passed = sum(
        (find_condition(conditions, gate["conditionType"]) or {}).get("status") == "True"
        for gate in gates
    )
    return f"{passed}/{len(gates)}"


COLUMNS = (
    NAME,
    Column(
        "Ready",
        _format_ready,
        description="The aggregate readiness state of this pod for accepting traffic.",
    ),
    Column(
        "Status",
        lambda pod: PodSummary(pod).reason,
        description="The aggregate status of the containers in this pod.",
    ),
    Column(
        "Restarts",
        _format_restarts,
        description=(
            "The number of times the containers in this pod have been restarted and when the "
            "last container in this pod has restarted."
        ),
    ),
    AGE,
    Column(
        "IP",
        _format_address,
        priority=1,
        description="podIP address allocated to the pod. Empty if not yet allocated.",
    ),
    Column(
        "Node",
        lambda pod: pod["spec"].get("nodeName") or NONE,
        priority=1,
        description="The node in which this pod is scheduled.",
    ),
    Column(
        "Nominated Node",
        lambda pod: (pod.get("status") or {}).get("nominatedNodeName") or NONE,
        priority=1,
        description="The node that is being freed for this pod.",
    ),
    Column(
        "Readiness Gates",
        _format_readiness_gates,
        priority=1,
        description=(
            "A pod is ready when all its containers are and all these conditions have status equal "
            'to "True".'
        ),
    ),
)

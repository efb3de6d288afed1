"""A pod's status from the states of its containers: pure functions, in a real kubelet's form.

The form is that of `recorded/pod`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from localkube import clock
from localkube.kubelet import runs
from localkube.kubelet.environment import POD_IP
from localkube.metadata import (
    FINISHED_PHASES,
    Object,
    find_condition,
    is_terminating,
    set_condition,
    uid_of,
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container does not run now."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ContainerView:
    """What to report of one container.

    `attempt_number` is that of its newest start, None before the first; `last_exit` is the end
    before.
    """

    state: Waiting | runs.Running | runs.Exited
    last_exit: runs.Exited | None = None
    attempt_number: int | None = None
    image_id: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a pod is ended before its containers are done.

    `disruption` says that it is not the pod's own doing.
    """

    reason: str
    message: str
    disruption: bool = False


NODE_SHUTDOWN = Verdict(
    "NodeShutdown", "Pod was terminated in response to imminent node shutdown.", disruption=True
)
DEADLINE_EXCEEDED = Verdict(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


def container_id(pod: Object, container: str, attempt_number: int) -> str:
    """Return the id of one run of a container: unique, and the same at each call."""
    run_name = f"{uid_of(pod)}/{container}/{attempt_number}"
    return f"localkube://{hashlib.sha256(run_name.encode()).hexdigest()}"


def is_sidecar(container: Object) -> bool:
    """Return whether this is an init container that keeps running beside the main ones."""
    return container.get("restartPolicy") == "Always"


def init_containers(pod: Object) -> Sequence[Object]:
    return pod["spec"].get("initContainers") or ()


def all_containers(pod: Object) -> Sequence[Object]:
    """Return the init containers, then the main ones."""
    return [*init_containers(pod), *pod["spec"]["containers"]]


def initial_waiting(pod: Object) -> Waiting:
    """Return what a container waits for when nothing is wrong."""
    return Waiting("PodInitializing" if init_containers(pod) else "ContainerCreating")


def has_ended_containers(pod: Object) -> bool:
    """Return whether a container of the pod ran and ended, so that there is a log to read."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("terminated" in (status.get("state") or {}) for status in statuses)


def build_pod_status(
    pod: Object,
    views: Mapping[str, ContainerView],
    *,
    live: bool,
    volumes_ready: bool,
    verdict: Verdict | None = None,
) -> Object:
    """Build the whole status; fields that others wrote into the old one stay.

    `live` is whether any process of the pod is left: a verdict, or a deletion, ends the pod only
    when none is. `volumes_ready` says that the volumes exist.
    """
    old = pod.get("status") or {}
    is_over = not live
    phase = phase_of(pod, views, live=live)
    if is_over and verdict is not None:
        phase = "Failed"
    elif is_over and is_terminating(pod) and phase not in FINISHED_PHASES:
        phase = "Succeeded" if _have_all_succeeded(pod["spec"]["containers"], views) else "Failed"
    status = {
        key: value
        for key, value in old.items()
        if key in ("qosClass", "nominatedNodeName", "reason", "message")
    }
    status |= {
        "phase": phase,
        "hostIP": POD_IP,
        "hostIPs": [{"ip": POD_IP}],
        "startTime": old.get("startTime") or clock.format_time(),
    }
    if verdict is not None and phase == "Failed":
        status |= {"reason": verdict.reason, "message": verdict.message}
    if volumes_ready or "podIP" in old:
        status |= {"podIP": POD_IP, "podIPs": [{"ip": POD_IP}]}
    status["conditions"] = _build_conditions(pod, views, phase, volumes_ready, verdict)
    if init_containers(pod):
        status["initContainerStatuses"] = [
            build_container_status(pod, container, views[container["name"]])
            for container in init_containers(pod)
        ]
    status["containerStatuses"] = [
        build_container_status(pod, container, views[container["name"]])
        for container in pod["spec"]["containers"]
    ]
    return status


def phase_of(pod: Object, views: Mapping[str, ContainerView], *, live: bool) -> str:
    """Return the phase that the containers alone give (kubelet `getPhase`).

    A container that waits for its restart counts as stopped. A pod whose main containers are done
    is still running while a sidecar runs.
    """
    policy = pod["spec"].get("restartPolicy", "Always")
    mains = [views[container["name"]] for container in pod["spec"]["containers"]]
    inits = [
        views[container["name"]] for container in init_containers(pod) if not is_sidecar(container)
    ]
    if not any(view.attempt_number is not None for view in mains):
        if policy == "Never" and any(_has_failed(view) for view in inits):
            return "Pending" if live else "Failed"
        if not all(_has_succeeded(view) for view in inits):
            return "Pending"
    if any(isinstance(view.state, Waiting) and view.last_exit is None for view in mains):
        return "Pending"
    if any(isinstance(view.state, runs.Running) for view in mains) or policy == "Always":
        return "Running"
    succeeded = all(_has_succeeded(view) for view in mains)
    if live or not (succeeded or policy == "Never"):
        return "Running"
    return "Succeeded" if succeeded else "Failed"


def _has_succeeded(view: ContainerView) -> bool:
    return isinstance(view.state, runs.Exited) and view.state.exit_code == 0


def _has_failed(view: ContainerView) -> bool:
    return isinstance(view.state, runs.Exited) and view.state.exit_code != 0


def _have_all_succeeded(containers: Iterable[Object], views: Mapping[str, ContainerView]) -> bool:
    return all(_has_succeeded(views[container["name"]]) for container in containers)


def build_container_status(pod: Object, container: Object, view: ContainerView) -> Object:
    """Build the entry of containerStatuses for one container.

    There are no probes, so a container that runs is ready.
    """
    name = container["name"]
    running = isinstance(view.state, runs.Running)
    plain_init = any(container is other for other in init_containers(pod)) and not is_sidecar(
        container
    )
    current = "" if view.attempt_number is None else container_id(pod, name, view.attempt_number)
    status: Object = {
        "name": name,
        "state": _build_state(view.state, current),
        "lastState": _build_last_state(pod, name, view),
        "ready": _has_succeeded(view) if plain_init else running,
        "restartCount": view.attempt_number or 0,
        "image": container.get("image") or "",
        "imageID": view.image_id,
    }
    if current:
        status["containerID"] = current
    return status | {"started": running}


def _build_last_state(pod: Object, name: str, view: ContainerView) -> Object:
    """Build lastState: the newest run's end while the container waits, else that before."""
    if view.last_exit is None or view.attempt_number is None:
        return {}
    return _build_state(
        view.last_exit,
        container_id(
            pod,
            name,
            view.attempt_number if isinstance(view.state, Waiting) else view.attempt_number - 1,
        ),
    )


def _build_state(state: Waiting | runs.Running | runs.Exited, identity: str) -> Object:
    if isinstance(state, Waiting):
        return {
            "waiting": {"reason": state.reason}
            | ({"message": state.message} if state.message else {})
        }
    if isinstance(state, runs.Running):
        return {"running": {"startedAt": clock.format_time(state.started_at)}}
    terminated: Object = {"exitCode": state.exit_code}
    if state.signal:
        terminated["signal"] = state.signal
    terminated["reason"] = state.reason
    if state.message:
        terminated["message"] = state.message
    times = {
        "startedAt": clock.format_time(state.started_at),
        "finishedAt": clock.format_time(state.finished_at),
    }
    return {"terminated": terminated | times | {"containerID": identity}}


def _build_conditions(
    pod: Object,
    views: Mapping[str, ContainerView],
    phase: str,
    volumes_ready: bool,
    verdict: Verdict | None,
) -> list[Object]:
    """Build the conditions: a kubelet's five in their order, then the disruption, then those of
    others.
    """
    old = (pod.get("status") or {}).get("conditions") or []
    conditions = [
        _build_condition(
            "PodReadyToStartContainers", volumes_ready and phase not in FINISHED_PHASES
        ),
        _build_initialized_condition(pod, views),
    ]
    conditions += _build_ready_conditions(pod, views, phase)
    conditions.append(find_condition(old, "PodScheduled") or _build_condition("PodScheduled", True))
    own_types = {condition["type"] for condition in conditions}
    if verdict is not None and verdict.disruption:
        conditions.append(
            _build_condition("DisruptionTarget", True, "TerminationByKubelet", verdict.message)
        )
        own_types.add("DisruptionTarget")
    ordered = [_set_transition_time(condition, old) for condition in conditions]
    return ordered + [condition for condition in old if condition.get("type") not in own_types]


def _set_transition_time(condition: Object, old: Sequence[Object]) -> Object:
    """Return the condition with the time since which it has had its status."""
    old_conditions = [dict(other) for other in old]
    set_condition(old_conditions, condition)
    return condition


def _build_condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Object:
    condition: Object = {
        "type": kind,
        "status": "True" if holds else "False",
        "lastProbeTime": None,
    }
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _build_initialized_condition(pod: Object, views: Mapping[str, ContainerView]) -> Object:
    started = any(
        views[container["name"]].attempt_number is not None
        for container in pod["spec"]["containers"]
    )
    inits = [(container["name"], views[container["name"]]) for container in init_containers(pod)]
    sidecars = {container["name"] for container in init_containers(pod) if is_sidecar(container)}
    incomplete = [
        name
        for name, view in inits
        if not _has_succeeded(view)
        and not (name in sidecars and isinstance(view.state, runs.Running))
    ]
    if started or not incomplete:
        return _build_condition("Initialized", True)
    return _build_condition(
        "Initialized",
        False,
        "ContainersNotInitialized",
        f"containers with incomplete status: [{' '.join(incomplete)}]",
    )


def _build_ready_conditions(
    pod: Object, views: Mapping[str, ContainerView], phase: str
) -> list[Object]:
    if phase in FINISHED_PHASES:
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        return [
            _build_condition("Ready", False, reason),
            _build_condition("ContainersReady", False, reason),
        ]
    unready = [
        c["name"]
        for c in pod["spec"]["containers"]
        if not isinstance(views[c["name"]].state, runs.Running)
    ]
    if not unready:
        return [_build_condition("Ready", True), _build_condition("ContainersReady", True)]
    message = f"containers with unready status: [{' '.join(unready)}]"
    return [
        _build_condition(kind, False, "ContainersNotReady", message)
        for kind in ("Ready", "ContainersReady")
    ]


def format_go_duration(seconds: int) -> str:
    """Format whole seconds as Go prints a duration: `10s`, `1m20s`, `5m0s`."""
    hours, rest = divmod(seconds, 3600)
    minutes, remaining_seconds = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{remaining_seconds}s"
    return f"{minutes}m{remaining_seconds}s" if minutes else f"{remaining_seconds}s"

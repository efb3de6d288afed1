"""Pure functions that decide which containers of a pod run next, and what to report of each."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from localkube import clock
from localkube.kubelet import attempts, runs
from localkube.kubelet.attempts import Attempt
from localkube.kubelet.images import ImageError
from localkube.kubelet.pod_status import (
    ContainerView,
    Waiting,
    all_containers,
    format_go_duration,
    init_containers,
    initial_waiting,
    is_sidecar,
)
from localkube.kubelet.run_specs import resolve_container_program
from localkube.metadata import Object, name_of, namespace_of, uid_of

AttemptHistory = Mapping[str, Sequence[Attempt]]
"""The attempts of each container by name, oldest first."""


def pod_full_name(pod: Object) -> str:
    """Return how a kubelet names a pod in its messages."""
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"


def restart_policy(pod: Object, container: Object) -> str:
    """Return the restart policy of one container.

    An init container that succeeded is not run again; a sidecar always is.
    """
    policy = str(pod["spec"].get("restartPolicy", "Always"))
    if is_sidecar(container):
        return "Always"
    is_init = any(container["name"] == other["name"] for other in init_containers(pod))
    return "OnFailure" if is_init and policy == "Always" else policy


def has_live_run(history: AttemptHistory) -> bool:
    """Return whether a process of the pod may exist."""
    return any(attempt.is_live for attempt_list in history.values() for attempt in attempt_list)


def supervisor_pids(history: AttemptHistory) -> dict[str, int]:
    """Return the supervisor's pid of each running container.

    Every process below it belongs to the container.
    """
    newest = {
        name: attempt_list[-1].state for name, attempt_list in history.items() if attempt_list
    }
    return {
        name: state.supervisor for name, state in newest.items() if isinstance(state, runs.Running)
    }


def pod_deadline(pod: Object) -> datetime | None:
    """Return when activeDeadlineSeconds are over; None without them or before the pod's start."""
    seconds, start = (
        pod["spec"].get("activeDeadlineSeconds"),
        (pod.get("status") or {}).get("startTime"),
    )
    return (
        None
        if seconds is None or start is None
        else clock.parse_time(start) + timedelta(seconds=int(seconds))
    )


def main_containers_done(pod: Object, history: AttemptHistory) -> bool:
    """Return whether no main container runs or will run again; then sidecars must end too."""
    return all(
        _is_container_done(pod, container, history) for container in pod["spec"]["containers"]
    )


def _is_container_done(pod: Object, container: Object, history: AttemptHistory) -> bool:
    newest = newest_attempt(history, container)
    return (
        newest is not None
        and isinstance(newest.state, runs.Exited)
        and attempts.restart_time(newest, restart_policy(pod, container)) is None
    )


def newest_attempt(history: AttemptHistory, container: Object) -> Attempt | None:
    attempt_list = history[container["name"]]
    return attempt_list[-1] if attempt_list else None


def containers_to_run(pod: Object, history: AttemptHistory) -> Sequence[Object]:
    """Return the containers that may run now.

    Init containers run one after the other, sidecars from their turn on, main containers after all
    of them.
    """
    mains = pod["spec"]["containers"]
    if main_containers_done(pod, history):
        return []
    if any(history[container["name"]] for container in mains):
        return [*(container for container in init_containers(pod) if is_sidecar(container)), *mains]
    ready: list[Object] = []
    for container in init_containers(pod):
        newest = newest_attempt(history, container)
        state = None if newest is None else newest.state
        if is_sidecar(container):
            ready.append(container)
            if not isinstance(state, runs.Running):
                return ready
        elif not isinstance(state, runs.Exited) or state.exit_code != 0:
            return [*ready, container]
    return [*ready, *mains]


def build_views(
    pod: Object, history: AttemptHistory, troubles: Mapping[str, Waiting], *, ending: bool
) -> dict[str, ContainerView]:
    """Build what to report of each container.

    `troubles` keep containers from starting; a pod that is `ending` restarts none.
    """
    ending = ending or main_containers_done(pod, history)
    return {
        container["name"]: _build_view(
            pod,
            container,
            history[container["name"]],
            troubles.get(container["name"]),
            ending=ending,
        )
        for container in all_containers(pod)
    }


def _build_view(
    pod: Object,
    container: Object,
    attempt_list: Sequence[Attempt],
    trouble: Waiting | None,
    *,
    ending: bool,
) -> ContainerView:
    image = _image_id(container)
    if not attempt_list:
        return ContainerView(trouble or initial_waiting(pod), image_id=image)
    newest = attempt_list[-1]
    previous = next(
        (
            (a.number, a.state)
            for a in reversed(attempt_list[:-1])
            if isinstance(a.state, runs.Exited)
        ),
        None,
    )
    last = previous[1] if previous else None
    if isinstance(newest.state, runs.Running):
        return ContainerView(newest.state, last, newest.number, image)
    if not isinstance(newest.state, runs.Exited):
        return ContainerView(
            trouble or Waiting("ContainerCreating"), last, previous[0] if previous else None, image
        )
    if ending or attempts.restart_time(newest, restart_policy(pod, container)) is None:
        return ContainerView(newest.state, last, newest.number, image)
    delay = format_go_duration(newest.delay or attempts.FIRST_DELAY)
    message = (
        f"back-off {delay} restarting failed container={container['name']} pod={pod_full_name(pod)}"
    )
    return ContainerView(
        trouble or Waiting("CrashLoopBackOff", message), newest.state, newest.number, image
    )


def _image_id(container: Object) -> str:
    try:
        return resolve_container_program(container).image_id
    except ImageError:
        return ""

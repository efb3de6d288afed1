"""Functions that read the state of a pod; every operator needs them."""

from collections.abc import Iterator
from datetime import datetime

from localkube import clock
from localkube.metadata import FINISHED_PHASES, Object, find_condition, is_terminating


def phase_of(pod: Object) -> str:
    """Return the phase; a pod that no kubelet has reported on is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    return phase_of(pod) in FINISHED_PHASES


def is_active(pod: Object) -> bool:
    """Return whether the pod is neither finished nor terminating."""
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Object) -> bool:
    condition = find_condition((pod.get("status") or {}).get("conditions") or (), "Ready")
    return condition is not None and condition.get("status") == "True"


def was_shut_down(pod: Object) -> bool:
    """Return whether the pod failed because its node went down.

    A real kubelet writes `status.reason` NodeShutdown for that.
    """
    return phase_of(pod) == "Failed" and (pod.get("status") or {}).get("reason") == "NodeShutdown"


def restarts_of(pod: Object) -> int:
    """Return how often the kubelet restarted the pod's containers in place, init containers
    included.
    """
    return sum(int(status.get("restartCount") or 0) for status in _list_container_statuses(pod))


def exit_code_of(pod: Object, container: str) -> int | None:
    """Return the exit code of a container; None when it has not ended or nothing is known of it."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (status.get("state") or {}).get("terminated")
        if status.get("name") == container and ended is not None:
            return int(ended.get("exitCode") or 0)
    return None


def finish_time(pod: Object) -> datetime:
    """Return when the last container of a finished pod ended.

    Falls back to the creation time of a pod whose status has no such times.
    """
    ends = [
        (status.get("state") or {}).get("terminated") or {}
        for status in _list_container_statuses(pod)
    ]
    times = [clock.parse_time(str(end["finishedAt"])) for end in ends if end.get("finishedAt")]
    return max(times, default=clock.parse_time(str(pod["metadata"]["creationTimestamp"])))


def _list_container_statuses(pod: Object) -> Iterator[Object]:
    status = pod.get("status") or {}
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()

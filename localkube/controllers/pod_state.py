"""Reads the state of a pod: the questions that every operator asks of the pods it made."""

from collections.abc import Iterator
from datetime import datetime

from localkube import clock
from localkube.metadata import FINISHED_PHASES, Object, find_condition, is_terminating


def phase_of(pod: Object) -> str:
    """The phase; a pod that no kubelet has reported on is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    return phase_of(pod) in FINISHED_PHASES


def is_active(pod: Object) -> bool:
    """Neither finished nor on its way out."""
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Object) -> bool:
    condition = find_condition((pod.get("status") or {}).get("conditions") or (), "Ready")
    return condition is not None and condition.get("status") == "True"


def was_shut_down(pod: Object) -> bool:
    """Failed because its node went down, not by anything that it did: `status.reason` NodeShutdown,
    as a real kubelet writes it.
    """
    return phase_of(pod) == "Failed" and (pod.get("status") or {}).get("reason") == "NodeShutdown"


def restarts_of(pod: Object) -> int:
    """How often the kubelet restarted containers of the pod in place, init containers included."""
    return sum(int(status.get("restartCount") or 0) for status in _list_container_statuses(pod))


def exit_code_of(pod: Object, container: str) -> int | None:
    """The exit code of a container that has ended; None when it has not, or when nothing is known
    of it.
    """
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (status.get("state") or {}).get("terminated")
        if status.get("name") == container and ended is not None:
            return int(ended.get("exitCode") or 0)
    return None


def finish_time(pod: Object) -> datetime:
    """When the last container of a finished pod ended; of a pod without a word about that, when it
    was made.
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

"""What a pod's status says of one run of a container, and so how its log can be had."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from workloads.observed import Object, listed, number, part


class Sight(Enum):
    """Where a run stands."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    ENDED = "ended"
    """And no other has followed it: its log is the container's."""
    PREVIOUS = "previous"
    """Another has followed it: its log is the previous one."""
    OVER = "over"
    """More than one has followed it: its log is gone."""
    GONE = "gone"
    """The pod is not there any more."""
    REPLACED = "replaced"
    """Another pod has its name."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container whose log there is, or was."""

    container: str
    run: int
    is_init: bool
    sight: Sight


def runs(pod: Object) -> Iterator[Run]:
    """The runs that the status tells of: at most two of each container."""
    for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for status in listed(pod, "status", field):
            name, newest = str(status.get("name") or ""), number(status.get("restartCount"))
            for run in (newest - 1, newest):
                if run >= 0 and (sight := _sight(status, run)) not in (
                    Sight.NOT_STARTED,
                    Sight.OVER,
                ):
                    yield Run(name, run, is_init, sight)


def sight_of(pod: Object, uid: str, container: str, run: int) -> Sight:
    """Where this run stands by the pod as it is now."""
    if part(pod, "metadata").get("uid") != uid:
        return Sight.REPLACED
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in listed(pod, "status", field):
            if status.get("name") == container:
                return _sight(status, run)
    return Sight.NOT_STARTED


def _sight(status: Object, run: int) -> Sight:
    newest = number(status.get("restartCount"))
    ended_before = bool(part(status, "lastState", "terminated"))
    if run > newest:
        return Sight.NOT_STARTED
    if run == newest:
        if part(status, "state").get("running") is not None:
            return Sight.RUNNING
        # While it waits for its next start, the run that ended is still the newest.
        waits_again = ended_before and part(status, "state").get("waiting") is not None
        return (
            Sight.ENDED if part(status, "state", "terminated") or waits_again else Sight.NOT_STARTED
        )
    if run == newest - 1 and ended_before:
        return Sight.PREVIOUS
    return Sight.OVER

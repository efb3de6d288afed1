"""The state of one run of a container by its pod's status.

It decides how the run's log can be read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from workloads.kube_objects import Object, int_or_zero, nested_dict, nested_list


class RunState(Enum):
    """The state of a run."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    ENDED = "ended"
    """No other run has followed it: its log is the container's."""
    PREVIOUS = "previous"
    """Another run has followed it: its log is the previous one."""
    OVER = "over"
    """More than one run has followed it: its log is gone."""
    GONE = "gone"
    """The pod does not exist any more."""
    REPLACED = "replaced"
    """Another pod has its name."""


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """One run of a container whose log exists, or did."""

    container: str
    run: int
    is_init: bool
    state: RunState


def list_runs(pod: Object) -> Iterator[ContainerRun]:
    """Yield the runs that the status mentions: at most two of each container."""
    for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for status in nested_list(pod, "status", field):
            name, newest = str(status.get("name") or ""), int_or_zero(status.get("restartCount"))
            for run in (newest - 1, newest):
                if run >= 0 and (sight := _parse_state(status, run)) not in (
                    RunState.NOT_STARTED,
                    RunState.OVER,
                ):
                    yield ContainerRun(name, run, is_init, sight)


def parse_run_state(pod: Object, uid: str, container: str, run: int) -> RunState:
    """Return the state of this run by the pod as it is now."""
    if nested_dict(pod, "metadata").get("uid") != uid:
        return RunState.REPLACED
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in nested_list(pod, "status", field):
            if status.get("name") == container:
                return _parse_state(status, run)
    return RunState.NOT_STARTED


def _parse_state(status: Object, run: int) -> RunState:
    newest = int_or_zero(status.get("restartCount"))
    ended_before = bool(nested_dict(status, "lastState", "terminated"))
    if run > newest:
        return RunState.NOT_STARTED
    if run == newest:
        if nested_dict(status, "state").get("running") is not None:
            return RunState.RUNNING
        # While it waits for its next start, the run that ended is still the newest.
        waits_again = ended_before and nested_dict(status, "state").get("waiting") is not None
        return (
            RunState.ENDED
            if nested_dict(status, "state", "terminated") or waits_again
            else RunState.NOT_STARTED
        )
    if run == newest - 1 and ended_before:
        return RunState.PREVIOUS
    return RunState.OVER

"""Events on a training job about its pods' troubles, such as crash loops or missing images."""

from collections import OrderedDict
from collections.abc import Iterator

from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, name_of, uid_of

MAX_REMEMBERED = 4096

Trouble = tuple[str, str]
"""A reason and a message."""


class TroubleReports:
    """Copy each trouble of a pod onto the job once, with the pod's own reason.

    Follows recordAbnormalPods of the real operator.
    """

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._reported: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def report_troubles(self, job: Object, pod: Object) -> None:
        for reason, message in _find_troubles(pod):
            self.report_once(job, uid_of(pod), reason, message)

    def report_once(self, job: Object, uid: str, reason: str, message: str) -> None:
        """Record a Warning unless the same one was recorded recently about the object `uid`."""
        if (uid, reason, message) in self._reported:
            return
        self._reported[uid, reason, message] = None
        if len(self._reported) > MAX_REMEMBERED:
            self._reported.popitem(last=False)
        self._recorder.record_event(job, "Warning", reason, message)


def _find_troubles(pod: Object) -> Iterator[Trouble]:
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or status.get("initContainerStatuses")
    if containers:
        for container in containers:
            yield from _find_container_troubles(name_of(pod), container)
        return
    conditions = sorted(
        status.get("conditions") or (),
        key=lambda condition: str(condition.get("lastTransitionTime")),
        reverse=True,
    )
    if conditions and conditions[0].get("status") != "True" and conditions[0].get("reason"):
        yield (
            conditions[0]["reason"],
            f"Error pod {name_of(pod)} condition message: {conditions[0].get('message', '')}",
        )


def _find_container_troubles(pod: str, container: Object) -> Iterator[Trouble]:
    state = container.get("state") or {}
    ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    if ended.get("exitCode"):
        text = f"exitCode: {ended['exitCode']} terminated message: {ended.get('message', '')}"
        yield (
            ended.get("reason") or "Error",
            f"Error pod {pod} container {container.get('name')} {text}",
        )
    if waiting.get("message"):
        yield (
            waiting.get("reason") or "Waiting",
            (
                f"Error pod {pod} container {container.get('name')} waiting message: "
                f"{waiting['message']}"
            ),
        )

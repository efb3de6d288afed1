"""Reports on pods' scheduling: the PodScheduled condition and events.

Their form is that of the scheduler that the pod asked for.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from localkube import clock
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, is_terminating, set_condition, uid_of
from localkube.objects import Objects
from localkube.resources import PODS
from localkube.scheduler.groups import Group
from localkube.scheduler.task import DEFAULT_SCHEDULER, KAI_SCHEDULER, POD_GROUP_ANNOTATION, Task
from scheduling.decision import Refusal
from scheduling.refusals import PIPELINED

GROUPER = "pod-grouper"

REPEAT_AFTER = timedelta(minutes=5)
"""After this long, the event about a pod that still waits is recorded again, as events expire.

The same text raises its count.
"""

EVENTS_PER_CALL = 4
"""How many events one call of `repeat_reports` records."""

LARGE_GANG = 100
"""From more pods than this on a gang's pods are not told each new number."""

REASONS = {
    DEFAULT_SCHEDULER: "FailedScheduling",
    KAI_SCHEDULER: "Unschedulable",
    GROUPER: "PodGrouperWarning",
}
"""The reason of the event that each component records (engine facts 3.5)."""


@dataclass(frozen=True, slots=True)
class LastReport:
    """The last event about a waiting pod, and which component recorded it."""

    task: Task
    component: str
    refusal: Refusal
    at: datetime


class PodReports:
    """Writes to pods, and records events about them.

    `recorder_for` returns the recorder of a component by its name.
    """

    def __init__(self, objects: Objects, recorder_for: Callable[[str], EventRecorder]) -> None:
        self._objects = objects
        self._recorders = {name: recorder_for(name) for name in REASONS}
        self._last_reports: OrderedDict[str, LastReport] = OrderedDict()

    def report_scheduled(self, pod: Object) -> None:
        """Record that a pod has its place."""
        recorder = self._recorders[
            KAI_SCHEDULER
            if pod["spec"].get("schedulerName") == KAI_SCHEDULER
            else DEFAULT_SCHEDULER
        ]
        where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        recorder.record_event(
            pod,
            "Normal",
            "Scheduled",
            f"Successfully assigned {where} to {pod['spec']['nodeName']}",
            action="Binding",
        )
        self.forget_pod(uid_of(pod))

    def report_unknown_scheduler(self, task: Task) -> None:
        """Record, once, that no scheduler will place this pod."""
        pod = self._find_waiting_pod(task)
        if pod is not None and task.uid not in self._last_reports:
            text = (
                f'no scheduler is called "{task.scheduler}" here: use {DEFAULT_SCHEDULER} or '
                f"{KAI_SCHEDULER}"
            )
            self._record_event(pod, task, DEFAULT_SCHEDULER, Refusal("", text, text))

    def report_waiting(self, task: Task, group: Group, refusal: Refusal) -> bool:
        """Report why a pod is not placed, unless it says so already; return whether it wrote.

        The condition changes with every new number, an event comes only when the subject changes.
        The pods of a large gang keep the first number of a subject; its PodGroup has the last.
        """
        last_report, condition = self._last_reports.get(task.uid), task.scheduled_condition
        is_new_subject = last_report is None or last_report.refusal.subject != refusal.subject
        is_large = len(group.members) > LARGE_GANG
        if refusal.reason == PIPELINED:
            is_new_subject = False
        is_reported = (
            condition.status == "False"
            and (condition.message == refusal.message or (is_large and not is_new_subject))
            and task.group_name == group.name
        )
        if (is_reported and not is_new_subject) or self._find_waiting_pod(task) is None:
            return False

        def change(pod: Object) -> None:
            if not group.fault:
                pod["metadata"].setdefault("annotations", {})[POD_GROUP_ANNOTATION] = group.name
            set_condition(
                pod.setdefault("status", {}).setdefault("conditions", []),
                _build_unschedulable_condition(pod, refusal.message),
            )

        pod = self._objects.modify(PODS, task.namespace, task.name, change, subresource="status")
        if refusal.reason == PIPELINED:
            # It has its own event, once its place is kept.
            self.forget_pod(task.uid)
        elif is_new_subject:
            self._record_event(pod, task, GROUPER if group.fault else task.scheduler, refusal)
        return True

    def report_nomination(self, task: Task, node: str) -> None:
        """Write on a pod where a place is kept for it, and record that, as KAI does.

        `node` is empty when none is kept any more.
        """
        pod = self._objects.find(PODS, task.namespace, task.name)
        if pod is None or uid_of(pod) != task.uid:
            return

        def change(pod: Object) -> None:
            status = pod.setdefault("status", {})
            status.pop("nominatedNodeName", None)
            if node:
                status["nominatedNodeName"] = node

        pod = self._objects.modify(PODS, task.namespace, task.name, change, subresource="status")
        if node:
            self._recorders[KAI_SCHEDULER].record_event(
                pod,
                "Normal",
                "Pipelined",
                f"Pod {task.namespace}/{task.name} was pipelined to node {node}",
            )

    def forget_pod(self, uid: str) -> None:
        """Forget a pod that is placed or gone: nothing more is reported."""
        self._last_reports.pop(uid, None)

    def repeat_reports(self) -> float | None:
        """Record again the events that are due; return the seconds until the next one, if any."""
        now = clock.current_time()
        for report in list(islice(self._last_reports.values(), EVENTS_PER_CALL)):
            if report.at + REPEAT_AFTER > now:
                break
            pod = self._find_waiting_pod(report.task)
            if pod is not None:
                self._record_event(pod, report.task, report.component, report.refusal)
        oldest = next(iter(self._last_reports.values()), None)
        return (
            None if oldest is None else max(0.0, (oldest.at + REPEAT_AFTER - now).total_seconds())
        )

    def _record_event(self, pod: Object, task: Task, component: str, refusal: Refusal) -> None:
        self._recorders[component].record_event(
            pod, "Warning", REASONS[component], refusal.message, action="Scheduling"
        )
        self._last_reports[task.uid] = LastReport(task, component, refusal, clock.current_time())
        self._last_reports.move_to_end(task.uid)

    def _find_waiting_pod(self, task: Task) -> Object | None:
        """Return the pod, if it is still the same and still without a node."""
        pod = self._objects.find(PODS, task.namespace, task.name)
        if (
            pod is None
            or uid_of(pod) != task.uid
            or pod["spec"].get("nodeName")
            or is_terminating(pod)
        ):
            self.forget_pod(task.uid)
            return None
        return pod


def build_scheduled_condition() -> Object:
    """Build the condition of a pod that has its place."""
    return {"type": "PodScheduled", "status": "True", "lastProbeTime": None}


def _build_unschedulable_condition(pod: Object, message: str) -> Object:
    condition: Object = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "reason": "Unschedulable",
        "message": message,
    }
    generation = pod["metadata"].get("generation")
    return condition if generation is None else condition | {"observedGeneration": generation}

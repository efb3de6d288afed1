"""Evicts pods as KAI does: condition, event on the PodGroup, deletion with the pod's own grace."""

from collections import Counter
from collections.abc import Generator, Sequence

from localkube.disruption import mark_disrupted
from localkube.errors import ApiError
from localkube.lifecycle import DeleteOptions
from localkube.metadata import is_terminating, uid_of
from localkube.objects import Objects
from localkube.resources import PODS
from localkube.scheduler.cluster_index import ClusterIndex
from localkube.scheduler.group_reports import GroupReports
from localkube.scheduler.groups import Group, Groups
from localkube.scheduler.task import Task
from scheduling.decision import Action, Eviction

SERVER_ERROR = 500
"""From this code on a refusal is not the object's fault: the whole pass is tried again later."""


class Evictor:
    """Carries out evictions."""

    def __init__(
        self, objects: Objects, index: ClusterIndex, groups: Groups, reports: GroupReports
    ) -> None:
        self._objects = objects
        self._index = index
        self._groups = groups
        self._reports = reports

    def evict_pods(self, evictions: Sequence[Eviction]) -> Generator[None, None, None]:
        """Evict pods one by one, in steps."""
        counts = Counter(eviction.gang for eviction in evictions)
        for eviction in evictions:
            yield
            task = self._index.tasks.get(eviction.pod)
            group = self._groups.find_by_pod(eviction.pod)
            if task is None or group is None or task.terminating:
                continue
            taker = self._groups.find_by_book(eviction.for_gang) if eviction.for_gang else None
            self._evict_pod(task, group, eviction.action, taker, counts[eviction.gang])

    def _evict_pod(
        self, task: Task, group: Group, action: Action, taker: Group | None, count: int
    ) -> None:
        pod = self._objects.find(PODS, task.namespace, task.name)
        if pod is None or uid_of(pod) != task.uid or is_terminating(pod):
            return
        message = describe_eviction(task, group, action, taker)
        try:
            mark_disrupted(self._objects, pod, "PreemptionByScheduler", message)
            self._reports.report_eviction(group, action, taker, count, message)
            self._objects.delete(PODS, task.namespace, task.name, DeleteOptions(uid=task.uid))
        except ApiError as refusal:
            # It has gone meanwhile, which is as good.
            if refusal.code >= SERVER_ERROR:
                raise


def describe_eviction(task: Task, group: Group, action: Action, taker: Group | None) -> str:
    """Return why a pod is evicted and for whom, in KAI's words (`unschedule_info.go`)."""
    pod = f"{task.namespace}/{task.name}"
    workload = "" if taker is None else f"{taker.namespace}/{taker.name}"
    match action:
        case Action.RECLAIM:
            return f"Pod {pod} was preempted by workload {workload}."
        case Action.PREEMPT:
            return f"Pod {pod} was preempted by higher priority workload {workload}"
        case Action.CONSOLIDATE:
            return (
                f"Pod {pod} was preempted and rescheduled due to bin packing (resource "
                "consolidation) procedure"
            )
        case Action.STALE_GANG:
            return (
                "Workload doesn't meet the minimum required number of pods "
                f"({group.book.min_member}), evicting remaining pod: {pod}"
            )

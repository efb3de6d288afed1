"""Puts pods on nodes, large gangs in steps, and writes on others where their places are kept."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from localkube import options
from localkube.errors import ApiError
from localkube.metadata import Object, set_condition
from localkube.objects import Objects, WriteRequest
from localkube.resources import PODS
from localkube.scheduler.cluster_index import ClusterIndex
from localkube.scheduler.groups import Group
from localkube.scheduler.pod_reports import PodReports, build_scheduled_condition
from localkube.scheduler.task import POD_GROUP_ANNOTATION, Task
from scheduling.cluster_room import Place
from scheduling.decision import Nomination, Refusal
from scheduling.refusals import NO_ROOM

SERVER_ERROR = 500
"""From this code on a refusal is not the object's fault: the whole pass is tried again later."""

BOUND_AT_ONCE = 4
"""How many pods of a gang are bound in one step of a pass."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlannedBinding:
    """The pods of a gang that found a place, and their places."""

    group: Group
    tasks: Sequence[tuple[Task, Place]]


@dataclass(frozen=True, slots=True)
class RefusedBinding:
    """A gang whose pods the API did not accept on their nodes, after their room was kept."""

    group: Group
    refusal: Refusal


class Binder:
    """Carries out bindings and nominations."""

    def __init__(self, objects: Objects, index: ClusterIndex, reports: PodReports) -> None:
        self._objects = objects
        self._index = index
        self._reports = reports
        self._planned: list[PlannedBinding] = []
        self._bound_uids: list[str] = []
        """Uids of the pods that the last reconciliation put on a node."""
        self.placed_uids: set[str] = set()
        """Uids of the pods that the current pass has placed."""

    def begin_reconciliation(self) -> None:
        """Forget what the last reconciliation bound."""
        self._bound_uids.clear()

    def begin_pass(self) -> None:
        """Forget which pods the last pass placed."""
        self.placed_uids.clear()

    def discard_plans(self) -> None:
        """Forget the large gangs that the current pass was to bind."""
        self._planned.clear()

    def are_bindings_stored(self) -> bool:
        """Return whether the pods that the last reconciliation bound have their nodes."""
        tasks = self._index.tasks
        return all(tasks[uid].node for uid in self._bound_uids if uid in tasks)

    def bind_pods(self, group: Group, places: Sequence[Place]) -> Refusal | None:
        """Put pods on their nodes, all or none.

        Returns a refusal when the API does not accept one of them. Many pods are only noted here:
        `bind_planned` binds them in steps, at the end of the pass.
        """
        tasks = self._index.tasks
        binding = PlannedBinding(
            group, [(tasks[place.pod.uid], place) for place in places if place.pod.uid in tasks]
        )
        if len(places) > BOUND_AT_ONCE:
            self._planned.append(binding)
        else:
            refusal = _take_all_steps(self._bind_in_steps(binding))
            if refusal is not None:
                return refusal
        self.placed_uids.update(place.pod.uid for place in places)
        return None

    def bind_planned(self) -> Generator[None, None, Sequence[RefusedBinding]]:
        """Bind the large gangs that found a place, in steps; return those that were refused."""
        refused = []
        while self._planned:
            binding = self._planned[0]
            refusal = yield from self._bind_in_steps(binding)
            self._planned.pop(0)
            if refusal is not None:
                refused.append(RefusedBinding(binding.group, refusal))
                self.placed_uids.difference_update(task.uid for task, _ in binding.tasks)
        return refused

    def write_nominations(
        self, groups: Iterable[Group], nominations: Sequence[Nomination]
    ) -> Generator[None, None, bool]:
        """Write on pods where their places are kept, and where no longer, in steps.

        Returns whether a place is free that was kept before.
        """
        tasks = self._index.tasks
        wanted = {nomination.pod: nomination.node for nomination in nominations}
        given_up = [
            uid
            for group in groups
            for uid in group.book.promised_nodes
            if uid not in wanted and uid not in self.placed_uids
        ]
        is_free = False
        for uid, node in [*wanted.items(), *((uid, "") for uid in given_up)]:
            task = tasks.get(uid)
            if task is not None and task.pod.nominated_node != node:
                is_free = is_free or bool(task.pod.nominated_node)
                self._reports.report_nomination(task, node)
            yield
        return is_free

    def _bind_in_steps(self, binding: PlannedBinding) -> Generator[None, None, Refusal | None]:
        # Dry-run all of them first: a refusal of the last pod must not leave the others bound.
        group = binding.group
        for task, place in binding.tasks:
            try:
                self._assign_node(group, task, place, WriteRequest(dry_run=True))
            except ApiError as refusal:
                if refusal.code >= SERVER_ERROR:
                    raise
                text = f"the pod cannot be bound: {refusal.message}"
                return Refusal(NO_ROOM, refusal.message, text)
            yield
        for task, place in binding.tasks:
            # It may have been deleted since: that is as if it were deleted right after.
            if self._is_there(task):
                self._bind_task(group, task, place)
            yield
        return None

    def _is_there(self, task: Task) -> bool:
        record = self._objects.store.find(PODS.key, task.namespace, task.name)
        return record is not None and record.uid == task.uid

    def _bind_task(self, group: Group, task: Task, place: Place) -> None:
        self._assign_node(group, task, place, WriteRequest())
        pod = self._objects.modify(
            PODS, task.namespace, task.name, _set_scheduled_condition, subresource="status"
        )
        self._reports.report_scheduled(pod)
        self._bound_uids.append(task.uid)

    def _assign_node(self, group: Group, task: Task, place: Place, request: WriteRequest) -> Object:
        def assign(pod: Object) -> None:
            pod["spec"]["nodeName"] = place.node
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[POD_GROUP_ANNOTATION] = group.name
            if place.devices:
                annotations[options.GPU_DEVICES_ANNOTATION] = ",".join(map(str, place.devices))
            else:
                annotations.pop(options.GPU_DEVICES_ANNOTATION, None)

        return self._objects.modify(PODS, task.namespace, task.name, assign, request=request)


def _take_all_steps(steps: Generator[None, None, T]) -> T:
    """Take all steps at once; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _set_scheduled_condition(pod: Object) -> None:
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_condition(status.setdefault("conditions", []), build_scheduled_condition())

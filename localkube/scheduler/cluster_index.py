"""What the scheduler knows, kept up to date by the changes themselves, so that no pass reads what
it has no use for.

Finished and held pods are not here: ten thousand of them cost a pass nothing.
"""

import logging
from collections.abc import Callable, Iterable, Mapping

from localkube import resources
from localkube.metadata import FINISHED_PHASES, Object, name_of, uid_of
from localkube.resources import JOBS, NODES, PODGROUPS, PODS, PRIORITYCLASSES, QUEUES
from localkube.resources.resource import Resource
from localkube.scheduler import node, task
from localkube.scheduler.demand import BadDemand
from localkube.scheduler.node import Node
from localkube.scheduler.pod_grouping import DISTRIBUTED_KINDS
from localkube.scheduler.task import Task
from localkube.store import Change

Key = tuple[str, str]
Trigger = Callable[[Change], Iterable[Key]]

RUN_PASS: tuple[Key, ...] = (("", ""),)
"""The one thing to do: a scheduling pass."""

NO_KEYS: tuple[Key, ...] = ()

log = logging.getLogger(__name__)


class ClusterIndex:
    """Pods that are not finished, the node, queues, priority classes and PodGroups; and what of
    them changed since it was asked.
    """

    def __init__(self, node_name: str) -> None:
        self.tasks: dict[str, Task] = {}
        self.placed_uids: dict[str, None] = {}
        """Uids of the pods on the node."""
        self.node: Node | None = None
        self.queues: dict[str, Object] = {}
        self.priority_classes: dict[str, int] = {}
        self.pod_groups: dict[Key, Object] = {}
        self.changed_pods: dict[str, None] = {}
        self.changed_owners: dict[Key, None] = {}
        """Namespace and uid of workloads."""
        self.changed_groups: dict[Key, None] = {}
        self.rules_changed = True
        """Queues or priority classes changed."""
        self.room_grew = True
        """What was refused before might be placed now."""
        self._node_name = node_name

    def triggers(self) -> Mapping[Resource, Trigger]:
        owners = [
            resource
            for resource in resources.list_served()
            if resource is JOBS or (resource.group, resource.kind) in DISTRIBUTED_KINDS
        ]
        return {
            # What pods refer to comes first, so that it is there when the existing pods are read at
            # the start.
            NODES: self._node_changed,
            QUEUES: self._queue_changed,
            PRIORITYCLASSES: self._class_changed,
            PODGROUPS: self._group_changed,
            **dict.fromkeys(owners, self._owner_changed),
            PODS: self._pod_changed,
        }

    def _pod_changed(self, change: Change) -> Iterable[Key]:
        record = change.record
        known = self.tasks.get(record.uid)
        if change.type == "DELETED" or record.fields.get("status.phase") in FINISHED_PHASES:
            return self._forget_task(known)
        if known is not None and known.node and known.scheduled_condition.status == "True":
            # What runs is of interest again when it ends: the kubelet's many status updates are
            # not.
            return NO_KEYS
        pod = record.decode()
        if task.is_on_hold(pod):
            return self._forget_task(known)
        new = task.parse_task(pod)
        self.tasks[new.uid] = new
        if new.node == self._node_name:
            self.placed_uids[new.uid] = None
        if known is not None and task.equals_but_condition(known, new):
            return NO_KEYS
        self.changed_pods[new.uid] = None
        return RUN_PASS

    def _forget_task(self, known: Task | None) -> Iterable[Key]:
        if known is None:
            return NO_KEYS
        del self.tasks[known.uid]
        self.placed_uids.pop(known.uid, None)
        self.changed_pods[known.uid] = None
        self.room_grew = self.room_grew or bool(known.node)
        return RUN_PASS

    def _node_changed(self, change: Change) -> Iterable[Key]:
        if change.record.name != self._node_name:
            return NO_KEYS
        before = self.node
        try:
            self.node = (
                None if change.type == "DELETED" else node.parse_node(change.record.decode())
            )
        except BadDemand as error:
            log.warning(
                (
                    "node %s: its allocatable resources cannot be read, so the last known ones "
                    "hold: %s"
                ),
                change.record.name,
                error,
            )
        # Its heartbeats are not of interest.
        if self.node == before:
            return NO_KEYS
        self.room_grew = self.rules_changed = True
        return RUN_PASS

    def _queue_changed(self, change: Change) -> Iterable[Key]:
        name, before = change.record.name, self.queues.get(change.record.name)
        if change.type == "DELETED":
            self.queues.pop(name, None)
        else:
            self.queues[name] = change.record.decode()
            if before is not None and before.get("spec") == self.queues[name].get("spec"):
                return NO_KEYS
        self.room_grew = self.rules_changed = True
        return RUN_PASS

    def _class_changed(self, change: Change) -> Iterable[Key]:
        if change.type == "DELETED":
            self.priority_classes.pop(change.record.name, None)
        else:
            self.priority_classes[change.record.name] = int(change.record.decode().get("value", 0))
        self.room_grew = self.rules_changed = True
        return RUN_PASS

    def _group_changed(self, change: Change) -> Iterable[Key]:
        at = (change.record.namespace, change.record.name)
        before = self.pod_groups.get(at)
        if change.type == "DELETED":
            self.pod_groups.pop(at, None)
        else:
            obj = self.pod_groups[at] = change.record.decode()
            if (
                before is not None
                and uid_of(before) == uid_of(obj)
                and before.get("spec") == obj.get("spec")
            ):
                return NO_KEYS
        self.changed_groups[at] = None
        return RUN_PASS

    def _owner_changed(self, change: Change) -> Iterable[Key]:
        if change.type != "MODIFIED":
            # A new one has no pods yet, and those of one that goes tell of it themselves.
            return NO_KEYS
        self.changed_owners[change.record.namespace, change.record.uid] = None
        return RUN_PASS

    def find_pod_group(self, namespace: str, name: str) -> Object | None:
        return self.pod_groups.get((namespace, name))

    def list_queues(self) -> Iterable[Object]:
        return sorted(self.queues.values(), key=name_of)

"""What the scheduler knows of the cluster, kept up to date by the changes themselves.

So no pass reads what it does not need. Finished and held pods are not in it: ten thousand of them
cost a pass nothing.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import scheduling
from localkube import resources
from localkube.metadata import FINISHED_PHASES, Object, annotations_of, name_of, uid_of
from localkube.resources import JOBS, NODES, PODGROUPS, PODS, PRIORITYCLASSES, QUEUES
from localkube.resources.resource import Resource
from localkube.scheduler import node, task
from localkube.scheduler.demand import BadDemand
from localkube.scheduler.node import Node
from localkube.scheduler.pod_grouping import DISTRIBUTED_KINDS
from localkube.scheduler.shape_table import ShapeTable
from localkube.scheduler.task import Task
from localkube.store import Change
from scheduling.state import GPU

Key = tuple[str, str]
Trigger = Callable[[Change], Iterable[Key]]

RUN_PASS: tuple[Key, ...] = (("", ""),)
"""The one key there is: run a scheduling pass."""

NO_KEYS: tuple[Key, ...] = ()

log = logging.getLogger(__name__)


class ClusterIndex:
    """Unfinished pods, nodes, queues, priority classes and PodGroups, and their changes."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.placed_uids: dict[str, None] = {}
        """Uids of the pods that have a node."""
        self.nodes: Mapping[str, Node] = {}
        """All nodes by name; another mapping whenever one of them has changed."""
        self.queues: dict[str, Object] = {}
        self.priority_classes: dict[str, int] = {}
        self.pod_groups: dict[Key, Object] = {}
        self.changed_pods: dict[str, None] = {}
        self.changed_owners: dict[Key, None] = {}
        """Namespace and uid of changed workloads."""
        self.changed_groups: dict[Key, None] = {}
        self.rules_changed = True
        """Whether queues or priority classes changed."""
        self.room_grew = True
        """Whether pods that were refused before might be placed now."""
        self._shapes = ShapeTable(lambda: self.nodes)
        self._oversized_nodes: set[str] = set()
        """Names of the nodes with more devices than count, which the log has named."""

    @property
    def has_changes(self) -> bool:
        """Whether something changed that no pass has seen."""
        return bool(
            self.changed_pods
            or self.changed_owners
            or self.changed_groups
            or self.rules_changed
            or self.room_grew
        )

    def triggers(self) -> Mapping[Resource, Trigger]:
        owners = [
            resource
            for resource in resources.list_served()
            if resource is JOBS or (resource.group, resource.kind) in DISTRIBUTED_KINDS
        ]
        return {
            # What pods refer to comes first, so that it is known when the existing pods are read
            # at the start.
            NODES: self._node_changed,
            QUEUES: self._queue_changed,
            PRIORITYCLASSES: self._class_changed,
            PODGROUPS: self._group_changed,
            **dict.fromkeys(owners, self._owner_changed),
            PODS: self._pod_changed,
        }

    def _pod_changed(self, change: Change) -> Iterable[Key]:
        record = change.record
        old = self.tasks.get(record.uid)
        if change.type == "DELETED" or record.fields.get("status.phase") in FINISHED_PHASES:
            return self._forget_task(old)
        if (
            old is not None
            and old.node
            and old.scheduled_condition.status == "True"
            and not old.lacks_devices
            and old.terminating == record.is_terminating
        ):
            # Ignore the kubelet's many status updates: a running pod matters again when it leaves.
            # One that named its node itself gets its devices from the kubelet.
            return NO_KEYS
        pod = record.decode()
        if task.is_on_hold(pod):
            return self._forget_task(old)
        new = task.parse_task(pod, self._shapes.find_shape)
        self.tasks[new.uid] = new
        if new.node:
            self.placed_uids[new.uid] = None
        if old is not None and task.equals_but_reports(old, new):
            return NO_KEYS
        # Where it runs it takes as much as before, but its room is free later.
        self.room_grew = self.room_grew or bool(new.node and new.terminating)
        self.changed_pods[new.uid] = None
        return RUN_PASS

    def _forget_task(self, task_to_forget: Task | None) -> Iterable[Key]:
        if task_to_forget is None:
            return NO_KEYS
        del self.tasks[task_to_forget.uid]
        self.placed_uids.pop(task_to_forget.uid, None)
        self.changed_pods[task_to_forget.uid] = None
        # Also without a node it requested something, by which others had smaller fair shares.
        self.room_grew = True
        self._shapes.drop_unused(self.tasks.values(), len(self.tasks))
        return RUN_PASS

    def _node_changed(self, change: Change) -> Iterable[Key]:
        name, nodes = change.record.name, dict(self.nodes)
        nodes.pop(name, None)
        try:
            if change.type != "DELETED":
                nodes[name] = node.parse_node(change.record.decode())
        except BadDemand as error:
            log.warning(
                (
                    "node %s: its allocatable resources cannot be read, so the last known ones "
                    "hold: %s"
                ),
                name,
                error,
            )
            return NO_KEYS
        # Ignore heartbeats.
        if nodes == self.nodes:
            return NO_KEYS
        self._warn_of_size(name, nodes.get(name))
        self.nodes = dict(sorted(nodes.items()))
        self.room_grew = self.rules_changed = True
        return RUN_PASS

    def _warn_of_size(self, name: str, changed: Node | None) -> None:
        """Log once for each node that it has more devices than count."""
        if changed is None:
            self._oversized_nodes.discard(name)
        elif changed.device_count > node.MAX_DEVICES and name not in self._oversized_nodes:
            self._oversized_nodes.add(name)
            log.warning(
                "node %s: it offers %d devices (%s), of which pods get %d at most",
                name,
                changed.device_count,
                GPU,
                node.MAX_DEVICES,
            )

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
        key = (change.record.namespace, change.record.name)
        before = self.pod_groups.get(key)
        if change.type == "DELETED":
            self.pod_groups.pop(key, None)
        else:
            obj = self.pod_groups[key] = change.record.decode()
            if (
                before is not None
                and uid_of(before) == uid_of(obj)
                and before.get("spec") == obj.get("spec")
                and _get_grace(before) == _get_grace(obj)
            ):
                return NO_KEYS
        self.changed_groups[key] = None
        return RUN_PASS

    def _owner_changed(self, change: Change) -> Iterable[Key]:
        if change.type != "MODIFIED":
            # A new workload has no pods yet, and a deleted one's pods change themselves.
            return NO_KEYS
        self.changed_owners[change.record.namespace, change.record.uid] = None
        return RUN_PASS

    def build_node_values(self) -> Sequence[scheduling.Node]:
        """Build the plain values of all nodes."""
        return [each.build_value() for each in self.nodes.values()]

    def find_pod_group(self, namespace: str, name: str) -> Object | None:
        return self.pod_groups.get((namespace, name))

    def list_queues(self) -> Iterable[Object]:
        return sorted(self.queues.values(), key=name_of)


def _get_grace(pod_group: Object) -> str:
    """Return the one annotation of a PodGroup that decides something; "" without it."""
    return annotations_of(pod_group).get(task.STALENESS_GRACE_ANNOTATION, "")

"""The gangs: which pods belong together, and their PodGroup objects in the store.

This is the work of KAI's pod-grouper.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from localkube import resources
from localkube.errors import ApiError
from localkube.metadata import Object, find_controller_reference, name_of, uid_of
from localkube.objects import Objects
from localkube.resources import PODGROUPS, PODS
from localkube.scheduler import defaults, pod_grouping
from localkube.scheduler.cluster_index import ClusterIndex, Key
from localkube.scheduler.pod_grouping import GroupingError
from localkube.scheduler.task import SCHEDULER_NAMES, Task

T = TypeVar("T")

MAX_OWNER_DEPTH = 8
"""How many owners above each other are followed."""


@dataclass(slots=True, eq=False)
class Group:
    """A gang.

    `fault` says why no PodGroup could be made of it; `members` are the uids of its unfinished pods.
    """

    key: Key
    name: str
    """The name of its PodGroup."""
    arrival: int
    """Orders gangs that were made within the same second."""
    owners: set[str] = field(default_factory=set)
    """Uids of the direct owners of its pods."""
    members: dict[str, None] = field(default_factory=dict)
    fault: str = ""
    queue: str = ""
    min_member: int = 1
    priority: int = 0
    non_preemptible: bool = False
    created: str = ""

    @property
    def namespace(self) -> str:
        return self.key[0]


@dataclass(frozen=True, slots=True)
class TopOwner:
    """The topmost owner of a pod: its uid, and the object if its kind is served here.

    `fault` is set where an owner is gone.
    """

    uid: str
    name: str
    owner: Object | None = None
    fault: str = ""


class Groups:
    """All gangs with unfinished pods."""

    def __init__(self, objects: Objects, index: ClusterIndex) -> None:
        self._objects = objects
        self._index = index
        self._groups: dict[Key, Group] = {}
        self._keys_by_pod: dict[str, Key] = {}
        self._keys_by_name: dict[Key, Key] = {}
        self._created: list[Key] = []
        self._arrivals = itertools.count()

    def find(self, key: Key) -> Group | None:
        return self._groups.get(key)

    def find_by_pod(self, uid: str) -> Group | None:
        """Return the gang of a pod, or None."""
        key = self._keys_by_pod.get(uid)
        return None if key is None else self._groups.get(key)

    def pod_uids(self) -> Iterable[str]:
        """Return the uids of the pods of all gangs."""
        return self._keys_by_pod

    def list_waiting(self) -> Iterable[Key]:
        """Return the gangs with pods that are not on a node."""
        return [
            key
            for key, group in self._groups.items()
            if any(not self._index.tasks[uid].node for uid in group.members)
        ]

    def list_tasks(self, group: Group) -> Sequence[Task]:
        return [self._index.tasks[uid] for uid in group.members]

    def count_succeeded(self, group: Group) -> int:
        """Return how many of its pods have succeeded.

        They were there, so the gang does not wait for them again.
        """
        records = (
            record
            for uid in group.owners
            for record in self._objects.store.list_owned(PODS.key, uid)
        )
        return sum(1 for record in records if record.fields.get("status.phase") == "Succeeded")

    def refresh(self) -> dict[Key, Group]:
        """Apply the changes since the last call and update the PodGroups; return the affected
        gangs.

        Gangs that have lost their last pod are among them, without members, for the last time.
        """
        index, affected = self._index, dict[Key, None]()
        # Create PodGroups again whose pass was rolled back.
        affected |= dict.fromkeys(
            self._keys_by_name[name_key]
            for name_key in self._created
            if name_key in self._keys_by_name and index.find_pod_group(*name_key) is None
        )
        self._created.clear()
        for uid in _drain_changes(index.changed_pods):
            affected |= dict.fromkeys(self._move_pod(uid))
        affected |= dict.fromkeys(
            key for key in _drain_changes(index.changed_owners) if key in self._groups
        )
        affected |= dict.fromkeys(
            self._keys_by_name[name_key]
            for name_key in _drain_changes(index.changed_groups)
            if name_key in self._keys_by_name
        )
        if index.rules_changed:
            affected |= dict.fromkeys(self._groups)
        groups = {key: self._groups[key] for key in affected}
        for key, group in groups.items():
            if group.members:
                self._update_group(group)
            else:
                del self._groups[key]
                del self._keys_by_name[group.namespace, group.name]
        return groups

    def _move_pod(self, uid: str) -> Iterable[Key]:
        """Move a changed pod from its old gang into its new one; yield both."""
        task, before = self._index.tasks.get(uid), self._keys_by_pod.pop(uid, None)
        if before is not None:
            self._groups[before].members.pop(uid, None)
            yield before
        if task is None or task.scheduler not in SCHEDULER_NAMES:
            return
        group = self._find_or_create_group(task)
        group.members[uid] = None
        if task.owner is not None:
            group.owners.add(str(task.owner["uid"]))
        self._keys_by_pod[uid] = group.key
        yield group.key

    def _find_or_create_group(self, task: Task) -> Group:
        own_name = pod_grouping.build_pod_group_name(task.name, task.uid)
        if task.owner is not None:
            top = self._find_top_owner(task)
            key, name = (
                (task.namespace, top.uid),
                pod_grouping.build_pod_group_name(top.name, top.uid),
            )
        elif task.group_name and task.group_name != own_name:
            key, name = (task.namespace, f"PodGroup {task.group_name}"), task.group_name
        else:
            key, name = (task.namespace, task.uid), own_name
        self._keys_by_name[task.namespace, name] = key
        return self._groups.setdefault(key, Group(key, name, next(self._arrivals)))

    def _find_top_owner(self, task: Task) -> TopOwner:
        """Follow the controllers upwards, as far as their kinds are served here."""
        assert task.owner is not None
        ref = task.owner
        top = TopOwner(str(ref["uid"]), str(ref["name"]))
        for _ in range(MAX_OWNER_DEPTH):
            resource = resources.find_by_kind(str(ref.get("apiVersion")), str(ref.get("kind")))
            if resource is None:
                break
            owner = self._objects.find(
                resource, task.namespace if resource.namespaced else "", str(ref["name"])
            )
            if owner is None or uid_of(owner) != ref["uid"]:
                return replace(
                    top,
                    fault=(
                        f'the owner of the pod, {ref.get("kind")} "{ref["name"]}", does not exist'
                    ),
                )
            top = TopOwner(uid_of(owner), name_of(owner), owner)
            controller = find_controller_reference(owner)
            if controller is None:
                break
            ref = controller
        return top

    def _update_group(self, group: Group) -> None:
        """Bring the PodGroup in line with the workload, and the gang with the PodGroup."""
        sample = min(self.list_tasks(group), key=lambda task: task.rank)
        try:
            pod_group = self._ensure_pod_group(group, sample)
        except GroupingError as error:
            group.fault = str(error)
            return
        except ApiError as refusal:
            if refusal.code >= 500:
                raise
            group.fault = f"the PodGroup could not be written: {refusal.message}"
            return
        spec = pod_group.get("spec") or {}
        group.fault = ""
        group.queue = str(spec.get("queue") or defaults.DEFAULT_QUEUE)
        group.min_member = int(spec.get("minMember") or 1)
        group.priority = pod_grouping.resolve_priority(
            str(spec.get("priorityClassName") or ""), self._index.priority_classes
        )
        group.non_preemptible = pod_grouping.is_non_preemptible(
            str(spec.get("preemptibility") or ""), group.priority
        )
        group.created = str(pod_group["metadata"].get("creationTimestamp", ""))

    def _ensure_pod_group(self, group: Group, sample: Task) -> Object:
        """Return the stored PodGroup, created or changed as needed. Raises GroupingError or
        ApiError.
        """
        present = self._index.find_pod_group(group.namespace, group.name)
        if sample.owner is None and group.key[1] != sample.uid:
            if present is None:
                raise GroupingError(f'PodGroup "{group.name}", which the pod names, does not exist')
            return present
        owner = None if sample.owner is None else self._get_owner(sample)
        wanted_spec = pod_grouping.derive_pod_group_spec(
            owner, sample, self._index.priority_classes
        ).build_spec()
        if present is None:
            self._created.append((group.namespace, group.name))
            owner = owner or self._objects.get(PODS, sample.namespace, sample.name)
            return self._objects.create(
                PODGROUPS,
                group.namespace,
                pod_grouping.build_pod_group(group.name, group.namespace, owner, wanted_spec),
            )
        spec = present.get("spec") or {}
        # A workload keeps the queue it started in (KAI `podgroup/handler.go`).
        wanted_spec["queue"] = spec.get("queue") or wanted_spec["queue"]
        if all(spec.get(key) == value for key, value in wanted_spec.items()):
            return present

        def change(obj: Object) -> None:
            obj["spec"] = (obj.get("spec") or {}) | wanted_spec

        return self._objects.modify(PODGROUPS, group.namespace, group.name, change)

    def _get_owner(self, sample: Task) -> Object:
        """Return the workload; of a kind that is not served here, what its reference says.

        Raises GroupingError when it is gone.
        """
        top, ref = self._find_top_owner(sample), sample.owner or {}
        if top.fault:
            raise GroupingError(top.fault)
        return top.owner or {
            "apiVersion": ref.get("apiVersion"),
            "kind": ref.get("kind"),
            "metadata": {"name": top.name, "uid": top.uid},
        }


def _drain_changes(changed: dict[T, None]) -> Sequence[T]:
    keys = list(changed)
    changed.clear()
    return keys

"""The gangs: which pods belong together, and their PodGroup objects in the store.

This is the work of KAI's pod-grouper.
"""

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from localkube import resources
from localkube.errors import ApiError
from localkube.lifecycle import is_foreground_deletion
from localkube.metadata import (
    Object,
    annotations_of,
    find_controller_reference,
    labels_of,
    name_of,
    uid_of,
)
from localkube.objects import Objects
from localkube.resources import PODGROUPS, PODS
from localkube.scheduler import defaults, gang_times, pod_grouping
from localkube.scheduler.cluster_index import ClusterIndex, Key
from localkube.scheduler.gang_times import parse_seconds
from localkube.scheduler.go_durations import parse_waiting_time
from localkube.scheduler.pod_grouping import GroupingError, OwnerLost
from localkube.scheduler.task import DEFAULT_SCHEDULER, SCHEDULER_NAMES, Task
from scheduling.decision import Refusal
from scheduling.gangs import GangBook
from scheduling.refusals import NO_ROOM
from scheduling.state import Preemptibility

T = TypeVar("T")

Rank = tuple[int, str]

MAX_SPARE_GANGS = 1000
"""Of how many gangs the places of moved pods are remembered."""

MAX_OWNER_DEPTH = 8
"""How many owners above each other are followed."""


@dataclass(slots=True, eq=False)
class Group:
    """A gang: `book` is what decisions know of it.

    `fault` says why no PodGroup could be made of it; `members` are its unfinished pods by uid, as
    they were at the last refresh. They are counted as they come and go, so that no pass has to look
    at each pod of a large gang.
    """

    key: Key
    name: str
    """The name of its PodGroup."""
    book: GangBook
    owners: set[str] = field(default_factory=set)
    """Uids of the direct owners of its pods."""
    members: dict[str, Task] = field(default_factory=dict)
    faulty: dict[str, None] = field(default_factory=dict)
    """Uids of the pods without a node whose demand cannot be read."""
    booked_as: Hashable = None
    """What its bookings were made of; others are made when that has changed."""
    fault: str = ""
    is_owner_lost: bool = False
    """Whether the fault is that its workload is gone or going, and its pods with it."""
    binding_refusal: Refusal | None = None
    """Why the API did not accept its pods on a node; None once one of them has changed."""
    _ranks: list[tuple[Rank, str]] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return self.key[0]

    @property
    def non_preemptible(self) -> bool:
        return self.book.preemptibility is Preemptibility.NON_PREEMPTIBLE

    def add_member(self, task: Task) -> None:
        self.remove_member(task.uid)
        self.members[task.uid] = task
        heapq.heappush(self._ranks, (task.rank, task.uid))
        self.book.gated_count += task.gated
        if task.node or task.is_waiting:
            self.book.add_pod(task.pod)
        else:
            self.book.other_count += 1
        if task.fault and not task.node:
            self.faulty[task.uid] = None

    def remove_member(self, uid: str) -> None:
        task = self.members.pop(uid, None)
        if task is None:
            return
        self.binding_refusal = None
        self.book.gated_count -= task.gated
        self.book.other_count -= not (task.node or task.is_waiting)
        self.book.remove_pod(uid)
        self.faulty.pop(uid, None)

    def note_fixed_refusal(self) -> None:
        """Tell decisions why none of its pods can be placed, if so."""
        faulty_task = next((self.members[uid] for uid in self.faulty), None)
        if faulty_task is not None or self.fault:
            text = f"pod {faulty_task.name}: {faulty_task.fault}" if faulty_task else self.fault
            self.book.fixed_refusal = Refusal(NO_ROOM, text, text)
        else:
            # Bound again, it would be refused again, and free the same room again, for ever.
            self.book.fixed_refusal = self.binding_refusal

    def find_first_member(self) -> Task:
        """Return the member of the lowest rank. Raises IndexError without members."""
        while True:
            rank, uid = self._ranks[0]
            task = self.members.get(uid)
            if task is not None and task.rank == rank:
                return task
            # It has left, or changed its rank: then it is in the heap once more.
            heapq.heappop(self._ranks)


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
        self._placed: dict[Key, Group] = {}
        """The gangs with pods on a node."""
        self._promised: dict[Key, Group] = {}
        """The gangs for whose pods places are kept."""
        self._keys_by_pod: dict[str, Key] = {}
        self._keys_by_name: dict[Key, Key] = {}
        self._spare_nodes: OrderedDict[Key, list[str]] = OrderedDict()
        """Where places are kept for the pods that will be made in place of moved ones, by gang."""
        self._created: list[Key] = []
        self._arrivals = itertools.count()

    def find(self, key: Key) -> Group | None:
        return self._groups.get(key)

    def find_by_book(self, key: str) -> Group | None:
        """Return the gang of a key that decisions know it by, or None."""
        namespace, _, name = key.partition("/")
        return self._groups.get((namespace, name))

    def find_by_pod(self, uid: str) -> Group | None:
        """Return the gang of a pod, or None."""
        key = self._keys_by_pod.get(uid)
        return None if key is None else self._groups.get(key)

    def pod_uids(self) -> Iterable[str]:
        """Return the uids of the pods of all gangs."""
        return self._keys_by_pod

    def list_waiting(self) -> Sequence[Group]:
        """Return the gangs with pods that are not on a node."""
        return [
            group for group in self._groups.values() if len(group.book.placed) < len(group.members)
        ]

    def list_placed(self) -> Sequence[Group]:
        """Return the gangs with pods on a node."""
        return list(self._placed.values())

    def list_promised(self) -> Sequence[Group]:
        """Return the gangs for whose pods places are kept until others have left them."""
        return list(self._promised.values())

    def list_tasks(self, group: Group) -> Sequence[Task]:
        """Return its pods as they are now; one that has gone meanwhile is left out."""
        tasks = self._index.tasks
        return [tasks[uid] for uid in group.members if uid in tasks]

    def count_succeeded(self, group: Group) -> int:
        """Return how many of its pods have succeeded.

        They were there, so the gang does not wait for them again.
        """
        return sum(
            count
            for uid in group.owners
            for tally, count in self._objects.store.count_controlled(PODS.key, uid).items()
            if tally.phase == "Succeeded"
        )

    def refresh(self, *, all_groups: bool) -> Generator[None, None, dict[Key, Group]]:
        """Apply the changes since the last call and update the PodGroups, in steps; return the
        affected gangs.

        Gangs that have lost their last pod are among them, without members, for the last time.
        With `all_groups` all others are too.
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
            yield
        affected |= dict.fromkeys(
            key for key in _drain_changes(index.changed_owners) if key in self._groups
        )
        affected |= dict.fromkeys(
            self._keys_by_name[name_key]
            for name_key in _drain_changes(index.changed_groups)
            if name_key in self._keys_by_name
        )
        if all_groups:
            affected |= dict.fromkeys(self._groups)
        groups = {key: self._groups[key] for key in affected}
        for key, group in groups.items():
            _note_member(self._placed, group, is_member=bool(group.book.placed))
            _note_member(self._promised, group, is_member=bool(group.book.promised_nodes))
            if group.members:
                self._update_group(group)
                group.note_fixed_refusal()
            else:
                del self._groups[key]
                del self._keys_by_name[group.namespace, group.name]
            yield
        return groups

    def _move_pod(self, uid: str) -> Iterable[Key]:
        """Move a changed pod from its old gang into its new one; yield both."""
        task, before = self._index.tasks.get(uid), self._keys_by_pod.pop(uid, None)
        if before is not None:
            if task is None:
                self._note_spare_node(before, self._groups[before].members.get(uid))
            yield before
        key = None
        if task is not None and task.scheduler in SCHEDULER_NAMES:
            group = self._find_or_create_group(task)
            key = self._keys_by_pod[uid] = group.key
            group.add_member(self._hand_on_place(key, task))
            if task.owner is not None:
                group.owners.add(str(task.owner["uid"]))
            yield key
        if before is not None and before != key:
            self._groups[before].remove_member(uid)

    def _note_spare_node(self, key: Key, task: Task | None) -> None:
        """Note the place of a pod that was moved and has gone: the next one of its gang gets it."""
        if task is not None and task.node and task.pod.nominated_node:
            self._spare_nodes.setdefault(key, []).append(task.pod.nominated_node)
            while len(self._spare_nodes) > MAX_SPARE_GANGS:
                self._spare_nodes.popitem(last=False)

    def _hand_on_place(self, key: Key, task: Task) -> Task:
        """Return a new pod with the place of one that it replaces, if there is one."""
        nodes = self._spare_nodes.get(key)
        if not nodes or not task.is_waiting or task.pod.nominated_node:
            return task
        pod = replace(task.pod, nominated_node=nodes.pop())
        if not nodes:
            del self._spare_nodes[key]
        return replace(task, pod=pod)

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
        group = self._groups.get(key)
        if group is None:
            book = GangBook("/".join(key), next(self._arrivals))
            group = self._groups[key] = Group(key, name, book)
            book.count_succeeded = partial(self.count_succeeded, group)
        return group

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
                    fault=_describe_owner(ref["name"], ref.get("kind"), "does not exist"),
                )
            top = TopOwner(uid_of(owner), name_of(owner), owner)
            controller = find_controller_reference(owner)
            if controller is None:
                break
            ref = controller
        return top

    def _update_group(self, group: Group) -> None:
        """Bring the PodGroup in line with the workload, and the gang with the PodGroup."""
        group.is_owner_lost = False
        try:
            pod_group = self._ensure_pod_group(group, group.find_first_member())
        except GroupingError as error:
            group.fault, group.is_owner_lost = str(error), isinstance(error, OwnerLost)
            return
        except ApiError as refusal:
            if refusal.code >= 500:
                raise
            group.fault = f"the PodGroup could not be written: {refusal.message}"
            return
        spec = pod_group.get("spec") or {}
        group.fault = ""
        priority = pod_grouping.resolve_priority(
            str(spec.get("priorityClassName") or ""), self._index.priority_classes
        )
        sample, book = group.find_first_member(), group.book
        book.name = f"{group.namespace}/{group.name}"
        book.queue = str(spec.get("queue") or defaults.DEFAULT_QUEUE)
        book.min_member = int(spec.get("minMember") or 1)
        book.priority = priority
        book.preemptibility = pod_grouping.resolve_preemptibility(
            str(spec.get("preemptibility") or ""), priority, labels_of(pod_group), sample.labels
        )
        book.created_at = parse_seconds(pod_group["metadata"].get("creationTimestamp"))
        book.is_exempt = sample.scheduler == DEFAULT_SCHEDULER
        book.preemption_delay = parse_waiting_time(spec.get("preemptionDelay"))
        book.staleness_grace = pod_grouping.resolve_staleness_grace(
            spec.get("stalenessGracePeriod"), annotations_of(pod_group)
        )
        gang_times.note_times(book, annotations_of(pod_group))

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
        wanted_spec = _derive_spec(owner, sample, self._index.priority_classes)
        if present is None:
            if owner is not None and is_foreground_deletion(owner):
                # The garbage collector would remove it at once, once for each pod that goes.
                raise OwnerLost(
                    _describe_owner(name_of(owner), owner.get("kind"), "is being deleted")
                )
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
            raise OwnerLost(top.fault)
        return top.owner or {
            "apiVersion": ref.get("apiVersion"),
            "kind": ref.get("kind"),
            "metadata": {"name": top.name, "uid": top.uid},
        }


def _note_member(groups: dict[Key, Group], group: Group, *, is_member: bool) -> None:
    if is_member:
        groups[group.key] = group
    else:
        groups.pop(group.key, None)


def _describe_owner(name: object, kind: object, fate: str) -> str:
    return f'the owner of the pod, {kind} "{name}", {fate}'


def _derive_spec(owner: Object | None, sample: Task, classes: Mapping[str, int]) -> Object:
    """Derive the spec of a PodGroup. Raises GroupingError."""
    try:
        return pod_grouping.derive_pod_group_spec(owner, sample, classes).build_spec()
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        # An older version may have stored what no schema allows: it must not stop the others.
        raise GroupingError(f"the workload cannot be read: {error}") from error


def _drain_changes(changed: dict[T, None]) -> Sequence[T]:
    keys = list(changed)
    changed.clear()
    return keys

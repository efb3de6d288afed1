"""The pods of one job, and their services: how they are found, made, counted and removed.

When to do which is decided in the reconcilers. Each call does a bounded part and costs what it
does: states are counted by the store, and only the objects concerned are read.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.framework import JobKind, PodCounts, Replica, TrainingJob
from localkube.controllers.job_memory import JobMemory
from localkube.controllers.training_pods import ReplicaKey, find_replica_key
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, is_terminating, name_of, uid_of
from localkube.objects import Objects
from localkube.options import DEFAULT_MAX_PODS
from localkube.resources import PODS, SERVICES
from localkube.resources.resource import Resource
from localkube.store import Record
from localkube.tallies import Tally

PODS_PER_RECONCILE = 8
"""Replicas that one reconciliation makes, removes or replaces: about 15 ms of work."""

REMEMBERED_PER_RECONCILE = 4 * PODS_PER_RECONCILE
"""How many of the removed pods one reconciliation looks for."""

AHEAD_FACTOR = 4
"""How many times the pods of the node one job may have made and not ended."""

DEFAULT_PODS_AHEAD = AHEAD_FACTOR * DEFAULT_MAX_PODS


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """What an operator's controller works with; the same for all its jobs."""

    objects: Objects
    kind: JobKind
    children: Children
    recorder: EventRecorder
    pods_ahead: int
    """How many unfinished pods one job may have."""


class OwnedObjects:
    """The pods and services that a job controls, by replica. Every answer comes from the store.

    `replicas` are those of the job that run as pods of its own.
    """

    def __init__(
        self,
        context: OperatorContext,
        job: TrainingJob,
        replicas: Mapping[str, Replica],
        memory: JobMemory,
    ) -> None:
        self._context = context
        self._objects = context.objects
        self._store = context.objects.store
        self._job = job
        self._uid = uid_of(job.object)
        self._replicas = replicas
        self._types = {type.lower(): type for type in replicas}
        self._memory = memory

    # Finding

    def find_pod(self, name: str) -> Object | None:
        """Return the pod of this name if the job controls it."""
        record = self._find_record(PODS, name)
        return None if record is None else self._objects.decode_record(PODS, record)

    def find_service(self, type: str, index: int) -> Object | None:
        record = self._find_record(SERVICES, self._format_name(type, index))
        return None if record is None else self._objects.decode_record(SERVICES, record)

    def has_pods(self) -> bool:
        return bool(self._tallies(PODS))

    def are_all_ready(self) -> bool:
        return all(tally.ready for tally in self._tallies(PODS))

    def has_active_pods(self) -> bool:
        return any(tally.is_active for tally in self._tallies(PODS))

    def iterate_pods(self, wanted: Callable[[Tally], bool]) -> Iterator[Record]:
        """Yield the pods with a wanted tally; nothing may be written meanwhile."""
        return self._store.iterate_controlled(PODS.key, self._uid, wanted)

    def read_pods(self, records: Iterable[Record]) -> Iterator[tuple[ReplicaKey, Object]]:
        """Decode pods, each with its replica; those that belong to none are left out."""
        for record in records:
            key = find_replica_key(record.name, self._job)
            if key is not None:
                yield key, self._objects.decode_record(PODS, record)

    def _find_record(self, resource: Resource, name: str) -> Record | None:
        record = self._store.find(resource.key, self._job.namespace, name)
        return record if record is not None and record.controller == self._uid else None

    def _tallies(self, resource: Resource) -> Mapping[Tally, int]:
        return self._store.count_controlled(resource.key, self._uid)

    def _format_name(self, type: str, index: int) -> str:
        return self._job.replicas[type].pod_name(self._job.name, index)

    # Counting

    def count_pods(self) -> dict[str, PodCounts]:
        """Count the pods by replica type and phase.

        A terminating pod is neither active nor failed: another takes its place.
        """
        counts = {type: {"Running": 0, "Succeeded": 0, "Failed": 0} for type in self._replicas}
        for tally, count in self._tallies(PODS).items():
            phases = counts.get(self._types.get(tally.role, ""), {})
            is_counted = tally.phase == "Succeeded" or not tally.terminating
            if tally.phase in phases and is_counted:
                phases[tally.phase] += count
        return {
            type: PodCounts(
                phases["Running"],
                phases["Succeeded"],
                phases["Failed"],
                first_succeeded=self._has_first_succeeded(type),
            )
            for type, phases in counts.items()
        }

    def _has_first_succeeded(self, type: str) -> bool:
        record = self._find_record(PODS, self._format_name(type, 0))
        return record is not None and record.fields.get("status.phase") == "Succeeded"

    def count_restarts(self, types: Iterable[str]) -> int:
        """Return the restarts of running pods of these types, and of the pods they replaced."""
        roles = {type.lower() for type in types}
        in_place = sum(
            tally.restarts * count
            for tally, count in self._tallies(PODS).items()
            if tally.role in roles and tally.phase == "Running"
        )
        services = self._tallies(SERVICES).items()
        return in_place + sum(tally.restarts * count for tally, count in services)

    @property
    def wants_more_than_allowed(self) -> bool:
        """Whether the job has more replicas than it may have unfinished pods."""
        wanted = sum(replica.count for replica in self._replicas.values())
        return wanted > self._context.pods_ahead

    # Removing

    def remove_all(self) -> float | None:
        """Start the deletion of a batch of all pods and services; return 0 when there are more."""
        records = chain(
            self.iterate_pods(_is_present),
            self._store.iterate_controlled(SERVICES.key, self._uid, _is_present),
        )
        names = [record.name for record in islice(records, PODS_PER_RECONCILE)]
        for name in dict.fromkeys(names):
            self.remove_replica(name)
        return 0 if len(names) == PODS_PER_RECONCILE else None

    def remove_unfinished(self) -> float | None:
        """Do the same for the replicas whose pods run or wait."""
        names = [
            record.name
            for record in islice(
                self.iterate_pods(lambda tally: tally.is_active), PODS_PER_RECONCILE
            )
        ]
        for name in names:
            self.remove_replica(name)
        return 0 if len(names) == PODS_PER_RECONCILE else None

    def remove_active_pods(self) -> float | None:
        """Do the same for active pods alone."""
        records = self.iterate_pods(lambda tally: tally.is_active)
        batch = list(islice(records, PODS_PER_RECONCILE))
        for record in batch:
            self.remove_pod(self._objects.decode_record(PODS, record))
        return 0 if len(batch) == PODS_PER_RECONCILE else None

    def remove_surplus_replicas(self) -> float | None:
        """Remove a batch of the replicas that an earlier, larger spec has left.

        Returns 0 when there may be more. What is there is looked through once a generation.
        """
        memory, generation = self._memory, self._job.object["metadata"].get("generation")
        if memory.checked_generation != generation:
            memory.checked_generation = generation
            memory.surplus_names = deque(
                name
                for name in self._list_present_names()
                if (key := find_replica_key(name, self._job)) is not None and self._is_surplus(key)
            )
        names = memory.surplus_names
        while names and not self._is_present(names[0]):
            names.popleft()
        for name in list(islice(names, PODS_PER_RECONCILE)):
            self.remove_replica(name)
        return 0 if names else None

    def _list_present_names(self) -> Sequence[str]:
        """Return the names of the replicas of which a part is there and is not being deleted."""
        records = chain(
            self.iterate_pods(_is_present),
            self._store.iterate_controlled(SERVICES.key, self._uid, _is_present),
        )
        return list(dict.fromkeys(record.name for record in records))

    def _is_present(self, name: str) -> bool:
        records = (self._find_record(PODS, name), self._find_record(SERVICES, name))
        return any(record is not None and not record.is_terminating for record in records)

    def _is_surplus(self, key: ReplicaKey) -> bool:
        type, index = key
        return type not in self._replicas or index >= self._replicas[type].count

    def remove_replica(self, name: str) -> None:
        """Start the deletion of a replica's pod, and delete its service."""
        pod = self.find_pod(name)
        if pod is not None:
            self.remove_pod(pod)
        service = self._find_record(SERVICES, name)
        if service is not None and not service.is_terminating:
            obj = self._objects.decode_record(SERVICES, service)
            self._context.children.delete(self._job.object, SERVICES, obj)

    def remove_pod(self, pod: Object) -> None:
        if not is_terminating(pod):
            self._memory.removed_names[name_of(pod)] = None
            self._context.children.delete(self._job.object, PODS, pod)

    # Creating

    def find_missing_replicas(self) -> Sequence[tuple[Replica, int]]:
        """Return the next replicas without a pod, at most a batch and no more than are allowed."""
        tallies = self._tallies(PODS)
        unfinished = sum(count for tally, count in tallies.items() if not tally.is_finished)
        room = min(PODS_PER_RECONCILE, self._context.pods_ahead - unfinished)
        missing: list[tuple[Replica, int]] = []
        # Of replicas that an edited spec leaves out nothing is remembered: they may come back.
        self._memory.next_indexes = {
            replica.type: min(self._memory.next_indexes.get(replica.type, 0), replica.count)
            for replica in self._replicas.values()
        }
        for replica in self._replicas.values():
            role = replica.type.lower()
            pod_count = sum(count for tally, count in tallies.items() if tally.role == role)
            wanted = min(room - len(missing), replica.count - pod_count)
            if wanted > 0:
                indexes = islice(self._iterate_missing_indexes(replica), wanted)
                missing += [(replica, index) for index in indexes]
        return missing

    def _iterate_missing_indexes(self, replica: Replica) -> Iterator[int]:
        """Yield the indexes without a pod: those of removed pods, then all from the first gap."""
        memory = self._memory
        removed = [index for type, index in self._list_removed() if type == replica.type]
        start = memory.next_indexes[replica.type]
        while start < replica.count and self._has_pod(replica, start):
            start += 1
        # Kept before anything is made: what this reconciliation makes may be taken back.
        memory.next_indexes[replica.type] = start
        yield from sorted(index for index in removed if index < start)
        yield from (
            index for index in range(start, replica.count) if not self._has_pod(replica, index)
        )

    def _list_removed(self) -> Sequence[ReplicaKey]:
        """Return some of the replicas whose pods were removed and are to be made again.

        All others before them are forgotten: left there, they would hide those that come after.
        """
        removed: list[ReplicaKey] = []
        names_to_forget = []
        for name in self._memory.removed_names:
            key = find_replica_key(name, self._job)
            if key is None or self._is_surplus(key) or self._find_record(PODS, name):
                names_to_forget.append(name)
                continue
            removed.append(key)
            if len(removed) == REMEMBERED_PER_RECONCILE:
                break
        for name in names_to_forget:
            del self._memory.removed_names[name]
        return removed

    def _has_pod(self, replica: Replica, index: int) -> bool:
        return self._find_record(PODS, replica.pod_name(self._job.name, index)) is not None

    def create_pods(
        self, missing: Sequence[tuple[Replica, int]], build: Callable[[Replica, int], Object]
    ) -> float | None:
        """Create pods; return the seconds until the next ones, if any are missing."""
        for replica, index in missing:
            pod = build(replica, index)
            if self._context.children.create(self._job.object, PODS, pod) is None:
                return RETRY_AFTER
        return 0 if len(missing) == PODS_PER_RECONCILE else None


def _is_present(tally: Tally) -> bool:
    return not tally.terminating

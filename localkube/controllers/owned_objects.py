"""The pods of one job, and their services: how they are found, made, counted and removed.

When to do which is decided in the reconcilers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.framework import JobKind, PodCounts, Replica, TrainingJob
from localkube.controllers.pod_state import phase_of
from localkube.controllers.training_pods import ReplicaKey, find_replica_key
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, is_controlled_by, is_terminating, uid_of
from localkube.objects import Objects
from localkube.resources import PODS, SERVICES
from localkube.resources.resource import Resource

PODS_PER_RECONCILE = 25
"""Pods that one reconciliation starts, so that a job of hundreds does not block the rest."""


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """What an operator's controller works with; the same for all its jobs."""

    objects: Objects
    kind: JobKind
    children: Children
    recorder: EventRecorder


class OwnedObjects:
    """The pods and services that a job controls, by replica. Every answer comes from the store.

    `replicas` are those of the job that run as pods of its own.
    """

    def __init__(
        self, context: OperatorContext, job: TrainingJob, replicas: Mapping[str, Replica]
    ) -> None:
        self._context = context
        self._job = job
        self._replicas = replicas

    def list_pods(self) -> dict[ReplicaKey, Object]:
        return self._list_by_replica(PODS)

    def list_services(self) -> dict[ReplicaKey, Object]:
        return self._list_by_replica(SERVICES)

    def _list_by_replica(self, resource: Resource) -> dict[ReplicaKey, Object]:
        children = self._context.objects.list_owned(resource, uid_of(self._job.object))
        keyed_children = (
            (find_replica_key(child, self._job), child)
            for child in children
            if is_controlled_by(child, self._job.object)
        )
        return {key: child for key, child in keyed_children if key is not None}

    def list_expected_replicas(self) -> list[tuple[Replica, int]]:
        return [
            (replica, index)
            for replica in self._replicas.values()
            for index in range(replica.count)
        ]

    def remove_replicas(self, keys: Iterable[ReplicaKey]) -> None:
        """Start the deletion of these replicas' pods, and delete their services."""
        pods, services = self.list_pods(), self.list_services()
        for key in keys:
            if key in pods:
                self.remove_pod(pods[key])
            if key in services:
                self._context.children.delete(self._job.object, SERVICES, services[key])

    def remove_all(self) -> None:
        self.remove_replicas({*self.list_pods(), *self.list_services()})

    def remove_surplus_replicas(self) -> None:
        """Remove the replicas that an earlier, larger spec has left."""
        expected = {(replica.type, index) for replica, index in self.list_expected_replicas()}
        self.remove_replicas({*self.list_pods(), *self.list_services()} - expected)

    def remove_pod(self, pod: Object) -> None:
        if not is_terminating(pod):
            self._context.children.delete(self._job.object, PODS, pod)

    def create_missing_pods(self, build: Callable[[Replica, int], Object]) -> float | None:
        """Create a batch of the missing pods; return the seconds until the next batch, if any."""
        pods = self.list_pods()
        missing = [
            (replica, index)
            for replica, index in self.list_expected_replicas()
            if (replica.type, index) not in pods
        ]
        for replica, index in missing[:PODS_PER_RECONCILE]:
            pod = build(replica, index)
            if self._context.children.create(self._job.object, PODS, pod) is None:
                return RETRY_AFTER
        return 0 if len(missing) > PODS_PER_RECONCILE else None

    def count_pods(self) -> dict[str, PodCounts]:
        """Count the pods by replica type and phase.

        A terminating pod is neither active nor failed: another takes its place.
        """
        phases: dict[str, dict[int, str]] = {type: {} for type in self._replicas}
        for (type, index), pod in self.list_pods().items():
            if type in phases and (phase_of(pod) == "Succeeded" or not is_terminating(pod)):
                phases[type][index] = phase_of(pod)
        return {type: _count_phases(type_phases) for type, type_phases in phases.items()}


def _count_phases(phases: Mapping[int, str]) -> PodCounts:
    """Return the counts of one replica type, from the phases of its pods by index."""
    values = list(phases.values())
    return PodCounts(
        values.count("Running"),
        values.count("Succeeded"),
        values.count("Failed"),
        first_succeeded=phases.get(0) == "Succeeded",
    )

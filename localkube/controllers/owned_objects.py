"""What one training job owns: its pods and services found, made, counted and removed. When to do
which is decided elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.framework import Address, Framework, PodCounts, Replica, TrainingJob
from localkube.controllers.pod_state import is_active, phase_of, restarts_of
from localkube.controllers.ports import HOST, PortAllocator, parse_port
from localkube.controllers.training_pods import (
    ReplicaKey,
    build_pod,
    build_restart_annotations,
    build_service,
    find_replica_key,
    parse_restarts,
)
from localkube.controllers.trouble_reports import TroubleReports
from localkube.event_recorder import EventRecorder
from localkube.metadata import (
    Object,
    annotations_of,
    is_controlled_by,
    is_terminating,
    name_of,
    uid_of,
)
from localkube.objects import Objects
from localkube.options import ADDRESS_ANNOTATION
from localkube.resources import PODS, SERVICES
from localkube.resources.resource import Resource

PODS_PER_RECONCILE = 25
"""Pods that one look starts, so that a job of hundreds does not hold up everything else."""


@dataclass(frozen=True, slots=True)
class TrainingContext:
    """What a controller of training jobs works with; the same for all its jobs."""

    objects: Objects
    framework: Framework
    children: Children
    recorder: EventRecorder
    ports: PortAllocator
    trouble_reports: TroubleReports


class OwnedObjects:
    """The pods and services that a job controls, by the replica that each is for. Every question is
    answered from the store.
    """

    def __init__(self, context: TrainingContext, job: TrainingJob) -> None:
        self._context = context
        self._job = job

    def list_pods(self) -> dict[ReplicaKey, Object]:
        return self._list_by_replica(PODS)

    def _list_by_replica(self, resource: Resource) -> dict[ReplicaKey, Object]:
        found = self._context.objects.list_owned(resource, uid_of(self._job.object))
        placed = (
            (find_replica_key(child, self._job), child)
            for child in found
            if is_controlled_by(child, self._job.object)
        )
        return {place: child for place, child in placed if place is not None}

    def _list_expected_replicas(self) -> list[tuple[Replica, int]]:
        return [
            (replica, index)
            for replica in self._job.replicas.values()
            for index in range(replica.count)
        ]

    def remove_replicas(self, keys: Iterable[ReplicaKey]) -> None:
        """Start the deletion of the pods of these replicas, and delete their services."""
        pods, services = self._list_by_replica(PODS), self._list_by_replica(SERVICES)
        for place in keys:
            if place in pods:
                self.remove_pod(pods[place])
            if place in services:
                self._context.children.delete(self._job.object, SERVICES, services[place])

    def remove_all(self) -> None:
        self.remove_replicas({*self._list_by_replica(PODS), *self._list_by_replica(SERVICES)})

    def remove_surplus_replicas(self) -> None:
        """What an earlier, larger spec has left."""
        wanted = {(replica.type, index) for replica, index in self._list_expected_replicas()}
        self.remove_replicas(
            ({*self._list_by_replica(PODS)} | {*self._list_by_replica(SERVICES)}) - wanted
        )

    def remove_pod(self, pod: Object) -> None:
        if not is_terminating(pod):
            self._context.children.delete(self._job.object, PODS, pod)

    def ensure_services(self) -> bool:
        """Give every replica a service with an address; False when one could not be made, which an
        event tells.

        Services come before pods, the other way round than in the real operator: a pod's variables
        need the addresses.
        """
        services = self._list_by_replica(SERVICES)
        # While a pod of the job lives it may hold a port; once none does, a port that something
        # else has taken since is replaced.
        at_rest = not any(is_active(pod) for pod in self.list_pods().values())
        return all(
            self._ensure_service(replica, index, services.get((replica.type, index)), at_rest)
            for replica, index in self._list_expected_replicas()
        )

    def _ensure_service(
        self, replica: Replica, index: int, service: Object | None, at_rest: bool
    ) -> bool:
        ports, owner = self._context.ports, self._job.object
        if service is not None:
            port = parse_port(annotations_of(service).get(ADDRESS_ANNOTATION, ""))
            if port is not None and not (at_rest and not ports.is_free(port)):
                return True
        fresh = ports.find_free_port()
        if fresh is None:
            self._context.recorder.record_event(
                owner,
                "Warning",
                "FailedCreateService",
                f"Error creating: {ports.exhausted_message}",
            )
            return False
        address = f"{HOST}:{fresh}"
        if service is None:
            made = build_service(self._context.framework, self._job, replica, index, address)
            return self._context.children.create(owner, SERVICES, made) is not None
        self._set_annotations(service, annotations_of(service) | {ADDRESS_ANNOTATION: address})
        return True

    def _set_annotations(self, service: Object, annotations: Mapping[str, str]) -> None:
        self._context.objects.modify(
            SERVICES,
            self._job.namespace,
            name_of(service),
            lambda it: it["metadata"].update(annotations=dict(annotations)),
        )

    def create_missing_pods(self) -> float | None:
        """Make a batch of the pods that are not there; gives the seconds after which to go on, if
        that is not all.
        """
        pods, services = self.list_pods(), self._list_by_replica(SERVICES)
        missing = [
            (replica, index)
            for replica, index in self._list_expected_replicas()
            if (replica.type, index) not in pods
        ]

        def address(type: str, index: int) -> Address:
            port = parse_port(annotations_of(services[type, index])[ADDRESS_ANNOTATION])
            assert port is not None, "ensure_services has seen to it"
            return Address(HOST, port)

        for replica, index in missing[:PODS_PER_RECONCILE]:
            if (replica.template["spec"]).get("restartPolicy"):
                text = (
                    "Restart policy in pod template will be overwritten by restart policy in "
                    "replica spec"
                )
                self._context.recorder.record_event(
                    self._job.object, "Warning", "SetPodTemplateRestartPolicy", text
                )
            pod = build_pod(self._context.framework, self._job, replica, index, address)
            if self._context.children.create(self._job.object, PODS, pod) is None:
                return RETRY_AFTER
        return 0 if len(missing) > PODS_PER_RECONCILE else None

    def record_restart(self, key: ReplicaKey, pod: Object) -> None:
        """Write down, once a pod, that a failed pod is going to be made anew."""
        service = self._list_by_replica(SERVICES).get(key)
        if service is not None:
            self._set_annotations(
                service, build_restart_annotations(service, pod, restarts_of(pod))
            )

    def count_restarts(self) -> int:
        """All restarts of the job so far: those in place of running pods, and the pods that were
        made anew.

        The real operator counts the first alone, so that a pod that always fails with a retryable
        code restarts for ever.
        """
        retried = {
            replica.type
            for replica in self._job.replicas.values()
            if replica.restart_policy != "Never"
        }
        running = (
            pod
            for place, pod in self.list_pods().items()
            if place[0] in retried and phase_of(pod) == "Running"
        )
        return sum(map(restarts_of, running)) + sum(
            map(parse_restarts, self._list_by_replica(SERVICES).values())
        )

    def count_pods(self) -> dict[str, PodCounts]:
        """Pods by replica type and phase. A pod on its way out is neither active nor failed:
        another takes its place.
        """
        phases: dict[str, dict[int, str]] = {type: {} for type in self._job.replicas}
        for (type, index), pod in self.list_pods().items():
            if type in phases and (phase_of(pod) == "Succeeded" or not is_terminating(pod)):
                phases[type][index] = phase_of(pod)
        return {type: _count_phases(found) for type, found in phases.items()}


def _count_phases(phases: Mapping[int, str]) -> PodCounts:
    """The counts of one replica type, from the phases of its pods by index."""
    found = list(phases.values())
    return PodCounts(
        found.count("Running"),
        found.count("Succeeded"),
        found.count("Failed"),
        first_succeeded=phases.get(0) == "Succeeded",
    )

"""The services of one training job, one a replica: they store its address and its restarts."""

from collections.abc import Mapping
from dataclasses import dataclass

from localkube.controllers.framework import Address, FindAddress, Framework, Replica, TrainingJob
from localkube.controllers.owned_objects import OperatorContext, OwnedObjects
from localkube.controllers.pod_state import is_active, phase_of, restarts_of
from localkube.controllers.ports import HOST, PortAllocator, parse_port
from localkube.controllers.training_pods import (
    ReplicaKey,
    build_restart_annotations,
    build_service,
    parse_restarts,
)
from localkube.controllers.trouble_reports import TroubleReports
from localkube.metadata import Object, annotations_of, name_of
from localkube.options import ADDRESS_ANNOTATION
from localkube.resources import SERVICES


@dataclass(frozen=True, slots=True)
class TrainingContext(OperatorContext):
    """What a controller of training jobs works with; the same for all its jobs."""

    kind: Framework
    ports: PortAllocator
    trouble_reports: TroubleReports


class ReplicaServices:
    """The services of a job's replicas. Every answer comes from the store."""

    def __init__(
        self, context: TrainingContext, job: TrainingJob, owned_objects: OwnedObjects
    ) -> None:
        self._context = context
        self._job = job
        self._owned_objects = owned_objects

    def ensure(self) -> bool:
        """Give every replica a service with an address.

        Returns False, with an event, when one could not be made. Services come before pods, unlike
        in the real operator, because a pod's variables need the addresses.
        """
        services = self._owned_objects.list_services()
        # Replace ports that another process uses only while no pod of the job is active: an active
        # pod is probably the one that uses its port.
        at_rest = not any(is_active(pod) for pod in self._owned_objects.list_pods().values())
        return all(
            self._ensure_one(replica, index, services.get((replica.type, index)), at_rest)
            for replica, index in self._owned_objects.list_expected_replicas()
        )

    def _ensure_one(
        self, replica: Replica, index: int, service: Object | None, at_rest: bool
    ) -> bool:
        ports, owner = self._context.ports, self._job.object
        if service is not None:
            port = parse_port(annotations_of(service).get(ADDRESS_ANNOTATION, ""))
            if port is not None and not (at_rest and not ports.is_free(port)):
                return True
        new_port = ports.find_free_port()
        if new_port is None:
            self._context.recorder.record_event(
                owner,
                "Warning",
                "FailedCreateService",
                f"Error creating: {ports.exhausted_message}",
            )
            return False
        address = f"{HOST}:{new_port}"
        if service is None:
            new_service = build_service(self._context.kind, self._job, replica, index, address)
            return self._context.children.create(owner, SERVICES, new_service) is not None
        self._set_annotations(service, annotations_of(service) | {ADDRESS_ANNOTATION: address})
        return True

    def _set_annotations(self, service: Object, annotations: Mapping[str, str]) -> None:
        self._context.objects.modify(
            SERVICES,
            self._job.namespace,
            name_of(service),
            lambda obj: obj["metadata"].update(annotations=dict(annotations)),
        )

    def build_address_finder(self) -> FindAddress:
        """Build the function that gives each replica's address, once all have their service."""
        services = self._owned_objects.list_services()

        def find_address(type: str, index: int) -> Address:
            port = parse_port(annotations_of(services[type, index])[ADDRESS_ANNOTATION])
            assert port is not None, "`ensure` has seen to it"
            return Address(HOST, port)

        return find_address

    def record_restart(self, key: ReplicaKey, pod: Object) -> None:
        """Record, once a pod, that a failed pod is going to be replaced."""
        service = self._owned_objects.list_services().get(key)
        if service is not None:
            self._set_annotations(
                service, build_restart_annotations(service, pod, restarts_of(pod))
            )

    def count_restarts(self) -> int:
        """Return all restarts of the job: those in place of running pods, and the replaced pods.

        The real operator counts only the first, so a pod that always fails with a retryable code
        restarts for ever there.
        """
        retried = {
            replica.type
            for replica in self._job.replicas.values()
            if replica.restart_policy != "Never"
        }
        running = (
            pod
            for key, pod in self._owned_objects.list_pods().items()
            if key[0] in retried and phase_of(pod) == "Running"
        )
        return sum(map(restarts_of, running)) + sum(
            map(parse_restarts, self._owned_objects.list_services().values())
        )

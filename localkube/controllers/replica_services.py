"""The services of one training job, one a replica: they store its address and its restarts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from localkube.controllers.children import RETRY_AFTER
from localkube.controllers.framework import Address, FindAddress, Framework, Replica, TrainingJob
from localkube.controllers.owned_objects import PODS_PER_RECONCILE, OperatorContext, OwnedObjects
from localkube.controllers.pod_state import restarts_of
from localkube.controllers.ports import HOST, PortAllocator, parse_port
from localkube.controllers.training_pods import (
    ReplicaKey,
    build_restart_annotations,
    build_service,
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

    def ensure_known(self) -> float | None:
        """Give every replica whose address others ask for a service, a batch at a time.

        Returns the seconds until the next attempt while some are missing: 0 when there are more,
        RETRY_AFTER, with an event, when one could not be made. Services come before pods, unlike in
        the real operator, because a pod's variables need the addresses.
        """
        batch: list[tuple[Replica, int]] = []
        for type, index in self._context.kind.list_known_replicas(self._job):
            replica = self._job.replicas.get(type)
            if replica is not None and index < replica.count and self._needs_address(type, index):
                batch.append((replica, index))
                if len(batch) == PODS_PER_RECONCILE:
                    return 0 if self.ensure(batch) else RETRY_AFTER
        return None if self.ensure(batch) else RETRY_AFTER

    def _needs_address(self, type: str, index: int) -> bool:
        port = self._find_port(type, index)
        return port is None or (self._is_at_rest and not self._context.ports.is_free(port))

    def ensure(self, batch: Iterable[tuple[Replica, int]]) -> bool:
        """Give these replicas a service with an address.

        Returns False, with an event, when one could not be made.
        """
        return all(
            self._ensure_one(replica, index, self._owned_objects.find_service(replica.type, index))
            for replica, index in batch
        )

    @cached_property
    def _is_at_rest(self) -> bool:
        """Whether no pod of the job is active.

        Only then are ports replaced that another process uses: an active pod is probably the one
        that uses its port.
        """
        return not self._owned_objects.has_active_pods()

    def _find_port(self, type: str, index: int) -> int | None:
        service = self._owned_objects.find_service(type, index)
        if service is None:
            return None
        return parse_port(annotations_of(service).get(ADDRESS_ANNOTATION, ""))

    def _ensure_one(self, replica: Replica, index: int, service: Object | None) -> bool:
        ports, owner = self._context.ports, self._job.object
        if service is not None:
            port = parse_port(annotations_of(service).get(ADDRESS_ANNOTATION, ""))
            if port is not None and not (self._is_at_rest and not ports.is_free(port)):
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
        """Build the function that gives a replica's address, once it has its service."""
        addresses: dict[ReplicaKey, Address] = {}

        def find_address(type: str, index: int) -> Address:
            address = addresses.get((type, index))
            if address is None:
                port = self._find_port(type, index)
                assert port is not None, "`ensure_known` has seen to it"
                address = addresses[type, index] = Address(HOST, port)
            return address

        return find_address

    def record_restart(self, key: ReplicaKey, pod: Object) -> None:
        """Record, once a pod, that a failed pod is going to be replaced."""
        service = self._owned_objects.find_service(*key)
        if service is not None:
            self._set_annotations(
                service, build_restart_annotations(service, pod, restarts_of(pod))
            )

    def count_restarts(self) -> int:
        """Return all restarts of the job: those in place of running pods, and the replaced pods.

        The real operator counts only the first, so a pod that always fails with a retryable code
        restarts for ever there.
        """
        return self._owned_objects.count_restarts(
            replica.type
            for replica in self._job.replicas.values()
            if replica.restart_policy != "Never"
        )

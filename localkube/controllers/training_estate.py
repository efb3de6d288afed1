"""What one training job owns: its pods and services found, made, counted and removed. When to do
which is decided elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.framework import Address, Framework, Replica, Tally, TrainingJob
from localkube.controllers.mirror import Mirror
from localkube.controllers.podstate import is_active, phase_of, restarts_of
from localkube.controllers.ports import HOST, Ports, port_of
from localkube.controllers.training_pods import (
    Place,
    build_pod,
    build_service,
    place_of,
    restarts_before,
    with_restart,
)
from localkube.metadata import (
    Object,
    annotations_of,
    is_controlled_by,
    is_terminating,
    name_of,
    uid_of,
)
from localkube.objects import Objects
from localkube.options import ADDRESS
from localkube.recorder import Recorder
from localkube.resources import PODS, SERVICES
from localkube.resources.resource import Resource

BATCH = 25
"""Pods that one look starts, so that a job of hundreds does not hold up everything else."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a controller of training jobs works with; the same for all its jobs."""

    objects: Objects
    framework: Framework
    children: Children
    recorder: Recorder
    ports: Ports
    mirror: Mirror


class Estate:
    """The pods and services that a job controls, by the replica that each is for. Every question is
    answered from the store.
    """

    def __init__(self, tools: Tools, job: TrainingJob) -> None:
        self._tools = tools
        self._job = job

    def pods(self) -> dict[Place, Object]:
        return self._placed(PODS)

    def _placed(self, resource: Resource) -> dict[Place, Object]:
        found = self._tools.objects.owned(resource, uid_of(self._job.object))
        placed = (
            (place_of(child, self._job), child)
            for child in found
            if is_controlled_by(child, self._job.object)
        )
        return {place: child for place, child in placed if place is not None}

    def _places(self) -> list[tuple[Replica, int]]:
        return [
            (replica, index)
            for replica in self._job.replicas.values()
            for index in range(replica.count)
        ]

    def remove(self, places: Iterable[Place]) -> None:
        """Start the deletion of the pods of these replicas, and delete their services."""
        pods, services = self._placed(PODS), self._placed(SERVICES)
        for place in places:
            if place in pods:
                self.remove_pod(pods[place])
            if place in services:
                self._tools.children.delete(self._job.object, SERVICES, services[place])

    def remove_everything(self) -> None:
        self.remove({*self._placed(PODS), *self._placed(SERVICES)})

    def remove_surplus(self) -> None:
        """What an earlier, larger spec has left."""
        wanted = {(replica.type, index) for replica, index in self._places()}
        self.remove(({*self._placed(PODS)} | {*self._placed(SERVICES)}) - wanted)

    def remove_pod(self, pod: Object) -> None:
        if not is_terminating(pod):
            self._tools.children.delete(self._job.object, PODS, pod)

    def ensure_services(self) -> bool:
        """Give every replica a service with an address; False when one could not be made, which an
        event tells.

        Services come before pods, the other way round than in the real operator: a pod's variables
        need the addresses.
        """
        services = self._placed(SERVICES)
        # While a pod of the job lives it may hold a port; once none does, a port that something
        # else has taken since is replaced.
        at_rest = not any(is_active(pod) for pod in self.pods().values())
        return all(
            self._ensure_service(replica, index, services.get((replica.type, index)), at_rest)
            for replica, index in self._places()
        )

    def _ensure_service(
        self, replica: Replica, index: int, service: Object | None, at_rest: bool
    ) -> bool:
        ports, owner = self._tools.ports, self._job.object
        if service is not None:
            port = port_of(annotations_of(service).get(ADDRESS, ""))
            if port is not None and not (at_rest and not ports.is_free(port)):
                return True
        fresh = ports.pick()
        if fresh is None:
            self._tools.recorder.event(
                owner, "Warning", "FailedCreateService", f"Error creating: {ports.exhausted}"
            )
            return False
        address = f"{HOST}:{fresh}"
        if service is None:
            made = build_service(self._tools.framework, self._job, replica, index, address)
            return self._tools.children.create(owner, SERVICES, made) is not None
        self._annotate(service, annotations_of(service) | {ADDRESS: address})
        return True

    def _annotate(self, service: Object, annotations: Mapping[str, str]) -> None:
        self._tools.objects.modify(
            SERVICES,
            self._job.namespace,
            name_of(service),
            lambda it: it["metadata"].update(annotations=dict(annotations)),
        )

    def start_missing(self) -> float | None:
        """Make a batch of the pods that are not there; gives the seconds after which to go on, if
        that is not all.
        """
        pods, services = self.pods(), self._placed(SERVICES)
        missing = [
            (replica, index)
            for replica, index in self._places()
            if (replica.type, index) not in pods
        ]

        def address(type: str, index: int) -> Address:
            port = port_of(annotations_of(services[type, index])[ADDRESS])
            assert port is not None, "ensure_services has seen to it"
            return Address(HOST, port)

        for replica, index in missing[:BATCH]:
            if (replica.template["spec"]).get("restartPolicy"):
                text = (
                    "Restart policy in pod template will be overwritten by restart policy in "
                    "replica spec"
                )
                self._tools.recorder.event(
                    self._job.object, "Warning", "SetPodTemplateRestartPolicy", text
                )
            pod = build_pod(self._tools.framework, self._job, replica, index, address)
            if self._tools.children.create(self._job.object, PODS, pod) is None:
                return RETRY_AFTER
        return 0 if len(missing) > BATCH else None

    def count_restart(self, place: Place, pod: Object) -> None:
        """Write down, once a pod, that a failed pod is going to be made anew."""
        service = self._placed(SERVICES).get(place)
        if service is not None:
            self._annotate(service, with_restart(service, pod, restarts_of(pod)))

    def restarts(self) -> int:
        """All restarts of the job so far: those in place of running pods, and the pods that were
        made anew.

        The real operator counts the first alone, so that a pod that always fails with a retryable
        code restarts for ever.
        """
        retried = {
            replica.type for replica in self._job.replicas.values() if replica.restart != "Never"
        }
        running = (
            pod
            for place, pod in self.pods().items()
            if place[0] in retried and phase_of(pod) == "Running"
        )
        return sum(map(restarts_of, running)) + sum(
            map(restarts_before, self._placed(SERVICES).values())
        )

    def tallies(self) -> dict[str, Tally]:
        """Pods by replica type and phase. A pod on its way out is neither active nor failed:
        another takes its place.
        """
        phases: dict[str, dict[int, str]] = {type: {} for type in self._job.replicas}
        for (type, index), pod in self.pods().items():
            if type in phases and (phase_of(pod) == "Succeeded" or not is_terminating(pod)):
                phases[type][index] = phase_of(pod)
        return {type: _tally(found) for type, found in phases.items()}


def _tally(phases: Mapping[int, str]) -> Tally:
    """The counts of one replica type, from the phases of its pods by index."""
    found = list(phases.values())
    return Tally(
        found.count("Running"),
        found.count("Succeeded"),
        found.count("Failed"),
        first_succeeded=phases.get(0) == "Succeeded",
    )

"""JAXJob among the training kinds: workers only, the first of which is the coordinator."""

from collections.abc import Iterator, Mapping

from localkube.controllers.framework import (
    CountsByType,
    FindAddress,
    Replica,
    TrainingJob,
    add_variables,
)
from localkube.metadata import Object
from localkube.resources import JAXJOBS
from localkube.resources.resource import Resource

WORKER = "Worker"


class Jax:
    """JAXJob as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = JAXJOBS
    replicas_field = "jaxReplicaSpecs"
    replica_types: Mapping[str, str] = dict.fromkeys((WORKER,), "Never")
    container_name = "jax"
    port_name = "jaxjob-port"
    port = 6666
    expired_reason = "SuccessfulDeletePod"

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        yield from ()

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        return index == 0

    def replaces_failed_pod(self, replica: Replica) -> bool:
        return replica.restart_policy != "Never"

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        return False

    def list_known_replicas(self, job: TrainingJob) -> Iterator[tuple[str, int]]:
        yield WORKER, 0

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool:
        return counts[WORKER].active > 0

    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool:
        return counts[WORKER].succeeded >= job.replicas[WORKER].count

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        coordinator = find_address(WORKER, 0)
        variables = {
            "PYTHONUNBUFFERED": "1",
            "COORDINATOR_PORT": str(coordinator.port),
            "COORDINATOR_ADDRESS": coordinator.host,
            "NUM_PROCESSES": str(job.replicas[WORKER].count),
            "PROCESS_ID": str(index),
        }
        add_variables(spec["containers"], variables, {})

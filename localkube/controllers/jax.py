"""What is JAX's own among the training kinds: workers alone, of which the first is the
coordinator.
"""

from collections.abc import Iterator, Sequence

from localkube.controllers.framework import Addresses, Replica, Tallies, TrainingJob, set_variables
from localkube.metadata import Object
from localkube.resources import JAXJOBS
from localkube.resources.resource import Resource

WORKER = "Worker"


class Jax:
    """JAXJob, as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = JAXJOBS
    field = "jaxReplicaSpecs"
    replica_types: Sequence[str] = (WORKER,)
    container = "jax"
    port_name = "jaxjob-port"
    port = 6666
    restart = "Never"
    removed_reason = "SuccessfulDeletePod"

    def problems(self, job: TrainingJob) -> Iterator[str]:
        yield from ()

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        return index == 0

    def makes_anew(self, replica: Replica) -> bool:
        return replica.restart != "Never"

    def forgives(self, job: TrainingJob, type: str) -> bool:
        return False

    def is_running(self, job: TrainingJob, tallies: Tallies) -> bool:
        return tallies[WORKER].active > 0

    def has_succeeded(self, job: TrainingJob, tallies: Tallies) -> bool:
        return tallies[WORKER].succeeded >= job.replicas[WORKER].count

    def prepare(
        self, job: TrainingJob, type: str, index: int, addresses: Addresses, spec: Object
    ) -> None:
        coordinator = addresses(WORKER, 0)
        variables = {
            "PYTHONUNBUFFERED": "1",
            "COORDINATOR_PORT": str(coordinator.port),
            "COORDINATOR_ADDRESS": coordinator.host,
            "NUM_PROCESSES": str(job.replicas[WORKER].count),
            "PROCESS_ID": str(index),
        }
        set_variables(spec["containers"], variables, {})

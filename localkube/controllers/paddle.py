"""PaddleJob among the training kinds: the variables of `paddle.distributed.launch`.

Every pod has this machine's loopback, so the pod that hosts the rendezvous knows its own address
and needs no POD_IP_DUMMY.
"""

from collections.abc import Iterator, Mapping

from localkube.controllers.framework import (
    CountsByType,
    FindAddress,
    Replica,
    TrainingJob,
    add_variables,
)
from localkube.metadata import Object
from localkube.resources import PADDLEJOBS
from localkube.resources.resource import Resource

MASTER, WORKER = "Master", "Worker"


class Paddle:
    """PaddleJob as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = PADDLEJOBS
    replicas_field = "paddleReplicaSpecs"
    replica_types: Mapping[str, str] = dict.fromkeys((MASTER, WORKER), "OnFailure")
    container_name = "paddle"
    port_name = "master"
    port = 36543
    expired_reason = "SuccessfulDeletePod"

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        yield from ()

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        return type == MASTER

    def replaces_failed_pod(self, replica: Replica) -> bool:
        return replica.restart_policy != "Never"

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        return False

    def list_known_replicas(self, job: TrainingJob) -> Iterator[tuple[str, int]]:
        yield _leading_type(job), 0

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool:
        return counts[_leading_type(job)].active > 0

    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool:
        leading = _leading_type(job)
        return counts[leading].succeeded >= job.replicas[leading].count

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        master = find_address(_leading_type(job), 0)
        variables = {
            "PYTHONUNBUFFERED": "1",
            "PADDLE_JOB_ID": job.name,
            "PADDLE_NNODES": str(job.total_replicas),
            "PADDLE_MASTER": f"{master.host}:{master.port}",
        }
        if MASTER in job.replicas:
            variables["PADDLE_SERVER_NUM" if type == MASTER else "PADDLE_TRAINER_NUM"] = "1"
        add_variables(spec["containers"], variables, {})


def _leading_type(job: TrainingJob) -> str:
    """Return the type whose replicas decide and host the rendezvous: the master where it is."""
    return MASTER if MASTER in job.replicas else WORKER

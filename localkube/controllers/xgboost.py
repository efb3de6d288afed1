"""XGBoostJob among the training kinds: the variables for XGBoost's tracker and workers, or
LightGBM's.

On a real cluster WORKER_PORT is one number, as every pod has an address of its own. Here all pods
share one address, so each worker gets its own port in it, and the master that of worker 0: a
program that listens there works, one that dials the others does not.
"""

from collections.abc import Iterator, Mapping

from localkube.controllers.framework import (
    MAX_LISTED_ADDRESSES,
    CountsByType,
    FindAddress,
    Replica,
    TrainingJob,
    add_variables,
    describe_too_many_addresses,
)
from localkube.metadata import Object
from localkube.resources import XGBOOSTJOBS
from localkube.resources.resource import Resource

MASTER, WORKER = "Master", "Worker"


class XGBoost:
    """XGBoostJob as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = XGBOOSTJOBS
    replicas_field = "xgbReplicaSpecs"
    replica_types: Mapping[str, str] = dict.fromkeys((MASTER, WORKER), "Never")
    container_name = "xgboost"
    port_name = "xgboostjob-port"
    port = 9999
    expired_reason = "SuccessfulDeleteJob"

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        if (job.spec.get(self.replicas_field, {}).get(MASTER) or {}).get("replicas") != 1:
            yield f"spec.{self.replicas_field}[{MASTER}] must be there with replicas 1"
        workers = job.replicas[WORKER].count if WORKER in job.replicas else 0
        if workers > MAX_LISTED_ADDRESSES:
            yield describe_too_many_addresses(
                self.replicas_field, "WORKER_ADDRS", workers, "use fewer"
            )

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        return type == MASTER

    def replaces_failed_pod(self, replica: Replica) -> bool:
        """Return whether restartPolicy is ExitCode.

        Any other pod that ends Failed fails the job, although OnFailure restarts its container in
        place before.
        """
        return replica.restart_policy == "ExitCode"

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        return False

    def list_known_replicas(self, job: TrainingJob) -> Iterator[tuple[str, int]]:
        for replica in job.replicas.values():
            yield from ((replica.type, index) for index in range(replica.count))

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool:
        return counts[MASTER].active > 0

    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool:
        return counts[MASTER].succeeded >= job.replicas[MASTER].count

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        master = find_address(MASTER, 0)
        masters = job.replicas[MASTER].count
        variables = {
            "MASTER_PORT": str(master.port),
            "MASTER_ADDR": master.host,
            "WORLD_SIZE": str(job.total_replicas),
            "RANK": str(index if type == MASTER else index + masters),
            "PYTHONUNBUFFERED": "1",
        }
        if WORKER in job.replicas and job.replicas[WORKER].count and job.total_replicas > 1:
            workers = [
                find_address(WORKER, worker_index)
                for worker_index in range(job.replicas[WORKER].count)
            ]
            variables["WORKER_PORT"] = str(workers[index if type == WORKER else 0].port)
            variables["WORKER_ADDRS"] = ",".join(worker.host for worker in workers)
        add_variables(spec["containers"], variables, {})

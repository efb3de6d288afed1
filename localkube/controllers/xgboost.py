"""What is XGBoost's own among the training kinds: the variables that its tracker and workers, or
LightGBM's, are started from.

WORKER_PORT is one number on a real cluster, where every pod has an address of its own. Here all
have the same address, so each worker gets its own port in it, and the master that of worker 0: a
program that listens there works, one that dials the others does not.
"""

from collections.abc import Iterator, Sequence

from localkube.controllers.framework import Addresses, Replica, Tallies, TrainingJob, set_variables
from localkube.metadata import Object
from localkube.resources import XGBOOSTJOBS
from localkube.resources.resource import Resource

MASTER, WORKER = "Master", "Worker"


class XGBoost:
    """XGBoostJob, as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = XGBOOSTJOBS
    field = "xgbReplicaSpecs"
    replica_types: Sequence[str] = (MASTER, WORKER)
    container = "xgboost"
    port_name = "xgboostjob-port"
    port = 9999
    restart = "Never"
    removed_reason = "SuccessfulDeleteJob"

    def problems(self, job: TrainingJob) -> Iterator[str]:
        if (job.object["spec"][self.field].get(MASTER) or {}).get("replicas") != 1:
            yield f"spec.{self.field}[{MASTER}] must be there with replicas 1"

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        return type == MASTER

    def makes_anew(self, replica: Replica) -> bool:
        """Any other pod that ends Failed fails the job, although OnFailure restarts its container
        in place before.
        """
        return replica.restart == "ExitCode"

    def forgives(self, job: TrainingJob, type: str) -> bool:
        return False

    def is_running(self, job: TrainingJob, tallies: Tallies) -> bool:
        return tallies[MASTER].active > 0

    def has_succeeded(self, job: TrainingJob, tallies: Tallies) -> bool:
        return tallies[MASTER].succeeded >= job.replicas[MASTER].count

    def prepare(
        self, job: TrainingJob, type: str, index: int, addresses: Addresses, spec: Object
    ) -> None:
        master = addresses(MASTER, 0)
        masters = job.replicas[MASTER].count
        variables = {
            "MASTER_PORT": str(master.port),
            "MASTER_ADDR": master.host,
            "WORLD_SIZE": str(job.total),
            "RANK": str(index if type == MASTER else index + masters),
            "PYTHONUNBUFFERED": "1",
        }
        if WORKER in job.replicas and job.replicas[WORKER].count and job.total > 1:
            workers = [addresses(WORKER, each) for each in range(job.replicas[WORKER].count)]
            variables["WORKER_PORT"] = str(workers[index if type == WORKER else 0].port)
            variables["WORKER_ADDRS"] = ",".join(worker.host for worker in workers)
        set_variables(spec["containers"], variables, {})

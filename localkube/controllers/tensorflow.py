"""What is TensorFlow's own among the training kinds: five roles, TF_CONFIG, and who decides that a
job has succeeded.
"""

import json
from collections.abc import Iterator, Sequence

from localkube.controllers.framework import (
    Addresses,
    Replica,
    Tallies,
    Tally,
    TrainingJob,
    set_variables,
)
from localkube.metadata import Object
from localkube.resources import TFJOBS
from localkube.resources.resource import Resource

CHIEF, MASTER, WORKER, SERVER, EVALUATOR = "Chief", "Master", "Worker", "PS", "Evaluator"
LEADERS = (CHIEF, MASTER)
ALL_WORKERS = "AllWorkers"


class TensorFlow:
    """TFJob, as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = TFJOBS
    field = "tfReplicaSpecs"
    replica_types: Sequence[str] = (CHIEF, MASTER, SERVER, WORKER, EVALUATOR)
    container = "tensorflow"
    port_name = "tfjob-port"
    port = 2222
    restart = "Never"
    removed_reason = "SuccessfulDeleteJob"

    def problems(self, job: TrainingJob) -> Iterator[str]:
        if all(leader in job.replicas for leader in LEADERS):
            yield f"spec.{self.field} must not have both {CHIEF} and {MASTER}"
        policy = job.object["spec"].get("successPolicy") or ""
        if policy not in ("", ALL_WORKERS):
            yield f"spec.successPolicy is {policy!r}, must be empty or {ALL_WORKERS}"

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        leader = _leader(job)
        return type == leader if leader else type == WORKER and index == 0

    def makes_anew(self, replica: Replica) -> bool:
        return replica.restart != "Never"

    def forgives(self, job: TrainingJob, type: str) -> bool:
        """Workers that come and go are what a dynamic job is for."""
        return type == WORKER and _is_dynamic(job)

    def is_running(self, job: TrainingJob, tallies: Tallies) -> bool:
        return tallies.get(_leader(job) or WORKER, Tally()).active > 0

    def has_succeeded(self, job: TrainingJob, tallies: Tallies) -> bool:
        """The chief alone decides where there is one; else worker 0, or every worker when the job
        says so.
        """
        leader = _leader(job)
        if leader:
            return tallies[leader].succeeded >= job.replicas[leader].count
        if WORKER not in job.replicas:
            return False
        workers = tallies[WORKER]
        if workers.succeeded >= job.replicas[WORKER].count:
            return True
        return workers.first_succeeded and job.object["spec"].get("successPolicy") != ALL_WORKERS

    def prepare(
        self, job: TrainingJob, type: str, index: int, addresses: Addresses, spec: Object
    ) -> None:
        """TF_CONFIG, in the training container alone; a job of one pod has nobody to be told of."""
        if job.total == 1:
            return
        task = {"type": type.lower(), "index": index}
        if _is_dynamic(job):
            config: Object = {"cluster": _sparse_cluster(job, type, index, addresses), "task": task}
        else:
            config = {"cluster": _cluster(job, addresses), "task": task, "environment": "cloud"}
        own = [
            container for container in spec["containers"] if container.get("name") == self.container
        ]
        set_variables(own, {"TF_CONFIG": json.dumps(config, separators=(",", ":"))}, {})


def _leader(job: TrainingJob) -> str:
    """The role whose one pod decides, "" where a job has none."""
    return next((type for type in LEADERS if type in job.replicas), "")


def _is_dynamic(job: TrainingJob) -> bool:
    return bool(job.object["spec"].get("enableDynamicWorker"))


def _addresses_of(job: TrainingJob, type: str, addresses: Addresses) -> list[str]:
    return [_text(addresses, type, index) for index in range(job.replicas[type].count)]


def _text(addresses: Addresses, type: str, index: int) -> str:
    address = addresses(type, index)
    return f"{address.host}:{address.port}"


def _cluster(job: TrainingJob, addresses: Addresses) -> Object:
    """Every role's addresses but the evaluator's, which TensorFlow does not count to the training
    cluster.
    """
    return {
        type.lower(): _addresses_of(job, type, addresses)
        for type in job.replicas
        if type != EVALUATOR
    }


def _sparse_cluster(job: TrainingJob, type: str, index: int, addresses: Addresses) -> Object:
    """What a pod of a dynamic job knows: the parameter servers and itself, so that a worker that
    joins changes nobody else's.
    """
    if type == SERVER:
        return {"ps": [_text(addresses, SERVER, index)], "worker": {}}
    servers = _addresses_of(job, SERVER, addresses) if SERVER in job.replicas else []
    own = {str(index): _text(addresses, WORKER, index)} if type == WORKER else {}
    return {"ps": servers, "worker": own}

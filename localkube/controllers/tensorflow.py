"""What is TensorFlow's own among the training kinds: five roles, TF_CONFIG, and who decides that a
job has succeeded.
"""

import json
from collections.abc import Iterator, Sequence

from localkube.controllers.framework import (
    CountsByType,
    FindAddress,
    PodCounts,
    Replica,
    TrainingJob,
    add_variables,
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
    replicas_field = "tfReplicaSpecs"
    replica_types: Sequence[str] = (CHIEF, MASTER, SERVER, WORKER, EVALUATOR)
    container_name = "tensorflow"
    port_name = "tfjob-port"
    port = 2222
    default_restart_policy = "Never"
    expired_reason = "SuccessfulDeleteJob"

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        if all(leader in job.replicas for leader in LEADERS):
            yield f"spec.{self.replicas_field} must not have both {CHIEF} and {MASTER}"
        policy = job.object["spec"].get("successPolicy") or ""
        if policy not in ("", ALL_WORKERS):
            yield f"spec.successPolicy is {policy!r}, must be empty or {ALL_WORKERS}"

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        leader = _leader_type(job)
        return type == leader if leader else type == WORKER and index == 0

    def replaces_failed_pod(self, replica: Replica) -> bool:
        return replica.restart_policy != "Never"

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        """Workers that come and go are what a dynamic job is for."""
        return type == WORKER and _is_dynamic(job)

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool:
        return counts.get(_leader_type(job) or WORKER, PodCounts()).active > 0

    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool:
        """The chief alone decides where there is one; else worker 0, or every worker when the job
        says so.
        """
        leader = _leader_type(job)
        if leader:
            return counts[leader].succeeded >= job.replicas[leader].count
        if WORKER not in job.replicas:
            return False
        workers = counts[WORKER]
        if workers.succeeded >= job.replicas[WORKER].count:
            return True
        return workers.first_succeeded and job.object["spec"].get("successPolicy") != ALL_WORKERS

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        """TF_CONFIG, in the training container alone; a job of one pod has nobody to be told of."""
        if job.total_replicas == 1:
            return
        task = {"type": type.lower(), "index": index}
        if _is_dynamic(job):
            config: Object = {
                "cluster": _build_sparse_cluster(job, type, index, find_address),
                "task": task,
            }
        else:
            config = {
                "cluster": _build_cluster(job, find_address),
                "task": task,
                "environment": "cloud",
            }
        own = [
            container
            for container in spec["containers"]
            if container.get("name") == self.container_name
        ]
        add_variables(own, {"TF_CONFIG": json.dumps(config, separators=(",", ":"))}, {})


def _leader_type(job: TrainingJob) -> str:
    """The role whose one pod decides, "" where a job has none."""
    return next((type for type in LEADERS if type in job.replicas), "")


def _is_dynamic(job: TrainingJob) -> bool:
    return bool(job.object["spec"].get("enableDynamicWorker"))


def _list_addresses(job: TrainingJob, type: str, find_address: FindAddress) -> list[str]:
    return [_format_address(find_address, type, index) for index in range(job.replicas[type].count)]


def _format_address(find_address: FindAddress, type: str, index: int) -> str:
    address = find_address(type, index)
    return f"{address.host}:{address.port}"


def _build_cluster(job: TrainingJob, find_address: FindAddress) -> Object:
    """Every role's addresses but the evaluator's, which TensorFlow does not count to the training
    cluster.
    """
    return {
        type.lower(): _list_addresses(job, type, find_address)
        for type in job.replicas
        if type != EVALUATOR
    }


def _build_sparse_cluster(
    job: TrainingJob, type: str, index: int, find_address: FindAddress
) -> Object:
    """What a pod of a dynamic job knows: the parameter servers and itself, so that a worker that
    joins changes nobody else's.
    """
    if type == SERVER:
        return {"ps": [_format_address(find_address, SERVER, index)], "worker": {}}
    servers = _list_addresses(job, SERVER, find_address) if SERVER in job.replicas else []
    own = {str(index): _format_address(find_address, WORKER, index)} if type == WORKER else {}
    return {"ps": servers, "worker": own}

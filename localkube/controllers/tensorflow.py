"""TFJob among the training kinds: five roles, TF_CONFIG, and which role decides the success."""

import json
from collections.abc import Iterator, Mapping

from localkube.controllers.framework import (
    MAX_LISTED_ADDRESSES,
    CountsByType,
    FindAddress,
    PodCounts,
    Replica,
    TrainingJob,
    add_variables,
    describe_too_many_addresses,
)
from localkube.metadata import Object
from localkube.resources import TFJOBS
from localkube.resources.resource import Resource

CHIEF, MASTER, WORKER, SERVER, EVALUATOR = "Chief", "Master", "Worker", "PS", "Evaluator"
LEADERS = (CHIEF, MASTER)
ALL_WORKERS = "AllWorkers"


class TensorFlow:
    """TFJob as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = TFJOBS
    replicas_field = "tfReplicaSpecs"
    replica_types: Mapping[str, str] = dict.fromkeys(
        (CHIEF, MASTER, SERVER, WORKER, EVALUATOR), "Never"
    )
    container_name = "tensorflow"
    port_name = "tfjob-port"
    port = 2222
    expired_reason = "SuccessfulDeleteJob"

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        if all(leader in job.replicas for leader in LEADERS):
            yield f"spec.{self.replicas_field} must not have both {CHIEF} and {MASTER}"
        policy = job.spec.get("successPolicy") or ""
        if policy not in ("", ALL_WORKERS):
            yield f"spec.successPolicy is {policy!r}, must be empty or {ALL_WORKERS}"
        listed = sum(
            replica.count for replica in job.replicas.values() if _is_listed(job, replica.type)
        )
        if listed > MAX_LISTED_ADDRESSES:
            advice = "use fewer, or spec.enableDynamicWorker"
            yield describe_too_many_addresses(self.replicas_field, "TF_CONFIG", listed, advice)

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        leader = _leader_type(job)
        return type == leader if leader else type == WORKER and index == 0

    def replaces_failed_pod(self, replica: Replica) -> bool:
        return replica.restart_policy != "Never"

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        """Return whether this is a worker of a dynamic job, whose workers may come and go."""
        return type == WORKER and _is_dynamic(job)

    def list_known_replicas(self, job: TrainingJob) -> Iterator[tuple[str, int]]:
        for replica in job.replicas.values():
            if _is_listed(job, replica.type):
                yield from ((replica.type, index) for index in range(replica.count))

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool:
        return counts.get(_leader_type(job) or WORKER, PodCounts()).active > 0

    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool:
        """Return whether the chief has succeeded; without one, worker 0, or every worker.

        successPolicy AllWorkers asks for every worker.
        """
        leader = _leader_type(job)
        if leader:
            return counts[leader].succeeded >= job.replicas[leader].count
        if WORKER not in job.replicas:
            return False
        workers = counts[WORKER]
        if workers.succeeded >= job.replicas[WORKER].count:
            return True
        return workers.first_succeeded and job.spec.get("successPolicy") != ALL_WORKERS

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        """Set TF_CONFIG in the training container; a job of one pod needs none."""
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
        training_containers = [
            container
            for container in spec["containers"]
            if container.get("name") == self.container_name
        ]
        add_variables(
            training_containers, {"TF_CONFIG": json.dumps(config, separators=(",", ":"))}, {}
        )


def _leader_type(job: TrainingJob) -> str:
    """Return the role whose one pod decides, or "" in a job without one."""
    return next((type for type in LEADERS if type in job.replicas), "")


def _is_dynamic(job: TrainingJob) -> bool:
    return bool(job.spec.get("enableDynamicWorker"))


def _is_listed(job: TrainingJob, type: str) -> bool:
    """Return whether the pods of a job know all replicas of a type."""
    return type == SERVER if _is_dynamic(job) else type != EVALUATOR


def _list_addresses(job: TrainingJob, type: str, find_address: FindAddress) -> list[str]:
    return [_format_address(find_address, type, index) for index in range(job.replicas[type].count)]


def _format_address(find_address: FindAddress, type: str, index: int) -> str:
    address = find_address(type, index)
    return f"{address.host}:{address.port}"


def _build_cluster(job: TrainingJob, find_address: FindAddress) -> Object:
    """Build the addresses of every role but the evaluator.

    TensorFlow does not count the evaluator to the training cluster.
    """
    return {
        type.lower(): _list_addresses(job, type, find_address)
        for type in job.replicas
        if type != EVALUATOR
    }


def _build_sparse_cluster(
    job: TrainingJob, type: str, index: int, find_address: FindAddress
) -> Object:
    """Build what a pod of a dynamic job knows: the parameter servers and itself.

    So a worker that joins changes no other worker's configuration.
    """
    if type == SERVER:
        return {"ps": [_format_address(find_address, SERVER, index)], "worker": {}}
    servers = _list_addresses(job, SERVER, find_address) if SERVER in job.replicas else []
    own_address = (
        {str(index): _format_address(find_address, WORKER, index)} if type == WORKER else {}
    )
    return {"ps": servers, "worker": own_address}

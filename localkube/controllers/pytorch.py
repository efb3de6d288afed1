"""PyTorchJob among the training kinds: replica roles, torchrun and torch.distributed variables,
elastic jobs.

Every address is this machine's loopback with a port of the job's own. So the operator's init
container, which waits until the master's name resolves, is not needed: names are not used, and the
client side of torch's store waits for the master by itself.
"""

from collections.abc import Iterator, Mapping

from localkube.controllers.framework import (
    Address,
    CountsByType,
    FindAddress,
    PodCounts,
    Replica,
    TrainingJob,
    add_variables,
)
from localkube.controllers.training_pods import find_replica_key
from localkube.metadata import Object
from localkube.resources import PYTORCHJOBS
from localkube.resources.resource import Resource

MASTER, WORKER = "Master", "Worker"

LOOPBACK_VARIABLES = {
    "PET_LOCAL_ADDR": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "TP_SOCKET_IFNAME": "lo",
}
"""What torch needs on one machine whose own host name may not resolve.

A value in the user's template wins.
"""


class PyTorch:
    """PyTorchJob as the training operator 1.9 runs it (engine facts 1)."""

    resource: Resource = PYTORCHJOBS
    replicas_field = "pytorchReplicaSpecs"
    replica_types: Mapping[str, str] = dict.fromkeys((MASTER, WORKER), "OnFailure")
    container_name = "pytorch"
    port_name = "pytorchjob-port"
    port = 23456
    expired_reason = "SuccessfulDeletePod"

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        spec = job.spec
        elastic = spec.get("elasticPolicy")
        if (
            MASTER in job.replicas
            and (spec[self.replicas_field][MASTER] or {}).get("replicas") != 1
        ):
            yield f"spec.{self.replicas_field}[{MASTER}].replicas must be 1"
        if elastic is not None and WORKER not in job.replicas:
            yield (
                f"spec.{self.replicas_field}[{WORKER}] must be configured if spec.elasticPolicy is "
                "used"
            )
        if spec.get("nprocPerNode") is not None and (elastic or {}).get("nProcPerNode") is not None:
            yield (
                "spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead of "
                "both"
            )

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        return type == MASTER if MASTER in job.replicas else type == WORKER and index == 0

    def replaces_failed_pod(self, replica: Replica) -> bool:
        return replica.restart_policy != "Never"

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        return False

    def list_known_replicas(self, job: TrainingJob) -> Iterator[tuple[str, int]]:
        if MASTER in job.replicas:
            yield MASTER, 0
        if _is_elastic(job):
            host_replica = _find_rendezvous_replica(job, job.spec["elasticPolicy"])
            if host_replica is not None:
                yield host_replica

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool:
        """Return whether the master runs; in a job without one, whether any worker does."""
        return counts[MASTER if MASTER in job.replicas else WORKER].active > 0

    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool:
        if MASTER in job.replicas:
            return counts[MASTER].succeeded >= job.replicas[MASTER].count
        workers = counts.get(WORKER, PodCounts())
        return workers.succeeded >= job.replicas[WORKER].count or (
            _is_elastic(job) and workers.succeeded > 0
        )

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        elastic = job.spec.get("elasticPolicy")
        variables = {"PYTHONUNBUFFERED": "1"}
        if MASTER in job.replicas:
            variables |= self._static_variables(
                job, index if type == MASTER else index + 1, find_address(MASTER, 0)
            )
        variables["PET_NPROC_PER_NODE"] = _processes_per_node(job)
        if elastic is None:
            variables["PET_NNODES"] = str(job.total_replicas)
        else:
            variables |= self._elastic_variables(job, elastic, (type, index), find_address)
        add_variables(spec["containers"], variables, LOOPBACK_VARIABLES)

    def _static_variables(self, job: TrainingJob, rank: int, master: Address) -> dict[str, str]:
        """Return the variables for torch.distributed's env:// and torchrun's static rendezvous.

        RANK counts pods, not processes, as in the real operator.
        """
        per_node = _processes_per_node(job)
        return {
            "MASTER_PORT": str(master.port),
            "PET_MASTER_PORT": str(master.port),
            "MASTER_ADDR": master.host,
            "PET_MASTER_ADDR": master.host,
            "WORLD_SIZE": str(job.total_replicas * (int(per_node) if per_node.isdecimal() else 1)),
            "RANK": str(rank),
            "PET_NODE_RANK": str(rank),
        }

    def _elastic_variables(
        self, job: TrainingJob, policy: Object, replica: tuple[str, int], find_address: FindAddress
    ) -> dict[str, str]:
        min_nodes, max_nodes = policy.get("minReplicas"), policy.get("maxReplicas")
        workers = job.replicas[WORKER].count
        min_nodes, max_nodes = (
            (min_nodes or max_nodes or workers),
            (max_nodes or min_nodes or workers),
        )
        backend = policy.get("rdzvBackend") or "c10d"
        host_replica = _find_rendezvous_replica(job, policy)
        endpoint = (
            find_address(*host_replica)
            if host_replica
            else Address(str(policy["rdzvHost"]), int(policy.get("rdzvPort") or self.port))
        )
        variables = {
            "PET_RDZV_BACKEND": backend,
            "PET_RDZV_ENDPOINT": f"{endpoint.host}:{endpoint.port}",
            "PET_NNODES": f"{min_nodes}:{max_nodes}",
        }
        if policy.get("maxRestarts") is not None:
            variables["PET_MAX_RESTARTS"] = str(policy["maxRestarts"])
        if policy.get("rdzvId") is not None:
            variables["PET_RDZV_ID"] = str(policy["rdzvId"])
        conf = {
            str(pair.get("key", "")): str(pair.get("value", ""))
            for pair in policy.get("rdzvConf") or ()
        }
        if backend == "c10d" and host_replica is not None:
            # All pods share one address, so torch cannot tell by name which of them must host the
            # store; without this the first one to start would.
            conf.setdefault("is_host", "1" if replica == host_replica else "0")
        if conf:
            variables["PET_RDZV_CONF"] = ",".join(f"{key}={value}" for key, value in conf.items())
        if policy.get("standalone"):
            # The real operator sets an empty text, at which torchrun dies with "invalid literal for
            # int()".
            variables["PET_STANDALONE"] = "1"
        return variables


def _find_rendezvous_replica(job: TrainingJob, policy: Object) -> tuple[str, int] | None:
    """Return the replica that hosts the rendezvous; None for a host elsewhere.

    It is the first worker, or the replica that rdzvHost names. rdzvPort counts only for a host
    elsewhere: on one machine two jobs that ask for the same port would meet.
    """
    if not policy.get("rdzvHost"):
        return WORKER, 0
    host_name = str(policy["rdzvHost"]).split(".")[0]
    key = find_replica_key(host_name, job)
    if key is None or key[0] not in job.replicas:
        return None
    type, index = key
    replica = job.replicas[type]
    is_there = index < replica.count and replica.pod_name(job.name, index) == host_name
    return key if is_there else None


def _is_elastic(job: TrainingJob) -> bool:
    return job.spec.get("elasticPolicy") is not None


def _processes_per_node(job: TrainingJob) -> str:
    """Return the processes of a pod: a number, or `auto`, `cpu` or `gpu` for torchrun."""
    spec = job.spec
    deprecated = (spec.get("elasticPolicy") or {}).get("nProcPerNode")
    return str(deprecated if deprecated is not None else spec.get("nprocPerNode") or "auto")

"""A distributed PyTorch workload as a PyTorchJob of the training operator (kubeflow.org/v1)."""

from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.pod_templates import Identity
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "pytorch"
"""The operator looks for a container of this name."""

MAX_RESTARTS = 1000
"""How often an elastic group may form anew by default: each pod that leaves or joins costs one."""

RENDEZVOUS = {"keep_alive_interval": "1", "keep_alive_max_attempt": "3", "last_call_timeout": "2"}
"""With these a lost pod is noticed within seconds; torch's defaults take half a minute and a failed
attempt.
"""

ELASTIC_VARIABLES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without this torch 2.13 never admits a pod that joins later."""


def build_job(spec: Spec, identity: Identity) -> list[Object]:
    """Build a PyTorchJob."""
    variables = ELASTIC_VARIABLES if spec.elastic else None
    replicas = training.build_replicas(
        spec,
        identity,
        "Master",
        container=CONTAINER,
        default=RestartPolicy.ON_FAILURE,
        variables=variables,
    )
    body: Object = {"runPolicy": _build_run_policy(spec), "pytorchReplicaSpecs": replicas}
    if elastic := _build_elastic_policy(spec):
        body["elasticPolicy"] = elastic
    return [training.build_training_job(spec, identity, "PyTorchJob", body)]


def _build_run_policy(spec: Spec) -> Object:
    """Build the run policy; by default workers that outlive their master are removed.

    They would keep their GPUs. Without a master the first worker to succeed ends the job, and the
    others may be about to finish: the operator leaves them alone, and Muster removes those that run
    on.
    """
    return training.build_run_policy(
        spec, CleanPodPolicy.RUNNING if spec.has_distinct_first_pod else CleanPodPolicy.NONE
    )


def _build_elastic_policy(spec: Spec) -> Object | None:
    """Build the elastic policy; None where the job needs none.

    Without a master even a fixed number of workers needs one: otherwise the operator tells no rank
    where to meet.
    """
    if spec.elastic is None:
        if spec.has_distinct_first_pod:
            return None
        return {"minReplicas": spec.workers, "maxReplicas": spec.workers, "rdzvBackend": "c10d"}
    # torchrun and KAI count the master among the nodes: left out, one of them would never be let
    # into a full group.
    master = int(spec.has_master)
    return {
        "minReplicas": spec.elastic.min_workers + master,
        "maxReplicas": spec.elastic.max_workers + master,
        "rdzvBackend": "c10d",
        "rdzvConf": [{"key": key, "value": value} for key, value in RENDEZVOUS.items()],
        "maxRestarts": MAX_RESTARTS
        if spec.elastic.max_restarts is None
        else spec.elastic.max_restarts,
    }

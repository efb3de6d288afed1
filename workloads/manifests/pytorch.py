"""A distributed PyTorch workload as a PyTorchJob of the training operator (kubeflow.org/v1)."""

from workloads.manifests import pods
from workloads.manifests.pods import Identity, Object
from workloads.specs import CleanPodPolicy, RestartPolicy, Setup, Spec

CONTAINER = "pytorch"
"""The operator looks for a container of this name."""

MAX_RESTARTS = 1000
"""How often an elastic group may form anew: each pod that leaves or joins costs one, and the workload's own limit is the backoff limit."""

RENDEZVOUS = {"keep_alive_interval": "1", "keep_alive_max_attempt": "3", "last_call_timeout": "2"}
"""A lost pod is noticed within seconds; torch's defaults take half a minute and a failed attempt."""

ELASTIC_VARIABLES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without it torch 2.13 never lets in a pod that joins later."""


def build(spec: Spec, identity: Identity) -> list[Object]:
    """One PyTorchJob. All replicas are written, for the scheduler counts what is written."""
    replicas = {}
    if spec.has_master:
        replicas["Master"] = _replica(spec, spec.master_setup, identity, 1, rank_0=True)
    replicas["Worker"] = _replica(spec, spec.setup, identity, spec.workers, rank_0=False)
    body: Object = {"runPolicy": _run_policy(spec), "pytorchReplicaSpecs": replicas}
    if elastic := _elastic(spec):
        body["elasticPolicy"] = elastic
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": pods.metadata(spec, identity), "spec": body}
    return [job]


def _replica(spec: Spec, setup: Setup, identity: Identity, count: int, *, rank_0: bool) -> Object:
    variables = ELASTIC_VARIABLES if spec.elastic else {}
    return {
        "replicas": count,
        "restartPolicy": (spec.lifecycle.restart_policy or RestartPolicy.ON_FAILURE).value,
        "template": pods.template(spec, setup, identity, container=CONTAINER, rank_0=rank_0, variables=variables),
    }


def _run_policy(spec: Spec) -> Object:
    """Unless asked otherwise workers that outlive their master are removed: they would keep their GPUs.

    Without a master the first worker to succeed ends the job, and the others may be about to finish: they are left alone.
    """
    default = CleanPodPolicy.RUNNING if spec.has_master else CleanPodPolicy.NONE
    chosen = spec.lifecycle.clean_pod_policy or default
    policy: Object = {
        "backoffLimit": spec.lifecycle.backoff_limit,
        # A log goes with its pod, so the operator may not remove pods that have finished: Muster does, once their logs are kept.
        "cleanPodPolicy": (CleanPodPolicy.RUNNING if chosen is CleanPodPolicy.ALL else chosen).value,
    }
    if spec.elastic is not None and spec.has_master:
        # KAI would take the minimum of workers for the whole gang.
        policy["schedulingPolicy"] = {"minAvailable": spec.elastic.min_workers + 1}
    return policy


def _elastic(spec: Spec) -> Object | None:
    """The elastic policy. Without a master even a fixed number of workers needs one: else the operator tells no rank where to meet."""
    if spec.elastic is None:
        if spec.has_master:
            return None
        return {"minReplicas": spec.workers, "maxReplicas": spec.workers, "rdzvBackend": "c10d"}
    return {
        "minReplicas": spec.elastic.min_workers,
        "maxReplicas": spec.elastic.max_workers,
        "rdzvBackend": "c10d",
        "rdzvConf": [{"key": key, "value": value} for key, value in RENDEZVOUS.items()],
        "maxRestarts": MAX_RESTARTS,
    }

"""How the pods of torchrun find each other, and how many may leave or join."""

from workloads.kube_objects import Object
from workloads.specs import RestartPolicy, Spec

MAX_RESTARTS = 1000
"""How often an elastic group may form anew by default: each pod that leaves or joins costs one."""

RENDEZVOUS = {"keep_alive_interval": "1", "keep_alive_max_attempt": "3", "last_call_timeout": "2"}
"""With these a lost pod is noticed within seconds; torch's defaults take half a minute and a failed
attempt.
"""

ELASTIC_VARIABLES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without this torch 2.13 never admits a pod that joins later."""


def choose_restart_policy(spec: Spec) -> RestartPolicy:
    """Choose what becomes of an ended container by default.

    torchrun exits with 1 when its restarts are used up. Restarted in place it would count from 0
    again, and the limit would mean nothing.
    """
    if spec.elastic is not None and spec.elastic.max_restarts is not None:
        return RestartPolicy.EXIT_CODE
    return RestartPolicy.ON_FAILURE


def build_elastic_policy(spec: Spec) -> Object | None:
    """Build the elastic policy; None where the job needs none.

    Without a master even a fixed number of workers needs one: otherwise the operator tells no rank
    where to meet.
    """
    if spec.elastic is None:
        if spec.has_distinct_first_pod:
            return None
        return {"minReplicas": spec.workers, "maxReplicas": spec.workers, "rdzvBackend": "c10d"}
    # torchrun and KAI count the master among the nodes, too.
    policy: Object = {
        "minReplicas": spec.elastic.min_pods,
        "maxReplicas": spec.elastic.max_pods,
        "rdzvBackend": "c10d",
        "rdzvConf": [{"key": key, "value": value} for key, value in RENDEZVOUS.items()],
        "maxRestarts": MAX_RESTARTS
        if spec.elastic.max_restarts is None
        else spec.elastic.max_restarts,
    }
    if spec.has_distinct_first_pod:
        # By default they meet at worker 0, which may be taken back while the master stays.
        policy["rdzvHost"] = f"{spec.name}-master-0"
    return policy

"""What the training kinds of kubeflow.org share: replicas of a template, and the run policy."""

from collections.abc import Mapping

from workloads.kube_objects import Object
from workloads.manifests import pod_templates
from workloads.manifests.pod_templates import Identity
from workloads.specs import CleanPodPolicy, RestartPolicy, Setup, Spec

GROUP = "kubeflow.org"


def build_training_job(
    spec: Spec, identity: Identity, kind: str, body: Object, *, version: str = "v1"
) -> Object:
    """Build the object that represents the workload."""
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": pod_templates.build_metadata(spec, identity),
        "spec": body,
    }


def build_replica(
    spec: Spec,
    setup: Setup,
    identity: Identity,
    count: int,
    *,
    container: str,
    default: RestartPolicy,
    rank_0: bool = False,
    variables: Mapping[str, str] | None = None,
) -> Object:
    """Build one entry of a replica map.

    The count is always written: the scheduler counts what is written.
    """
    return {
        "replicas": count,
        "restartPolicy": (spec.lifecycle.restart_policy or default).value,
        "template": pod_templates.build_pod_template(
            spec, setup, identity, container=container, rank_0=rank_0, variables=variables
        ),
    }


def build_replicas(
    spec: Spec,
    identity: Identity,
    first_role: str,
    *,
    container: str,
    default: RestartPolicy,
    variables: Mapping[str, str] | None = None,
) -> Object:
    """Build the replica map of workers and, where the spec has it, a single first pod."""
    setup, workers = spec.master_setup if spec.has_master else spec.setup, spec.workers
    replicas: Object = {}
    if spec.has_distinct_first_pod:
        replicas[first_role] = build_replica(
            spec,
            setup,
            identity,
            1,
            container=container,
            default=default,
            rank_0=True,
            variables=variables,
        )
        workers -= int(not spec.has_master)
    if workers:
        replicas["Worker"] = build_replica(
            spec,
            spec.setup,
            identity,
            workers,
            container=container,
            default=default,
            variables=variables,
        )
    return replicas


def build_run_policy(spec: Spec, default: CleanPodPolicy) -> Object:
    """Build the policy of retries, and of the pods to remove at the end.

    A pod's log goes with it, so the operator may not remove pods that have finished: Muster removes
    them once their logs are stored.
    """
    clean_pod_policy = spec.lifecycle.clean_pod_policy or default
    return {
        "backoffLimit": spec.lifecycle.backoff_limit,
        "cleanPodPolicy": (
            CleanPodPolicy.RUNNING if clean_pod_policy is CleanPodPolicy.ALL else clean_pod_policy
        ).value,
    }

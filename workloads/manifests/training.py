"""A distributed workload as a job of the training operator: a map of replicas, and a run policy.

What differs between the kinds is in their adapters.
"""

from collections.abc import Mapping

from clusters.job_kinds import JobKind
from workloads.kube_objects import Object
from workloads.manifests import pod_templates, rendezvous
from workloads.manifests.pod_templates import Identity
from workloads.specs import CleanPodPolicy, Framework, RestartPolicy, Setup, Spec


def build_job(spec: Spec, identity: Identity, kind: JobKind) -> list[Object]:
    """Build a job whose containers are restarted in place, unless the spec says otherwise."""
    assert spec.framework is not None
    body: Object = {
        "runPolicy": build_run_policy(spec, _choose_clean_pod_policy(spec, spec.framework)),
        kind.replicas_field: _build_replicas(spec, spec.framework, identity, kind),
    }
    if spec.framework.adapter.has_rendezvous and (elastic := rendezvous.build_elastic_policy(spec)):
        body["elasticPolicy"] = elastic
    return [build_training_job(spec, identity, kind, body)]


def build_training_job(spec: Spec, identity: Identity, kind: JobKind, body: Object) -> Object:
    """Build the object that represents the workload."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
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
    default: RestartPolicy = RestartPolicy.ON_FAILURE,
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


def _build_replicas(spec: Spec, framework: Framework, identity: Identity, kind: JobKind) -> Object:
    """Build the map of workers and, where the spec has them, a single first pod and servers."""
    variables = rendezvous.ELASTIC_VARIABLES if spec.elastic else None
    default = rendezvous.choose_restart_policy(spec)
    setup, workers = spec.master_setup if spec.has_master else spec.setup, spec.workers
    replicas: Object = {}
    if spec.has_distinct_first_pod:
        replicas[framework.adapter.leader] = build_replica(
            spec,
            setup,
            identity,
            1,
            container=kind.container,
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
            container=kind.container,
            default=default,
            variables=variables,
        )
    if spec.parameter_servers:
        replicas["PS"] = build_replica(
            spec,
            spec.parameter_server_setup,
            identity,
            spec.parameter_servers,
            container=kind.container,
        )
    return replicas


def _choose_clean_pod_policy(spec: Spec, framework: Framework) -> CleanPodPolicy:
    """Choose which pods are removed at the end by default: those that still run.

    They are left over from a failure, outlived their master or are parameter servers, which never
    end by themselves; and they would keep their GPUs. But of workers with a rendezvous the first
    to succeed ends the job, and the others may be about to finish: the operator leaves them alone,
    and Muster removes those that run on.
    """
    if framework.adapter.has_rendezvous and not spec.has_distinct_first_pod:
        return CleanPodPolicy.NONE
    return CleanPodPolicy.RUNNING


def build_run_policy(spec: Spec, default: CleanPodPolicy = CleanPodPolicy.RUNNING) -> Object:
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

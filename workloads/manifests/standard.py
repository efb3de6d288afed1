"""A standard workload as a batch/v1 Job."""

from clusters.job_kinds import JobKind
from workloads.kube_objects import Object
from workloads.manifests import pod_templates
from workloads.manifests.pod_templates import Identity
from workloads.specs import RestartPolicy, Spec


def build_disruption_rule() -> Object:
    """Build the rule of a Job by which a pod that was taken from it counts as no failure.

    Otherwise each preemption or drained node would cost a try of the backoff limit. Beside any
    such rule Kubernetes replaces pods only once they have failed (podReplacementPolicy Failed): the
    pod of a lost node is replaced when the node comes back, or when somebody deletes the node.
    """
    return {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }


def build_job(spec: Spec, identity: Identity, kind: JobKind) -> list[Object]:
    """Build a Job.

    By default a failed pod is replaced and not restarted in place, so that the log of each try
    stays.
    """
    template = pod_templates.build_pod_template(
        spec, spec.setup, identity, container=kind.container, rank_0=True
    )
    restart_policy = spec.lifecycle.restart_policy or RestartPolicy.NEVER
    template["spec"]["restartPolicy"] = restart_policy.value
    body: Object = {
        "completions": spec.runs,
        "parallelism": min(spec.runs, spec.parallelism),
        "backoffLimit": spec.lifecycle.backoff_limit,
    }
    if restart_policy is RestartPolicy.NEVER:
        # Kubernetes refuses it beside restarts in place.
        body["podFailurePolicy"] = {"rules": [build_disruption_rule()]}
    body["template"] = template
    job = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": pod_templates.build_metadata(spec, identity),
        "spec": body,
    }
    return [job]

"""A standard workload as a batch/v1 Job."""

from workloads.manifests import pods
from workloads.manifests.pods import Identity
from workloads.observed import Object
from workloads.specs import RestartPolicy, Spec

CONTAINER = "main"


def build(spec: Spec, identity: Identity) -> list[Object]:
    """One Job. Unless asked otherwise a failed pod is replaced and not restarted in place: so the
    log of each try stays.
    """
    template = pods.template(spec, spec.setup, identity, container=CONTAINER, rank_0=True)
    template["spec"]["restartPolicy"] = (spec.lifecycle.restart_policy or RestartPolicy.NEVER).value
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": pods.metadata(spec, identity),
        "spec": {
            "completions": spec.runs,
            "parallelism": min(spec.runs, spec.parallelism),
            "backoffLimit": spec.lifecycle.backoff_limit,
            "template": template,
        },
    }
    return [job]

"""A distributed JAX workload as a JAXJob of the training operator (kubeflow.org/v1)."""

from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.pod_templates import Identity
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "jax"


def build_job(spec: Spec, identity: Identity) -> list[Object]:
    """Build a JAXJob.

    All its pods are workers; worker 0 is the coordinator, and all must succeed. A pod that still
    runs at the end is left over from a failure and would keep its GPUs, so it is removed.
    """
    worker = training.build_replica(
        spec,
        spec.setup,
        identity,
        spec.workers,
        container=CONTAINER,
        default=RestartPolicy.ON_FAILURE,
    )
    body = {
        "runPolicy": training.build_run_policy(spec, CleanPodPolicy.RUNNING),
        "jaxReplicaSpecs": {"Worker": worker},
    }
    return [training.build_training_job(spec, identity, "JAXJob", body)]

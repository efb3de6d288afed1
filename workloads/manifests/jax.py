"""A distributed JAX workload as a JAXJob of the training operator (kubeflow.org/v1)."""

from workloads.manifests import training
from workloads.manifests.pods import Identity
from workloads.observed import Object
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "jax"


def build(spec: Spec, identity: Identity) -> list[Object]:
    """One JAXJob. All its pods are workers; worker 0 is the coordinator, and all must succeed.

    So what still runs at the end is what a failure left behind, which would keep its GPUs.
    """
    worker = training.replica(
        spec,
        spec.setup,
        identity,
        spec.workers,
        container=CONTAINER,
        default=RestartPolicy.ON_FAILURE,
    )
    body = {
        "runPolicy": training.run_policy(spec, CleanPodPolicy.RUNNING),
        "jaxReplicaSpecs": {"Worker": worker},
    }
    return [training.job(spec, identity, "JAXJob", body)]

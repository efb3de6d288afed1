"""A distributed TensorFlow workload as a TFJob of the training operator (kubeflow.org/v1), which
writes TF_CONFIG.
"""

from workloads.manifests import training
from workloads.manifests.pods import Identity
from workloads.observed import Object
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "tensorflow"
"""The operator gives TF_CONFIG to the container of this name alone."""


def build(spec: Spec, identity: Identity) -> list[Object]:
    """One TFJob. The master is its Chief; without one worker 0 leads, and its end is the job's."""
    replicas = training.first_and_workers(
        spec, identity, "Chief", container=CONTAINER, default=RestartPolicy.ON_FAILURE
    )
    if spec.parameter_servers:
        replicas["PS"] = training.replica(
            spec,
            spec.server_setup,
            identity,
            spec.parameter_servers,
            container=CONTAINER,
            default=RestartPolicy.ON_FAILURE,
        )
    # Parameter servers never end by themselves, so what runs at the end is removed.
    body = {
        "runPolicy": training.run_policy(spec, CleanPodPolicy.RUNNING),
        "tfReplicaSpecs": replicas,
    }
    return [training.job(spec, identity, "TFJob", body)]

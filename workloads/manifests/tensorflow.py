"""A distributed TensorFlow workload as a TFJob of the training operator (kubeflow.org/v1).

The operator writes TF_CONFIG.
"""

from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.pod_templates import Identity
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "tensorflow"
"""The operator sets TF_CONFIG only in the container of this name."""


def build_job(spec: Spec, identity: Identity) -> list[Object]:
    """Build a TFJob.

    The master is its Chief; without one worker 0 leads, and the job ends with it.
    """
    replicas = training.build_replicas(
        spec, identity, "Chief", container=CONTAINER, default=RestartPolicy.ON_FAILURE
    )
    if spec.parameter_servers:
        replicas["PS"] = training.build_replica(
            spec,
            spec.parameter_server_setup,
            identity,
            spec.parameter_servers,
            container=CONTAINER,
            default=RestartPolicy.ON_FAILURE,
        )
    # Parameter servers never end by themselves: remove what still runs at the end.
    body = {
        "runPolicy": training.build_run_policy(spec, CleanPodPolicy.RUNNING),
        "tfReplicaSpecs": replicas,
    }
    return [training.build_training_job(spec, identity, "TFJob", body)]

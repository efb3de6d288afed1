"""A distributed TensorFlow workload as a TFJob of the training operator (kubeflow.org/v1), which
writes TF_CONFIG.
"""

from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.pod_templates import Identity
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "tensorflow"
"""The operator gives TF_CONFIG to the container of this name alone."""


def build_job(spec: Spec, identity: Identity) -> list[Object]:
    """One TFJob. The master is its Chief; without one worker 0 leads, and its end is the job's."""
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
    # Parameter servers never end by themselves, so what runs at the end is removed.
    body = {
        "runPolicy": training.build_run_policy(spec, CleanPodPolicy.RUNNING),
        "tfReplicaSpecs": replicas,
    }
    return [training.build_training_job(spec, identity, "TFJob", body)]

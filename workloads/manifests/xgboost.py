"""A distributed XGBoost workload as an XGBoostJob of the training operator (kubeflow.org/v1)."""

from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.pod_templates import Identity
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "xgboost"


def build_job(spec: Spec, identity: Identity) -> list[Object]:
    """Build an XGBoostJob.

    The master is rank 0 and has the tracker; the job ends with it. Any failed pod fails an
    XGBoostJob, so by default containers are restarted in place.
    """
    replicas = training.build_replicas(
        spec, identity, "Master", container=CONTAINER, default=RestartPolicy.ON_FAILURE
    )
    body = {
        "runPolicy": training.build_run_policy(spec, CleanPodPolicy.RUNNING),
        "xgbReplicaSpecs": replicas,
    }
    return [training.build_training_job(spec, identity, "XGBoostJob", body)]

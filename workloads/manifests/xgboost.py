"""A distributed XGBoost workload as an XGBoostJob of the training operator (kubeflow.org/v1)."""

from workloads.manifests import training
from workloads.manifests.pods import Identity
from workloads.observed import Object
from workloads.specs import CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "xgboost"


def build(spec: Spec, identity: Identity) -> list[Object]:
    """One XGBoostJob. The master is rank 0 and has the tracker; its end is the job's.

    Any failed pod fails an XGBoostJob, so containers are restarted in place unless asked otherwise.
    """
    replicas = training.first_and_workers(
        spec, identity, "Master", container=CONTAINER, default=RestartPolicy.ON_FAILURE
    )
    body = {
        "runPolicy": training.run_policy(spec, CleanPodPolicy.RUNNING),
        "xgbReplicaSpecs": replicas,
    }
    return [training.job(spec, identity, "XGBoostJob", body)]

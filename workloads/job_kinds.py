"""The kinds of objects that represent a workload, and which of them a cluster serves."""

from collections.abc import Mapping, Sequence

from clusters.capabilities import Capabilities
from clusters.kube.resources import (
    JAXJOBS,
    JOBS,
    MPIJOBS,
    MPIJOBS_V2,
    PYTORCHJOBS,
    TFJOBS,
    TRAINJOBS,
    XGBOOSTJOBS,
    Resource,
)

JOB_KINDS: Mapping[str, Resource] = {
    "batch/v1/Job": JOBS,
    "kubeflow.org/v1/PyTorchJob": PYTORCHJOBS,
    "kubeflow.org/v1/TFJob": TFJOBS,
    "kubeflow.org/v1/XGBoostJob": XGBOOSTJOBS,
    "kubeflow.org/v1/JAXJob": JAXJOBS,
    "kubeflow.org/v2beta1/MPIJob": MPIJOBS_V2,
    "kubeflow.org/v1/MPIJob": MPIJOBS,
    "trainer.kubeflow.org/v1alpha1/TrainJob": TRAINJOBS,
}
"""Resources by apiVersion/kind. Of one kind in two versions the preferred one comes first."""


def list_job_resources(capabilities: Capabilities) -> Sequence[tuple[str, Resource]]:
    """Return the kinds of jobs to look for in a cluster, with their resources.

    The kind is spelt as objects spell it. While the cluster's capabilities are unknown, all kinds
    are returned. A kind that is served in two versions is returned once: both versions show the
    same objects.
    """
    served = [
        (name.rpartition("/")[2], resource)
        for name, resource in JOB_KINDS.items()
        if is_served(capabilities, resource)
    ]
    if not capabilities.known:
        return served
    first = dict(reversed(served))
    return [(kind, resource) for kind, resource in served if first[kind] == resource]


def is_served(capabilities: Capabilities, resource: Resource) -> bool:
    """Return whether a cluster serves this kind; True while nothing is known of it."""
    return capabilities.serves(f"{resource.api_version}/{resource.plural}")

"""The kinds of objects that stand for a workload in a cluster, and which of them a cluster
serves.
"""

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
"""By apiVersion/kind. Of one kind in two versions the one that is preferred comes first."""


def list_job_resources(capabilities: Capabilities) -> Sequence[tuple[str, Resource]]:
    """The kinds of jobs to look for in a cluster, with the kind as objects spell it; all of them
    while nothing is known of it.

    A kind that is served in two versions is given once: both show the same objects.
    """
    found = [
        (name.rpartition("/")[2], resource)
        for name, resource in JOB_KINDS.items()
        if is_served(capabilities, resource)
    ]
    if not capabilities.known:
        return found
    first = dict(reversed(found))
    return [(kind, resource) for kind, resource in found if first[kind] == resource]


def is_served(capabilities: Capabilities, resource: Resource) -> bool:
    """Whether a cluster serves this kind; yes while nothing is known of it."""
    return capabilities.serves(f"{resource.api_version}/{resource.plural}")

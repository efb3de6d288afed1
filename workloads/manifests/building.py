"""From a Spec to Kubernetes objects: which builder is whose."""

from collections.abc import Callable, Mapping

from workloads.manifests import keys, pytorch, standard
from workloads.manifests.pods import Identity, Object
from workloads.specs import Framework, Spec

Builder = Callable[[Spec, Identity], list[Object]]

FRAMEWORKS: Mapping[Framework, Builder] = {Framework.PYTORCH: pytorch.build}
"""The distributed frameworks that can be launched, one module each."""


class CannotBuild(Exception):
    """There is no builder for what is asked; `problems` says so before, in words for the person."""


def build(spec: Spec, *, workload_id: str, attempt: int = 1, scheduler: str = keys.KAI) -> list[Object]:
    """The objects of one attempt, in the order in which to create them; the first one stands for the workload.

    Pure: the same arguments give the same objects, names included, so that a second try finds what the first one made. Expects a
    spec without problems. Auto-deletion is not handed to the cluster: it would take the job away before its end has been seen.
    Raises CannotBuild.
    """
    if not spec.is_distributed:
        builder: Builder | None = standard.build
    else:
        builder = FRAMEWORKS.get(spec.framework) if spec.framework else None
    if builder is None:
        raise CannotBuild(f"nothing builds {spec.architecture} workloads of framework {spec.framework}")
    return builder(spec, Identity(workload_id, attempt, scheduler))

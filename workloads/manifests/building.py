"""From a Spec to Kubernetes objects: the builder for each shape, and claims beside the job."""

from collections.abc import Callable, Mapping

from clusters.capabilities import UNKNOWN, Capabilities
from clusters.job_kinds import JobKind, JobShape
from workloads.kube_objects import Object
from workloads.manifests import (
    data_delivery,
    job_targets,
    keys,
    launchers,
    pod_templates,
    standard,
    training,
    trainjob,
    volumes,
)
from workloads.manifests.placement import NO_POOLS, NodePools
from workloads.manifests.pod_templates import HIDDEN_KEY, Identity
from workloads.manifests.volumes import IMAGES, Images
from workloads.specs import Spec

BUILDERS: Mapping[JobShape, Callable[[Spec, Identity, JobKind], list[Object]]] = {
    JobShape.RUNS: standard.build_job,
    JobShape.REPLICAS: training.build_job,
    JobShape.LAUNCHER: launchers.build_job,
}
"""By the shape of the kind that represents the workload. Nodes also need their runtime."""


class CannotBuild(Exception):
    """There is no builder for the spec.

    `find_problems` and `find_refusals` report this before, in words for the person.
    """


def build_objects(
    spec: Spec,
    *,
    workload_id: str,
    attempt: int = 1,
    capabilities: Capabilities = UNKNOWN,
    images: Images = IMAGES,
    job_kind: str = "",
    pull_secrets: tuple[str, ...] = (),
    pools: NodePools = NO_POOLS,
    delivery_key: str = HIDDEN_KEY,
) -> list[Object]:
    """Build the objects of one attempt, in the order in which to create them.

    The last one represents the workload. Pure: the same arguments give the same objects, names
    included, so that a retry finds what the first try created. Expects a valid spec that the
    cluster does not refuse. Auto-deletion is not handed to the cluster, which would remove the job
    before its end has been seen.

    `job_kind` is the kind that was decided on before ("kubeflow.org/v1/PyTorchJob"), `pull_secrets`
    are those of the project, beside the environment's own; `pools` are the cluster's, and
    `delivery_key` is the secret between ranks and data workers, which objects that are only shown
    lack. Raises CannotBuild.
    """
    if spec.is_distributed and spec.framework is None:
        raise CannotBuild("a distributed workload has a framework")
    identity = Identity(
        workload_id,
        attempt,
        scheduler=keys.KAI if capabilities.has_kai else "",
        # Only for the cluster's own scheduler: KAI reads the label instead, and falls back to its
        # default where the class is missing.
        classes=frozenset() if capabilities.has_kai else capabilities.priority_classes,
        images=images,
        pull_secrets=pull_secrets,
        pools=pools,
        delivery_key=delivery_key,
    )
    target_kind = job_kind or job_targets.choose_target(spec, capabilities).job_kind
    *others, job = _build_job(spec, identity, capabilities, target_kind)
    return [
        *_build_claims(spec, identity),
        *data_delivery.build_objects(spec, identity),
        *others,
        data_delivery.suspend_job(spec, job),
    ]


def _build_job(
    spec: Spec, identity: Identity, capabilities: Capabilities, job_kind: str
) -> list[Object]:
    kind = next(
        (each for each in job_targets.list_targets(spec) if each.job_kind == job_kind), None
    )
    if kind is None:
        raise CannotBuild(f"nothing builds {job_kind}")
    if kind.shape is JobShape.NODES and spec.framework is not None:
        runtime = trainjob.find_runtime(spec.framework, capabilities)
        if runtime is None:
            raise CannotBuild(f"no runtime of the cluster serves {spec.framework.label}")
        return trainjob.build_job(spec, identity, kind, runtime)
    return BUILDERS[kind.shape](spec, identity, kind)


def _build_claims(spec: Spec, identity: Identity) -> list[Object]:
    """Build claims; they carry no attempt number, for they outlive an attempt."""
    marked = {
        keys.MANAGED_BY: keys.MUSTER,
        keys.WORKLOAD: identity.workload_id,
        keys.PROJECT: spec.project,
    }
    return [pod_templates.with_labels(claim, marked) for claim in volumes.build_claims(spec)]

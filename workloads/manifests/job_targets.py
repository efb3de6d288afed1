"""The kind of object that a spec becomes on a cluster, and what that cluster cannot do.

The answers come from the cluster's discovery.
"""

from collections.abc import Iterator, Sequence

from clusters.capabilities import Capabilities
from clusters.job_kinds import JOBS, TRAINJOBS, JobKind, JobShape
from workloads.manifests import trainjob
from workloads.specs import Framework, Problem, Spec


def list_targets(spec: Spec) -> Sequence[JobKind]:
    """Return the kinds that can represent a spec, best first."""
    if not spec.is_distributed or spec.framework is None:
        return (JOBS,)
    return spec.framework.adapter.kinds


def choose_target(spec: Spec, capabilities: Capabilities) -> JobKind:
    """Return the kind that this spec becomes on the cluster.

    Where the cluster serves none, the best one, which `find_refusals` then reports.
    """
    best = list_targets(spec)[0]
    if spec.framework is None or best is JOBS:
        return best
    return find_available_target(spec.framework, capabilities) or best


def find_available_target(framework: Framework, capabilities: Capabilities) -> JobKind | None:
    """Return the kind that a framework's workloads become; None where they cannot run."""
    for each in framework.adapter.kinds:
        if capabilities.serves(each.key) and (
            each.shape is not JobShape.NODES
            or trainjob.find_runtime(framework, capabilities) is not None
        ):
            return each
    return None


def describe_unavailable(framework: Framework, capabilities: Capabilities) -> str:
    """Describe why a framework cannot run there and what to do; "" where it can."""
    if find_available_target(framework, capabilities) is not None:
        return ""
    best_target = framework.adapter.kinds[0]
    if TRAINJOBS in framework.adapter.kinds and capabilities.serves(TRAINJOBS.key):
        missing = f"a runtime for {framework.label}" + (
            " that names the KAI scheduler" if capabilities.has_kai else ""
        )
        return (
            f"The cluster has {TRAINJOBS.operator} without {missing}. Ask its administrator to "
            f"make one, or to install {best_target.operator}."
        )
    return (
        f"The cluster does not serve {best_target.kind} objects. Ask its administrator to install "
        f"{best_target.operator}."
    )


def find_refusals(
    spec: Spec, capabilities: Capabilities, *, is_stored: bool = False
) -> Sequence[Problem]:
    """Return what a cluster cannot do of a valid spec, each with what would work.

    Empty for a cluster whose discovery was never read. With `is_stored` the spec was accepted
    earlier: what the cluster only ignores of it is no refusal.
    """
    return tuple(_iterate_refusals(spec, capabilities, is_stored=is_stored))


def _iterate_refusals(
    spec: Spec, capabilities: Capabilities, *, is_stored: bool
) -> Iterator[Problem]:
    if (
        spec.is_distributed
        and spec.framework is not None
        and (why := describe_unavailable(spec.framework, capabilities))
    ):
        yield Problem("framework", why)
        return
    yield from _find_gpu_refusals(spec, capabilities)
    target = choose_target(spec, capabilities)
    if target.shape is JobShape.NODES:
        yield from trainjob.find_refusals(spec, capabilities, is_stored=is_stored)


def _find_gpu_refusals(spec: Spec, capabilities: Capabilities) -> Iterator[Problem]:
    shared = [("setup", spec.setup)] + ([("master", spec.master_setup)] if spec.has_master else [])
    for prefix, setup in shared:
        gpus = setup.compute.gpus
        if not gpus.is_shared:
            continue
        if not capabilities.has_kai:
            why = "only the KAI scheduler shares devices, and the cluster does not have it"
        elif capabilities.gpu_sharing is False:
            why = "its KAI scheduler has GPU sharing switched off"
        else:
            continue
        field = f"{prefix}.compute.gpus.{'memory' if gpus.memory else 'portion'}"
        yield Problem(
            field,
            (
                f"Parts of a GPU cannot be had on this cluster: {why}. Ask for whole devices, or "
                "choose another cluster."
            ),
        )
        return

"""The kinds of jobs that workloads run as, and the frameworks: an adapter each. Pure.

A framework is a file here, its line in ADAPTERS, and its member of `workloads.specs.Framework`.
"""

from collections.abc import Mapping, Sequence

from clusters.capabilities import Capabilities
from clusters.job_kinds.adapter import FrameworkAdapter, JobKind, JobShape
from clusters.job_kinds.batch import JOBS
from clusters.job_kinds.jax import JAX
from clusters.job_kinds.mpi import MPI
from clusters.job_kinds.paddle import PADDLE
from clusters.job_kinds.pytorch import PYTORCH
from clusters.job_kinds.tensorflow import TENSORFLOW
from clusters.job_kinds.trainer import TRAINJOBS
from clusters.job_kinds.xgboost import XGBOOST

__all__ = [
    "ADAPTERS",
    "JOBS",
    "JOB_KINDS",
    "MASTER_ROLES",
    "RANK_0_ROLES",
    "TRAINJOBS",
    "UNRANKED_ROLES",
    "FrameworkAdapter",
    "JobKind",
    "JobShape",
    "find_shape",
    "is_made_with_batch_jobs",
    "list_served_kinds",
]

ADAPTERS: Mapping[str, FrameworkAdapter] = {
    each.name: each for each in (PYTORCH, TENSORFLOW, MPI, XGBOOST, JAX, PADDLE)
}
"""The frameworks by their names in REST, in the order in which pages offer them."""

_own_kinds = (kind for each in ADAPTERS.values() for kind in each.kinds if kind != TRAINJOBS)
JOB_KINDS: Mapping[str, JobKind] = {kind.job_kind: kind for kind in (JOBS, *_own_kinds, TRAINJOBS)}
"""By apiVersion/kind. Of one kind in two versions the preferred one comes first."""

MASTER_ROLES = frozenset(each.leader.lower() for each in ADAPTERS.values() if each.leader)
"""The roles of pods that are one of their kind, as the operators' labels have them."""
RANK_0_ROLES = frozenset(
    each.leader.lower() for each in ADAPTERS.values() if each.leader and each.is_leader_ranked
)
"""Those that are rank 0; the workers count on from there."""
UNRANKED_ROLES = (MASTER_ROLES - RANK_0_ROLES) | frozenset(
    role.lower() for each in ADAPTERS.values() for role in each.unranked_types
)
"""The roles without a rank."""

_SHAPES: Mapping[object, JobShape] = {each.kind: each.shape for each in JOB_KINDS.values()}


def find_shape(kind: object) -> JobShape:
    """Return how objects of a kind describe their pods, as most do where the kind is unknown."""
    return _SHAPES.get(kind, JobShape.REPLICAS)


def is_made_with_batch_jobs(kind: object) -> bool:
    """Return whether the operator of a kind makes batch Jobs, which make pods of its jobs."""
    return find_shape(kind) in (JobShape.LAUNCHER, JobShape.NODES)


def list_served_kinds(capabilities: Capabilities) -> Sequence[JobKind]:
    """Return the kinds of jobs to look for in a cluster.

    While the cluster's capabilities are unknown, all kinds are returned. A kind that is served in
    two versions is returned once: both versions show the same objects.
    """
    served = [each for each in JOB_KINDS.values() if capabilities.serves(each.key)]
    if not capabilities.known:
        return served
    preferred = {each.kind: each for each in reversed(served)}
    return [each for each in served if preferred[each.kind] == each]

"""The workers of a job that its scale changes: how many it has, and how many it may have. Pure."""

from clusters.job_kinds import JOB_KINDS, JobKind
from workloads.kube_objects import Object, int_or_zero, nested_dict
from workloads.specs import Spec

SCALE = "scale"
"""The subresource that changes the number of workers and nothing else."""


def find_scaled_kind(job_kind: str) -> JobKind | None:
    """Return the kind of a workload's job where its number of workers can be changed, else None."""
    kind = JOB_KINDS.get(job_kind)
    return kind if kind is not None and kind.scaled_type else None


def count_submitted_workers(spec: Spec, job_kind: str) -> int | None:
    """Return with how many workers an elastic workload's job begins.

    None where nobody changes their number: it is not elastic, or its kind has no scale.
    """
    is_scaled = spec.elastic is not None and find_scaled_kind(job_kind) is not None
    return spec.workers if is_scaled else None


def count_workers(job: Object, kind: JobKind) -> int:
    """Return how many workers a job wants now."""
    replicas = nested_dict(job, "spec", kind.replicas_field, kind.scaled_type)
    return int_or_zero(replicas.get("replicas", 1)) if replicas else 0

"""How many pods of a workload its project's quota holds, beside what it asks for."""

from decimal import ROUND_FLOOR

from workloads.models import Workload
from workloads.specs import Spec, UnreadableSpec, decode_spec


def decode_known_spec(workload: Workload) -> Spec | None:
    """Return what a workload asks for; None where this version cannot read it."""
    try:
        return decode_spec(workload.spec)
    except (UnreadableSpec, AttributeError):
        return None


def count_quota_pods(workload: Workload, spec: Spec | None) -> int | None:
    """Return how many of its pods the project's quota of GPUs holds; None without such a bound.

    The workload is loaded with its project.
    """
    quota = workload.project.gpu_quota
    totals = spec.totals if spec else None
    if quota is None or totals is None or not totals.gpus or not totals.pods:
        return None
    return int((quota * totals.pods / totals.gpus).to_integral_value(ROUND_FLOOR))

"""The pods of a workload, of all attempts."""

from collections.abc import Sequence

from django.db.models import F

from workloads.models import Pod, Workload

MOST_PODS = 1000


def load_pods(workload: Workload, *, attempt: int | None = None) -> Sequence[Pod]:
    """Load at most MOST_PODS pods, newest attempt first, then by rank.

    Without the objects themselves.
    """
    pods = Pod.objects.filter(workload=workload).defer("data")
    if attempt is not None:
        pods = pods.filter(attempt=attempt)
    return list(
        pods.order_by("-attempt", F("rank").asc(nulls_last=True), "created_at", "name")[:MOST_PODS]
    )

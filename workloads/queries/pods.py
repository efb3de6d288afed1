"""The pods of a workload, all attempts."""

from collections.abc import Sequence

from django.db.models import F

from workloads.models import Pod, Workload

MOST_PODS = 1000


def load_pods(workload: Workload, *, attempt: int | None = None) -> Sequence[Pod]:
    """At most MOST pods, the newest attempt first and by rank within one, without the objects
    themselves.
    """
    found = Pod.objects.filter(workload=workload).defer("data")
    if attempt is not None:
        found = found.filter(attempt=attempt)
    return list(
        found.order_by("-attempt", F("rank").asc(nulls_last=True), "created_at", "name")[:MOST_PODS]
    )

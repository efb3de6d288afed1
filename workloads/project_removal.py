"""What a project's deletion means for its workloads."""

from collections.abc import Sequence

from projects.models import Project
from workloads.models import Workload
from workloads.states import RESTING, Status
from workloads.tasks.bulk_deletion import request_deletions

DELETE_BATCH = 200
"""Workloads whose deletion one call requests."""
MOST_NAMED = 100


def list_blockers(project: Project) -> Sequence[str]:
    """Return the names of workloads that are neither at rest nor being deleted."""
    at_work = Workload.objects.filter(project=project, released_at=None).exclude(
        status__in=RESTING | {Status.DELETING}
    )
    return list(at_work.order_by("name").values_list("name", flat=True)[:MOST_NAMED])


def clear_project(project: Project) -> str:
    """Request deletion of what is left of a deleted project's workloads.

    Returns a sentence about how many are left, "" for none. Their history stays. A workload that
    was submitted while the project was being deleted goes with the others.
    """
    unreleased = Workload.objects.filter(project=project, released_at=None)
    workload_ids = list(
        unreleased.exclude(status=Status.DELETING).values_list("pk", flat=True)[:DELETE_BATCH]
    )
    request_deletions(
        workload_ids, user=project.deleted_by, reason=f"It went with its project {project.name}."
    )
    remaining = unreleased.count()
    return f"{remaining} of its workloads are still being deleted." if remaining else ""

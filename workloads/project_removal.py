"""What becomes of a project's workloads when the project is deleted. `settings.LEAVING` names this
room: projects lie floors below.
"""

from collections.abc import Sequence

from projects.models import Project
from workloads.models import Workload
from workloads.states import RESTING, Status
from workloads.tasks.bulk_deletion import request_deletions

DELETE_BATCH = 200
"""Workloads that one call asks to be deleted."""
MOST_NAMED = 100


def hindering(project: Project) -> Sequence[str]:
    """The names of the workloads that are neither at rest nor being deleted."""
    at_work = Workload.objects.filter(project=project, released_at=None).exclude(
        status__in=RESTING | {Status.DELETING}
    )
    return list(at_work.order_by("name").values_list("name", flat=True)[:MOST_NAMED])


def cleared(project: Project) -> str:
    """Ask for the deletion of what is still there of a project that has left; in words how much
    that is, "" for nothing.

    Their history stays. One that was submitted while the project was being deleted goes with the
    others.
    """
    there = Workload.objects.filter(project=project, released_at=None)
    some = list(there.exclude(status=Status.DELETING).values_list("pk", flat=True)[:DELETE_BATCH])
    request_deletions(
        some, user=project.left_by, reason=f"It went with its project {project.name}."
    )
    left = there.count()
    return f"{left} of its workloads are still being deleted." if left else ""

"""The rows of the workload table."""

from django.db.models import F

from console.table_filters import Rows
from projects.querysets import InProject
from workloads.models import Workload
from workloads.workload_table import TABLE


def list_in_projects(visible: frozenset[int] | None) -> InProject:
    """Return all workloads of these projects; None means every project.

    `projects.querysets.visible_projects` returns such projects.
    """
    workloads: InProject = Workload.objects.all()
    if visible is None:
        return workloads
    if len(visible) == 1:
        # By equality: the index on the project then also gives the order.
        return workloads.filter(project_id=next(iter(visible)))
    # The + 0 keeps planners from the index on the project: with several projects they would sort
    # all their rows, instead of reading an index that gives the order.
    several: InProject = workloads.alias(in_project=F("project_id") + 0).filter(
        in_project__in=visible
    )
    return several


def select_table_fields(workloads: Rows) -> Rows:
    """Return the same rows with just what the table shows of them; the spec and the job are large.

    `changed` names a row's version, the page sorts by `created_at`.
    """
    return TABLE.select_fields(workloads, "changed", "created_at")

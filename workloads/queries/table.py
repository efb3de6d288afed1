"""The rows of the workload table, and its orders."""

from django.db.models import F

from console.pagination import SortOrder
from projects.models import User
from projects.querysets import InProject, list_visible_project_ids
from workloads.models import Workload

COLUMNS = (
    "id",
    "name",
    "architecture",
    "framework",
    "status",
    "status_at",
    "reason",
    "project_id",
    "project__name",
    "submitted_by_id",
    "submitted_by__username",
    "preemptible",
    "running_pods",
    "requested_pods",
    "ended",
    "gpus_requested",
    "gpu_memory_requested",
    "gpus_allocated",
    "created_at",
    "started_at",
    "ended_at",
    "ran_seconds",
    "attempt",
    "released_at",
    "desired",
    "changed",
)
"""The columns that a row shows; spec, job and PodGroup are large and are not loaded."""

ORDERS = {
    order.name: order
    for order in (
        SortOrder("-created", ("-created_at", "-id")),
        SortOrder("created", ("created_at", "id")),
        SortOrder("name", ("name", "id")),
        SortOrder("-name", ("-name", "-id")),
        SortOrder("status", ("status", "-created_at", "-id")),
        SortOrder("-status", ("-status", "created_at", "id")),
        SortOrder("project", ("project__name", "-created_at", "-id")),
        SortOrder("-project", ("-project__name", "created_at", "id")),
    )
}
"""By the word in the address. An index, forwards or backwards, gives each of them."""
NEWEST = ORDERS["-created"]


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


def list_visible_workloads(user: User, *, deleted: bool = False) -> InProject:
    """Return the workloads that the user sees, without the large columns.

    Released ones only where `deleted`.
    """
    return select_table_columns(
        list_in_projects(list_visible_project_ids(user)).filter(released_at__isnull=not deleted)
    )


def select_table_columns(workloads: InProject) -> InProject:
    """Return the same rows with just the table's columns, project and submitter included."""
    return workloads.select_related("project", "submitted_by").only(*COLUMNS)

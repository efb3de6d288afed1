"""The rows of the table, and its orders."""

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
"""What a row shows: spec, job and PodGroup are large and stay where they are."""

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
"""By the word for it in the address. Each is what an index, forwards or backwards, gives."""
NEWEST = ORDERS["-created"]


def list_in_projects(visible: frozenset[int] | None) -> InProject:
    """All workloads of these projects (None: of every one), as
    `projects.querysets.visible_projects` tells them.
    """
    workloads: InProject = Workload.objects.all()
    if visible is None:
        return workloads
    if len(visible) == 1:
        # Said as an equality: the index on it then also gives the order.
        return workloads.filter(project_id=next(iter(visible)))
    # Several are said so that no index on the project answers, only one that gives the order: the
    # other way all their rows are sorted.
    several: InProject = workloads.alias(in_project=F("project_id") + 0).filter(
        in_project__in=visible
    )
    return several


def list_visible_workloads(user: User, *, deleted: bool = False) -> InProject:
    """Workloads that the user sees, without the large columns; those that the cluster has let go of
    only where `deleted`.
    """
    return select_table_columns(
        list_in_projects(list_visible_project_ids(user)).filter(released_at__isnull=not deleted)
    )


def select_table_columns(workloads: InProject) -> InProject:
    """The same rows with just what a row of the table shows, project and submitter included."""
    return workloads.select_related("project", "submitted_by").only(*COLUMNS)

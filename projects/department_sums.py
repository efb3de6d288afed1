"""Sums over the projects of departments: their number, GPU quotas and allocated GPUs."""

from decimal import Decimal
from typing import Any, TypeVar

from django.db.models import Count, DecimalField, FloatField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from projects.models import Department, Project

AnyBound = TypeVar("AnyBound", Decimal | None, int | None)

QUOTA_SUMS = ("clusters_count", "projects_unlimited", "projects_gpus")
"""Those of the sums that the bounds on all clusters are made of."""


def annotate_sums(rows: "QuerySet[Department]") -> "QuerySet[Department]":
    """Annotate departments with the sums over their projects, in one query.

    Adds `projects_count`, `projects_unlimited` (projects without a GPU quota), `projects_gpus`,
    `held_gpus`, and `clusters_count`, the number of clusters on which they are.
    """
    projects = (
        Project.objects.there().filter(department=OuterRef("pk")).order_by().values("department")
    )
    allocated = Cast(KeyTextTransform("gpu", "allocated"), FloatField())
    return rows.annotate(
        projects_count=Subquery(projects.annotate(found=Count("pk")).values("found")),
        clusters_count=Subquery(
            projects.annotate(found=Count("cluster", distinct=True)).values("found")
        ),
        projects_unlimited=Subquery(
            projects.annotate(found=Count("pk", filter=Q(gpu_quota=None))).values("found")
        ),
        projects_gpus=Subquery(
            projects.annotate(found=Sum("gpu_quota")).values("found"), output_field=DecimalField()
        ),
        held_gpus=Subquery(
            projects.annotate(found=Sum(allocated)).values("found"), output_field=FloatField()
        ),
    )


def effective_gpu_quota(row: Any) -> Decimal | None:
    """Return a department's GPU quota; where it has none, the sum of its projects'.

    In devices; None is unlimited.
    """
    return projects_gpu_quota(row) if row.gpu_quota is None else Decimal(row.gpu_quota)


def gpu_quota_on_all_clusters(row: Any) -> Decimal | None:
    """Return what the projects of a department may hold together; None is unlimited."""
    if row.gpu_quota is None:
        return projects_gpu_quota(row)
    return multiply_bound(Decimal(row.gpu_quota), row.clusters_count or 0)


def gpu_limit_on_all_clusters(row: Any) -> Decimal | None:
    """Return the most that the projects of a department may ever hold; None is unlimited."""
    limit = None if row.gpu_limit is None else Decimal(row.gpu_limit)
    return multiply_bound(limit, row.clusters_count or 0)


def multiply_bound(bound: AnyBound, clusters: int) -> AnyBound:
    """Return the quota or limit of a department on all its clusters: it holds on each by itself."""
    return None if bound is None else bound * max(1, clusters)


def projects_gpu_quota(row: Any) -> Decimal | None:
    """Return the sum of the GPU quotas of a department's projects; None is unlimited."""
    return None if row.projects_unlimited else Decimal(row.projects_gpus or 0)

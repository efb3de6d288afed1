"""Sums over the projects of departments: their number, GPU quotas and allocated GPUs."""

from decimal import Decimal
from typing import Any

from django.db.models import Count, DecimalField, FloatField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from projects.models import Department, Project


def annotate_sums(rows: "QuerySet[Department]") -> "QuerySet[Department]":
    """Annotate departments with the sums over their projects, in one query.

    Adds `projects_count`, `projects_unlimited` (projects without a GPU quota), `projects_gpus` and
    `held_gpus`.
    """
    projects = (
        Project.objects.there().filter(department=OuterRef("pk")).order_by().values("department")
    )
    allocated = Cast(KeyTextTransform("gpu", "allocated"), FloatField())
    return rows.annotate(
        projects_count=Subquery(projects.annotate(found=Count("pk")).values("found")),
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
    if row.gpu_quota is not None:
        return Decimal(row.gpu_quota)
    return None if row.projects_unlimited else Decimal(row.projects_gpus or 0)


def projects_gpu_quota(row: Any) -> Decimal | None:
    """Return the sum of the GPU quotas of a department's projects; None is unlimited."""
    return None if row.projects_unlimited else Decimal(row.projects_gpus or 0)

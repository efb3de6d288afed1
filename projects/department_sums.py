"""What the projects of departments have and hold together."""

from decimal import Decimal
from typing import Any

from django.db.models import Count, DecimalField, FloatField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from projects.models import Department, Project


def annotate_sums(rows: "QuerySet[Department]") -> "QuerySet[Department]":
    """With how many projects each has, and what they have and hold together; the same query however
    many there are.
    """
    mine = Project.objects.there().filter(department=OuterRef("pk")).order_by().values("department")
    held = Cast(KeyTextTransform("gpu", "allocated"), FloatField())
    return rows.annotate(
        projects_count=Subquery(mine.annotate(found=Count("pk")).values("found")),
        projects_unlimited=Subquery(
            mine.annotate(found=Count("pk", filter=Q(gpu_quota=None))).values("found")
        ),
        projects_gpus=Subquery(
            mine.annotate(found=Sum("gpu_quota")).values("found"), output_field=DecimalField()
        ),
        held_gpus=Subquery(
            mine.annotate(found=Sum(held)).values("found"), output_field=FloatField()
        ),
    )


def effective_gpu_quota(row: Any) -> Decimal | None:
    """GPUs that are a department's: its own number, or the sum of its projects'; None is without
    limit.
    """
    if row.gpu_quota is not None:
        return Decimal(row.gpu_quota)
    return None if row.projects_unlimited else Decimal(row.projects_gpus or 0)


def projects_gpu_quota(row: Any) -> Decimal | None:
    """GPUs that are its projects' together; None is without limit."""
    return None if row.projects_unlimited else Decimal(row.projects_gpus or 0)

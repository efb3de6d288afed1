"""Filters of lists of assets: by scope, by where they can be used, and by fields."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import models

from console.errors import Invalid
from environments.api import bodies
from projects.api import filtering, schemas
from projects.api.base import ListQuery
from projects.models import Project
from projects.scopes import TENANT, Level, Scope

MAX_IDS = 250
"""Assets that a list is asked for by their ids."""
FIELDS = {
    "id": filtering.uuid_field("pk"),
    "name": filtering.text_field("name"),
    "description": filtering.text_field("description"),
    "createdAt": filtering.moment_field("created_at"),
    "updatedAt": filtering.moment_field("updated_at"),
    "createdBy": filtering.text_field("created_by__username"),
    "updatedBy": filtering.text_field("updated_by__username"),
    "projectName": filtering.text_field("project__name"),
}
_IDS = {"projectId": Level.PROJECT, "departmentId": Level.DEPARTMENT, "clusterId": Level.CLUSTER}

PARAMETERS = [
    schemas.query_parameter("name", schemas.TEXT, "Exactly this name."),
    schemas.query_parameter("assetIds", schemas.TEXT, "These alone: ids with commas between them."),
    schemas.query_parameter("scope", schemas.enum_schema(*Level), "Those of exactly this level."),
    schemas.query_parameter(
        "projectId",
        schemas.TEXT,
        "Those for use in a project: its own, and those of what is above it.",
    ),
    schemas.query_parameter(
        "departmentId", schemas.TEXT, "Those of a department, and of the tenant."
    ),
    schemas.query_parameter("clusterId", schemas.ID, "Those of a cluster, and of the tenant."),
    schemas.query_parameter(
        "includeDescendants",
        schemas.BOOLEAN,
        "Those of everything below as well. Not together with scope.",
    ),
]


def filter_assets(rows: "models.QuerySet[Any]", parameters: ListQuery) -> "models.QuerySet[Any]":
    """Return the rows that the query parameters ask for. Raises Invalid."""
    rows = _filter_by_scope(
        filtering.filter_and_search(rows, parameters, FIELDS, ("name", "description")), parameters
    )
    if name := parameters.text("name"):
        rows = rows.filter(name=name)
    if ids := parameters.texts("assetIds", MAX_IDS):
        rows = rows.filter(pk__in=_parse_uuids("assetIds", ids))
    return rows


def _parse_uuids(name: str, texts: Sequence[str]) -> list[UUID]:
    try:
        return [UUID(each) for each in texts]
    except ValueError:
        raise Invalid([(name, f"{name} must be ids (UUIDs) with commas between them.")]) from None


def _filter_by_scope(rows: "models.QuerySet[Any]", parameters: ListQuery) -> "models.QuerySet[Any]":
    """Filter by the scope's level and id. Raises Invalid."""
    level, below = parameters.choice("scope", ("", *Level)), parameters.flag("includeDescendants")
    if level and below:
        raise Invalid(
            [("includeDescendants", "includeDescendants cannot be given together with scope.")]
        )
    scope_parameter = next(
        ((name, parameters.text(name)) for name in _IDS if parameters.text(name)), None
    )
    if level:
        rows = rows.filter(_build_level_filter(Level(level)))
    if scope_parameter is None:
        return rows
    try:
        scope = bodies.parse_scope(_IDS[scope_parameter[0]], scope_parameter[1])
    except ValueError:
        raise Invalid([(scope_parameter[0], f"{scope_parameter[0]} must be an id.")]) from None
    return rows.filter(
        _build_scope_filter(scope, exactly=bool(level) and level == scope.level, below=bool(below))
    )


def _build_level_filter(level: Level) -> models.Q:
    if level is Level.TENANT:
        return models.Q(project=None, department=None, cluster=None)
    return models.Q((f"{level}__isnull", False))


def _build_scope_filter(scope: Scope, *, exactly: bool, below: bool) -> models.Q:
    """Build the filter for a scope and those above it.

    With `below` those below it as well; with `exactly` the scope alone.
    """
    condition = models.Q((f"{scope.level}_id", scope.id))
    if exactly:
        return condition
    condition |= models.Q(**TENANT.columns)
    if scope.level is Level.PROJECT and isinstance(scope.id, int):
        project = Project.objects.filter(pk=scope.id)
        return (
            condition
            | models.Q(department__in=project.values("department"))
            | models.Q(cluster__in=project.values("cluster"))
        )
    if below and scope.level is Level.DEPARTMENT:
        return condition | models.Q(project__department=scope.id)
    return condition | models.Q(project__cluster=scope.id) if below else condition

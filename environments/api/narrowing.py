"""How a list of assets is narrowed: by scope, by what is for use in a project, a department or a
cluster, and by fields.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import models

from console.errors import Invalid
from environments.api import bodies
from projects.api import filtering, schemas
from projects.api.base import Asked
from projects.models import Project
from projects.scopes import TENANT, Level, Scope

FIELDS = {
    "id": filtering.uuid("pk"),
    "name": filtering.text("name"),
    "description": filtering.text("description"),
    "createdAt": filtering.moment("created_at"),
    "updatedAt": filtering.moment("updated_at"),
    "createdBy": filtering.text("created_by__username"),
}
_IDS = {"projectId": Level.PROJECT, "departmentId": Level.DEPARTMENT, "clusterId": Level.CLUSTER}

PARAMETERS = [
    schemas.parameter("name", schemas.TEXT, "Exactly this name."),
    schemas.parameter("assetIds", schemas.TEXT, "These alone: ids with commas between them."),
    schemas.parameter("scope", schemas.words(*Level), "Those of exactly this level."),
    schemas.parameter(
        "projectId",
        schemas.TEXT,
        "Those for use in a project: its own, and those of what is above it.",
    ),
    schemas.parameter("departmentId", schemas.TEXT, "Those of a department, and of the tenant."),
    schemas.parameter("clusterId", schemas.ID, "Those of a cluster, and of the tenant."),
    schemas.parameter(
        "includeDescendants",
        schemas.FLAG,
        "Those of everything below as well. Not together with scope.",
    ),
]


def asked_for(rows: "models.QuerySet[Any]", asked: Asked) -> "models.QuerySet[Any]":
    """The rows that the parameters of a list ask for. Raises Invalid."""
    rows = _placed(filtering.matching(rows, asked, FIELDS, ("name", "description")), asked)
    if name := asked.text("name"):
        rows = rows.filter(name=name)
    if ids := [each for each in asked.text("assetIds").split(",") if each.strip()]:
        rows = rows.filter(pk__in=_uuids("assetIds", ids))
    return rows


def _uuids(name: str, texts: Sequence[str]) -> list[UUID]:
    try:
        return [UUID(each.strip()) for each in texts]
    except ValueError:
        raise Invalid([(name, f"{name} must be ids (UUIDs) with commas between them.")]) from None


def _placed(rows: "models.QuerySet[Any]", asked: Asked) -> "models.QuerySet[Any]":
    """Those where scope and the ids of scopes say. Raises Invalid."""
    level, below = asked.choice("scope", ("", *Level)), asked.flag("includeDescendants")
    if level and below:
        raise Invalid(
            [("includeDescendants", "includeDescendants cannot be given together with scope.")]
        )
    given = next(((name, asked.text(name)) for name in _IDS if asked.text(name)), None)
    if level:
        rows = rows.filter(_of_level(Level(level)))
    if given is None:
        return rows
    try:
        scope = bodies.scope_of(_IDS[given[0]], given[1])
    except ValueError:
        raise Invalid([(given[0], f"{given[0]} must be an id.")]) from None
    return rows.filter(_at(scope, exactly=bool(level) and level == scope.level, below=bool(below)))


def _of_level(level: Level) -> models.Q:
    if level is Level.TENANT:
        return models.Q(project=None, department=None, cluster=None)
    return models.Q((f"{level}__isnull", False))


def _at(scope: Scope, *, exactly: bool, below: bool) -> models.Q:
    """Those of the scope and those above it; those below it where they are wanted; or those of the
    scope alone.
    """
    found = models.Q((f"{scope.level}_id", scope.id))
    if exactly:
        return found
    found |= models.Q(**TENANT.columns)
    if scope.level is Level.PROJECT and isinstance(scope.id, int):
        mine = Project.objects.filter(pk=scope.id)
        return (
            found
            | models.Q(department__in=mine.values("department"))
            | models.Q(cluster__in=mine.values("cluster"))
        )
    if below and scope.level is Level.DEPARTMENT:
        return found | models.Q(project__department=scope.id)
    return found | models.Q(project__cluster=scope.id) if below else found

"""Filters of lists of assets: by scope, by where they can be used, and by fields."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import models

from console.errors import Invalid
from environments.api import bodies
from projects.api import filtering, schemas
from projects.api.base import ListQuery
from projects.models import Project, User
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
        (
            "Those for use in a project: its own, and those of what is above it. Of projectId, "
            "departmentId and clusterId several can be given: then it is what can be used where "
            "they meet."
        ),
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


def filter_assets(
    rows: "models.QuerySet[Any]", parameters: ListQuery, user: User
) -> "models.QuerySet[Any]":
    """Return the rows that the query parameters of the user ask for. Raises Invalid."""
    rows = filtering.filter_and_search(rows, parameters, FIELDS, ("name", "description"))
    rows = _filter_by_scope(rows, parameters, user)
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


def _filter_by_scope(
    rows: "models.QuerySet[Any]", parameters: ListQuery, user: User
) -> "models.QuerySet[Any]":
    """Filter by the scopes' level and ids. Raises Invalid."""
    level, below = parameters.choice("scope", ("", *Level)), parameters.flag("includeDescendants")
    if level and below:
        raise Invalid(
            [("includeDescendants", "includeDescendants cannot be given together with scope.")]
        )
    scopes = _parse_scopes(parameters)
    _require_common_project(scopes, user)
    if level:
        rows = rows.filter(_build_level_filter(Level(level)))
    if exact := [scope for scope in scopes if scope.level == level]:
        return rows.filter(_build_own_filter(exact[0]))
    return rows.filter(_build_usable_filter(scopes, below=bool(below))) if scopes else rows


def _parse_scopes(parameters: ListQuery) -> list[Scope]:
    """Return the scopes that projectId, departmentId and clusterId name. Raises Invalid."""
    scopes, problems = [], []
    for name, level in _IDS.items():
        try:
            if text := parameters.text(name):
                scopes.append(bodies.parse_scope(level, text))
        except ValueError:
            problems.append((name, f"{name} must be an id."))
    if problems:
        raise Invalid(problems)
    return scopes


def _require_common_project(scopes: Sequence[Scope], user: User) -> None:
    """Check that a project given is in the department and on the cluster given with it.

    Raises Invalid, also for a project that the user may not see: nobody learns where it is.
    """
    ids = {str(scope.level): scope.id for scope in scopes}
    project = ids.pop(Level.PROJECT, None)
    if project is None or not ids:
        return
    if not Project.objects.visible_to(user).filter(pk=project, **ids).exists():
        others = " and ".join(name for name, level in _IDS.items() if level in ids)
        raise Invalid(
            [("projectId", f"You can see no such project in what {others} says: leave out one.")]
        )


def _build_level_filter(level: Level) -> models.Q:
    if level is Level.TENANT:
        return models.Q(project=None, department=None, cluster=None)
    return models.Q((f"{level}__isnull", False))


def _build_own_filter(scope: Scope) -> models.Q:
    return models.Q((f"{scope.level}_id", scope.id))


def _build_usable_filter(scopes: Sequence[Scope], *, below: bool) -> models.Q:
    """Build the filter for what can be used where all the scopes meet: theirs, and what is above.

    With `below` what belongs to the projects there as well.
    """
    condition = models.Q(**TENANT.columns)
    for scope in scopes:
        condition |= _build_own_filter(scope)
    key = next((scope.id for scope in scopes if scope.level is Level.PROJECT), None)
    if isinstance(key, int):
        project = Project.objects.filter(pk=key)
        condition |= models.Q(department__in=project.values("department"))
        condition |= models.Q(cluster__in=project.values("cluster"))
    elif below:
        condition |= models.Q(*((f"project__{scope.level}", scope.id) for scope in scopes))
    return condition

"""The scopes that a form offers to a user, with their names."""

from collections.abc import Sequence

from django.apps import apps

from projects.models import Department, Project, User
from projects.permissions import Permission
from projects.scopes import TENANT, Level, Scope, cluster_scope, department_scope, project_scope

MAX_CHOICES = 500
"""Choices of each level."""

ScopeChoice = tuple[Scope, str]


def list_scope_choices(user: User, permission: Permission) -> Sequence[ScopeChoice]:
    """Return the scopes in which the user has the permission, widest first, then by name."""
    permitted = user.rights.permitted_scopes(permission)
    # `clusters` is above this app and must not be imported here, so its model is found by name.
    clusters = apps.get_model("clusters", "Cluster").objects.there().order_by("name")
    departments = Department.objects.there().order_by("name")
    if not permitted.tenant:
        clusters, departments = (
            clusters.filter(pk__in=permitted.clusters),
            departments.filter(pk__in=permitted.departments),
        )
    choices = [(TENANT, "Everybody")] if permitted.tenant else []
    if permitted.tenant or permitted.clusters:
        choices += [
            (cluster_scope(pk), f"Cluster {name}")
            for pk, name in clusters.values_list("pk", "name")[:MAX_CHOICES]
        ]
    if permitted.tenant or permitted.departments:
        choices += [
            (department_scope(pk), f"Department {name}")
            for pk, name in departments.values_list("pk", "name")[:MAX_CHOICES]
        ]
    projects = Project.objects.where(user, permission).order_by("name").values_list("pk", "name")
    return [
        *choices,
        *((project_scope(pk), f"Project {name}") for pk, name in projects[:MAX_CHOICES]),
    ]


def scope_exists(scope: Scope) -> bool:
    """Tell whether the scope exists: a program may name any id."""
    if scope == TENANT:
        return True
    model = apps.get_model(
        "clusters" if scope.level is Level.CLUSTER else "projects", scope.level.value
    )
    return bool(model.objects.there().filter(pk=scope.id).exists())

"""The scopes that a form offers to somebody, with their names."""

from collections.abc import Sequence

from django.apps import apps

from projects.models import Department, Project, User
from projects.permissions import Permission
from projects.scopes import TENANT, Level, Scope, cluster_scope, department_scope, project_scope

MAX_CHOICES = 500
"""Of each level."""

ScopeChoice = tuple[Scope, str]


def list_scope_choices(user: User, permission: Permission) -> Sequence[ScopeChoice]:
    """Where this is permitted to the user, the widest first, by name."""
    where = user.rights.permitted_scopes(permission)
    # A floor above: a foreign key knows it by name only, and so does this.
    clusters = apps.get_model("clusters", "Cluster").objects.there().order_by("name")
    departments = Department.objects.there().order_by("name")
    if not where.tenant:
        clusters, departments = (
            clusters.filter(pk__in=where.clusters),
            departments.filter(pk__in=where.departments),
        )
    found = [(TENANT, "Everybody")] if where.tenant else []
    if where.tenant or where.clusters:
        found += [
            (cluster_scope(pk), f"Cluster {name}")
            for pk, name in clusters.values_list("pk", "name")[:MAX_CHOICES]
        ]
    if where.tenant or where.departments:
        found += [
            (department_scope(pk), f"Department {name}")
            for pk, name in departments.values_list("pk", "name")[:MAX_CHOICES]
        ]
    projects = Project.objects.where(user, permission).order_by("name").values_list("pk", "name")
    return [
        *found,
        *((project_scope(pk), f"Project {name}") for pk, name in projects[:MAX_CHOICES]),
    ]


def scope_exists(scope: Scope) -> bool:
    """Whether there is such a scope: what a program names need not be."""
    if scope == TENANT:
        return True
    model = apps.get_model(
        "clusters" if scope.level is Level.CLUSTER else "projects", scope.level.value
    )
    return bool(model.objects.there().filter(pk=scope.id).exists())

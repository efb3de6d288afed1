"""The scopes that a form offers to somebody, with their names."""

from collections.abc import Sequence

from django.apps import apps

from projects.models import Department, Project, User
from projects.permissions import Permission
from projects.scopes import TENANT, Level, Scope, of_cluster, of_department, of_project

MOST = 500
"""Of each level."""

Choice = tuple[Scope, str]


def scopes(user: User, permission: Permission) -> Sequence[Choice]:
    """Where this is permitted to the user, the widest first, by name."""
    where = user.rights.where(permission)
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
            (of_cluster(pk), f"Cluster {name}")
            for pk, name in clusters.values_list("pk", "name")[:MOST]
        ]
    if where.tenant or where.departments:
        found += [
            (of_department(pk), f"Department {name}")
            for pk, name in departments.values_list("pk", "name")[:MOST]
        ]
    projects = Project.objects.where(user, permission).order_by("name").values_list("pk", "name")
    return [*found, *((of_project(pk), f"Project {name}") for pk, name in projects[:MOST])]


def is_there(scope: Scope) -> bool:
    """Whether there is such a scope: what a program names need not be."""
    if scope == TENANT:
        return True
    model = apps.get_model(
        "clusters" if scope.level is Level.CLUSTER else "projects", scope.level.value
    )
    return bool(model.objects.there().filter(pk=scope.id).exists())

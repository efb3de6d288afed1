"""The scopes that a form offers to a user, with their names."""

import functools
from collections.abc import Sequence
from typing import Any

from django.apps import apps

from console.errors import Clash
from projects.models import Department, Project, User
from projects.permissions import Permission
from projects.scopes import TENANT, Level, Scope, cluster_scope, department_scope, project_scope

MAX_OPTIONS = 100
"""Scopes that a form of assets offers to choose from; of more, one types the words."""

ScopeChoice = tuple[Scope, str]


def list_scope_choices(
    user: User, permission: Permission, *, most: int, name: str | None = None
) -> Sequence[ScopeChoice]:
    """Return the scopes in which the user has the permission, widest first, then by name.

    At most so many of each level; with `name` only those that are called so.
    """
    permitted = user.rights.permitted_scopes(permission)
    # `clusters` is above this app and must not be imported here, so its model is found by name.
    clusters = apps.get_model("clusters", "Cluster").objects.there().order_by("name")
    departments = Department.objects.there().order_by("name")
    projects = Project.objects.where(user, permission).order_by("name")
    if name is not None:
        clusters, departments = clusters.filter(name=name), departments.filter(name=name)
        projects = projects.filter(name=name)
    if not permitted.tenant:
        clusters, departments = (
            clusters.filter(pk__in=permitted.clusters),
            departments.filter(pk__in=permitted.departments),
        )
    choices = [(TENANT, "Everybody")] if permitted.tenant else []
    if permitted.tenant or permitted.clusters:
        choices += [
            (cluster_scope(pk), f"Cluster {name}")
            for pk, name in clusters.values_list("pk", "name")[:most]
        ]
    if permitted.tenant or permitted.departments:
        choices += [
            (department_scope(pk), f"Department {name}")
            for pk, name in departments.values_list("pk", "name")[:most]
        ]
    return [
        *choices,
        *(
            (project_scope(pk), f"Project {name}")
            for pk, name in projects.values_list("pk", "name")[:most]
        ),
    ]


def find_scope(user: User, permission: Permission, text: str) -> Scope | None:
    """Find the scope of a key ("project:1") or of words ("Project bert") where this is permitted.

    None where there is none.
    """
    try:
        scope = Scope.parse(text)
    except ValueError:
        choices = list_scope_choices(user, permission, most=1, name=text.partition(" ")[2])
        return next((scope for scope, title in choices if title == text), None)
    return scope if user.rights.may(permission, scope) and scope_exists(scope) else None


def name_scope(scope: Scope) -> str:
    """Return the words of a scope that exists: "Project bert"."""
    if scope == TENANT:
        return "Everybody"
    model = apps.get_model(
        "clusters" if scope.level is Level.CLUSTER else "projects", scope.level.value
    )
    name = model.objects.filter(pk=scope.id).values_list("name", flat=True).get()
    return f"{scope.level.value.capitalize()} {name}"


class ScopeChoices(list[ScopeChoice]):
    """The scopes that a form offers, and how one is found that is not among them.

    Where they are too many to choose from, the form lets people type its words.
    """

    def __init__(self, user: User, permission: Permission) -> None:
        super().__init__(list_scope_choices(user, permission, most=MAX_OPTIONS + 1))
        self.find = functools.partial(find_scope, user, permission)

    @property
    def is_cut(self) -> bool:
        """Whether there are more than a form can offer."""
        return len(self) > MAX_OPTIONS


def scope_exists(scope: Scope) -> bool:
    """Tell whether the scope exists: a program may name any id."""
    return scope == TENANT or bool(_select_rows(scope).exists())


def require_scope(scope: Scope) -> None:
    """Keep the scope from being deleted until the transaction ends.

    Raises Clash where it was deleted since it was chosen.
    """
    if scope != TENANT and not _select_rows(scope).select_for_update(no_key=True).exists():
        raise Clash(
            f"The {scope.level} was deleted a moment ago, so nothing was saved. Choose another "
            "scope.",
            field="scope",
        )


def _select_rows(scope: Scope) -> Any:
    """Return the query of the row of a scope, which the tenant does not have."""
    model = apps.get_model(
        "clusters" if scope.level is Level.CLUSTER else "projects", scope.level.value
    )
    return model.objects.there().filter(pk=scope.id)

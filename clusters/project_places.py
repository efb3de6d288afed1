"""Where a project may be: the clusters, departments and node pools that its form offers."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.db.models import Q, QuerySet

from clusters.models import Cluster, NodePool
from console.form_widgets import SuggestingInput
from projects.models import Department, Project, User
from projects.permissions import Entity, Permission, Verb

CREATE_PROJECTS = Permission(Entity.PROJECTS, Verb.CREATE)
DELETE_PROJECTS = Permission(Entity.PROJECTS, Verb.DELETE)
MAX_OPTIONS = 100
"""Departments and node pools that a form offers to choose from; of more, one types names."""
MAX_POOLS = 500
"""Node pools that can be chosen for a project where they are typed."""


def list_clusters_for_new_project(user: User) -> "QuerySet[Cluster]":
    """Return the clusters on which a user may make projects.

    Who may make projects in a department may use every cluster: departments are on all of them.
    """
    where = user.rights.permitted_scopes(CREATE_PROJECTS)
    clusters: QuerySet[Cluster] = Cluster.objects.in_use().defer("kubeconfig")
    return clusters if where.tenant or where.departments else clusters.filter(pk__in=where.clusters)


def list_departments_for_project(user: User, row: Project | None = None) -> "QuerySet[Department]":
    """Return the departments in which a user may make projects, and the project's own."""
    where = user.rights.permitted_scopes(CREATE_PROJECTS)
    departments: QuerySet[Department] = Department.objects.there().order_by("name")
    if where.tenant:
        return departments
    on_clusters = (
        Project.objects.there()
        .filter(cluster__in=where.clusters)
        .values_list("department_id", flat=True)
    )
    return departments.filter(
        pk__in=where.departments
        | set(on_clusters.distinct())
        | ({row.department_id} if row else set())
    )


def list_node_pools(clusters: Sequence[Cluster]) -> "QuerySet[NodePool]":
    """Return the node pools of these clusters, with the clusters' names."""
    pools: QuerySet[NodePool] = NodePool.objects.filter(cluster__in=clusters)
    rows = pools.select_related("cluster").order_by("cluster__name", "name", "pk")
    return rows.only("name", "cluster__name")


def find_node_pools(
    clusters: Sequence[Cluster], cluster: Cluster | None, texts: Sequence[str]
) -> tuple[Sequence[NodePool], Sequence[str]]:
    """Find node pools by their keys or names; return them, and the names that are of none.

    Names are those of `cluster`, where it is known. A name begins with a letter, and so is no key.
    """
    keys = [int(text) for text in texts if text.isdecimal() and len(text) < 10]
    names = [text for text in texts if not text.isdecimal()]
    of_names = Q(name__in=names) & (Q() if cluster is None else Q(cluster=cluster))
    pools = list(list_node_pools(clusters).filter(Q(pk__in=keys) | of_names)) if texts else []
    matches = {text for pool in pools for text in (str(pool.pk), pool.name)}
    return pools, [text for text in texts if text not in matches]


class PoolNamesInput(SuggestingInput):
    """Several names with commas between them."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> str:
        values = data.getlist(name) if hasattr(data, "getlist") else data.get(name) or ()
        return ", ".join(map(str, [values] if isinstance(values, str) else values))


class TypedPoolsField(forms.Field):
    """Node pools of which there are too many to list; cleans to what was typed, one by one."""

    def __init__(self, pools: "QuerySet[NodePool]", **more: Any) -> None:
        suggestions = list(dict.fromkeys(pool.name for pool in pools[:MAX_OPTIONS]))
        super().__init__(
            required=False,
            widget=PoolNamesInput(suggestions, placeholder="Names, with commas between them"),
            **more,
        )
        self._pools = pools

    def prepare_value(self, value: Any) -> Any:
        """Return what the control shows of a project's pools: their names."""
        if value is None or isinstance(value, str):
            return value
        return ", ".join(pool.name for pool in self._pools.filter(pk__in=value))

    def clean(self, value: Any) -> list[str]:
        texts = [text.strip() for text in str(value or "").replace("\x00", "").split(",")]
        chosen = list(dict.fromkeys(text for text in texts if text))
        if len(chosen) > MAX_POOLS:
            raise forms.ValidationError(
                f"Choose {MAX_POOLS} node pools at most. With none chosen a project has all."
            )
        return chosen

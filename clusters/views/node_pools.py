"""The table of node pools, the page of one pool with its nodes, and the forms to make, change and
delete one.
"""

from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from clusters import node_pools
from clusters.models import Cluster, NodePool
from clusters.node_capacity import load_node_rows, sum_node_rows
from clusters.node_pools import NewNodePoolForm, NodePoolForm
from clusters.pool_counts import PoolCounts
from console import edit_conflicts, tables
from console.errors import Clash
from console.http import redirect_with_message, render_page
from console.tables import Column, Filter, Table, build_time_column
from console.templatetags.muster import gpus
from projects import access, last_changes, quotas
from projects.http import Request
from projects.models import Project
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Permission, Verb
from projects.scopes import cluster_scope

MAX_NODES = 1000
"""Nodes that a pool's page shows."""


def build_table(counted: PoolCounts) -> Table:
    """Return the table of node pools."""
    return Table(
        "Node pools",
        (
            Column("name", "Node pool", lambda row: row.name, "node_pools/_cells.html", ("name",)),
            Column("description", "Description", lambda row: row.description, is_extra=True),
            Column(
                "cluster",
                "Cluster",
                lambda row: row.cluster.name,
                "node_pools/_cells.html",
                ("cluster__name",),
            ),
            Column(
                "label",
                "Label",
                _format_label,
                "node_pools/_cells.html",
                ("label_key", "label_value"),
            ),
            Column("nodes", "Nodes", counted.count_nodes, is_number=True),
            Column("gpus", "GPUs", lambda row: gpus(counted.count_gpus(row)), is_number=True),
            Column("projects", "Projects", lambda row: row.projects_count or 0, is_number=True),
            build_time_column("updated", "Last changed", "updated_at", is_sortable=True),
            build_time_column("created", "Created", "created_at", is_sortable=True, is_extra=True),
        ),
        search=("name__icontains", "label_key__icontains", "label_value__icontains"),
        search_words="Search by name or label",
        filters=(
            Filter(
                "cluster",
                "Cluster",
                _list_cluster_choices,
                lambda rows, value: rows.filter(cluster=value),
            ),
        ),
    )


def _format_label(row: NodePool) -> str:
    return f"{row.label_key}={row.label_value}"


def _list_cluster_choices(request: HttpRequest) -> list[tuple[str, str]]:
    user: Any = request.user
    return [
        (str(pk), name)
        for pk, name in Cluster.objects.visible_to(user)
        .order_by("name")
        .values_list("pk", "name")[:200]
    ]


@require_GET
def pools(request: Request) -> HttpResponse:
    """Render the node pools of the clusters that the user may see."""
    visible = NodePool.objects.visible_to(request.user)
    may_create = request.user.rights.may_anywhere(Permission(Entity.NODE_POOLS, Verb.CREATE))
    context = {
        "heading": "Node pools",
        "about": (
            "Nodes of a cluster that have a label, under a name that workloads and projects use."
        ),
        "new": reverse("node-pool-new") if may_create else "",
        "new_words": "New node pool",
        "new_dialog": True,
        "may_not": find_disabled_button(
            request.user,
            Verb.CREATE,
            Entity.NODE_POOLS,
            words="New node pool",
            icon="plus",
            anywhere=True,
        ),
        "empty": "node_pools/_none.html",
    }
    through = (
        Project.node_pools.through.objects.filter(nodepool=OuterRef("pk"), project__deleted_at=None)
        .order_by()
        .values("nodepool")
    )
    counts = Subquery(through.values(found=Count("project")))
    rows = (
        visible.select_related("cluster")
        .defer("cluster__kubeconfig", "cluster__permissions")
        .annotate(projects_count=counts)
    )
    return tables.render_table(
        request,
        rows,
        build_table(PoolCounts(visible)),
        "parts/list.html",
        context,
        file="node-pools",
    )


@require_GET
def pool(request: Request, pk: int) -> HttpResponse:
    """Render one pool: its label, its nodes with what is free on them, and its projects."""
    found = _get_visible_pool(request, pk)
    scope = cluster_scope(found.cluster_id)
    nodes = [
        node for node in found.cluster.nodes.order_by("name") if found.matches_labels(node.labels)
    ]
    rows = load_node_rows(nodes[:MAX_NODES], found.cluster_id)
    projects = Project.objects.visible_to(request.user).filter(node_pools=found).order_by("name")
    context = {
        "pool": found,
        "cluster": found.cluster,
        "rows": rows,
        "more": len(nodes) > MAX_NODES,
        "most": MAX_NODES,
        "totals": sum_node_rows(rows),
        "projects": list(projects.only("name")[:100]),
        "may_edit": access.is_permitted(request.user, Verb.EDIT, Entity.NODE_POOLS, scope),
        "may_delete": access.is_permitted(request.user, Verb.DELETE, Entity.NODE_POOLS, scope),
    }
    return render(request, "node_pools/pool.html", context)


@require_http_methods(["GET", "POST"])
def pool_new(request: Request) -> HttpResponse:
    """Make a node pool, for users who may make one on some cluster."""
    access.require_anywhere(request.user, Verb.CREATE, Entity.NODE_POOLS)
    form = NewNodePoolForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        try:
            pool = node_pools.create(form, request.user)
            return redirect_with_message(
                request, reverse("node-pool", args=[pool.pk]), f"Node pool {pool.name} is created."
            )
        except Clash as refusal:
            form.add_error(refusal.field, refusal.text)
    page_context = {
        "url": reverse("node-pool-new"),
        "title": "New node pool",
        "yes": "Create node pool",
    }
    return _render_form(
        request, form, page_context | {"back": reverse("node-pools"), "back_words": "Node pools"}
    )


@require_http_methods(["GET", "POST"])
def pool_edit(request: Request, pk: int) -> HttpResponse:
    """Change the label or description of a pool. Running pods stay where they are."""
    found = _get_visible_pool(request, pk)
    access.require(request.user, Verb.EDIT, Entity.NODE_POOLS, cluster_scope(found.cluster_id))
    values = NodePoolForm.values(found)
    form = NodePoolForm(request.POST or None, initial=values, row=found)
    page_context: dict[str, Any] = {
        "url": reverse("node-pool-edit", args=[pk]),
        "title": f"Edit {found.name}",
        "yes": "Save",
    }
    page_context |= {"back": reverse("node-pool", args=[pk]), "back_words": found.name}
    page_context |= edit_conflicts.build_conflict_context(
        found.version, quotas.to_form_data(values)
    )
    if request.method == "POST":
        # What was started from stays with the form until it is saved, however often it has to be
        # mended.
        page_context |= {"started_from": request.POST.get(edit_conflicts.START_FIELD, "")}
        if form.is_valid():
            try:
                node_pools.change(
                    found, form, request.user, edit_conflicts.parse_started_version(request.POST)
                )
                return redirect_with_message(
                    request, reverse("node-pool", args=[pk]), f"Node pool {found.name} is changed."
                )
            except edit_conflicts.ChangedMeanwhile:
                now = _get_visible_pool(request, pk)
                by, at = last_changes.find_last_change("node-pool", pk)
                conflict = edit_conflicts.build_conflict_context(
                    now.version,
                    quotas.to_form_data(NodePoolForm.values(now)),
                    sent=request.POST,
                    form=form,
                    changed_by=by,
                    changed_at=at,
                )
                return _render_form(request, form, page_context | conflict, status=409)
    return _render_form(request, form, page_context)


@require_http_methods(["GET", "POST"])
def pool_delete(request: Request, pk: int) -> HttpResponse:
    """Ask before a node pool is deleted, with the hindrances, and delete it."""
    found = _get_visible_pool(request, pk)
    access.require(request.user, Verb.DELETE, Entity.NODE_POOLS, cluster_scope(found.cluster_id))
    if request.method == "POST":
        node_pools.delete(found, request.user)
        return redirect_with_message(
            request, reverse("node-pools"), f"Node pool {found.name} is deleted."
        )
    context = {"pool": found, "hindered": node_pools.describe_hindrance(found, request.user)}
    return render_page(request, "node_pools/delete.html", "node_pools/_delete.html", context)


def _get_visible_pool(request: Request, pk: int) -> NodePool:
    """Return the pool, if the user may see it. Raises Http404."""
    rows = (
        NodePool.objects.visible_to(request.user)
        .select_related("cluster")
        .defer("cluster__kubeconfig", "cluster__permissions")
    )
    found: NodePool = get_object_or_404(rows, pk=pk)
    return found


def _render_form(
    request: Request, form: NodePoolForm, page_context: dict[str, Any], status: int = 0
) -> HttpResponse:
    return render_page(
        request,
        "parts/form.html",
        "parts/_form.html",
        {"form": form} | page_context,
        status=status or (422 if form.errors else 200),
    )

"""The table of node pools, the page of one pool with its nodes, and the forms to make, change and
delete one.
"""

from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_http_methods

from clusters import node_pools
from clusters.models import Cluster, NodePool
from clusters.node_capacity import load_node_rows, sum_node_rows
from clusters.node_pools import NewNodePoolForm, NodePoolForm
from clusters.pool_counts import PoolCounts
from console import tables
from console.errors import Clash
from console.http import build_empty_state, redirect_with_message, render_form
from console.questions import Question, render_question
from console.table_filters import Filter
from console.tables import Column, Table, build_time_column
from console.templatetags.muster import gpus, render_link
from projects import access
from projects.http import Request
from projects.models import Project
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Permission, Verb
from projects.row_editing import edit_row
from projects.scopes import cluster_scope

MAX_NODES = 1000
"""Nodes that a pool's page shows."""


def build_table(counted: PoolCounts) -> Table:
    """Return the table of node pools."""
    return Table(
        "Node pools",
        (
            Column(
                "name",
                "Node pool",
                lambda row: row.name,
                order=("name",),
                render=lambda row: render_link("node-pool", row.pk, row.name),
            ),
            Column("description", "Description", lambda row: row.description, is_extra=True),
            Column(
                "cluster",
                "Cluster",
                lambda row: row.cluster.name,
                order=("cluster__name",),
                render=lambda row: render_link("cluster", row.cluster_id, row.cluster.name),
            ),
            Column(
                "label",
                "Label",
                _format_label,
                order=("label_key", "label_value"),
                render=lambda row: format_html(
                    '<span class="mu-mono mu-break">{}</span>', _format_label(row)
                ),
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
def pools(request: Request) -> HttpResponseBase:
    """Render the node pools of the clusters that the user may see."""
    visible = NodePool.objects.visible_to(request.user)
    may_create = request.user.rights.may_anywhere(Permission(Entity.NODE_POOLS, Verb.CREATE))
    new = reverse("node-pool-new")
    context = {
        "heading": "Node pools",
        "about": (
            "Nodes of a cluster that have a label, under a name that workloads and projects use."
        ),
        "new": new if may_create else "",
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
    }
    if may_create:
        context |= build_empty_state(
            "boxes",
            "No node pool yet",
            "A node pool is the nodes with a label, under a name: workloads ask for it, and "
            "projects are kept to it.",
            action="New node pool",
            url=new,
            in_dialog=True,
        )
    else:
        context |= build_empty_state(
            "boxes",
            "There is no node pool",
            "Workloads may use every node of their cluster, as far as their project goes.",
        )
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
    node_pool = _get_visible_pool(request, pk)
    scope = cluster_scope(node_pool.cluster_id)
    nodes = [
        node
        for node in node_pool.cluster.nodes.order_by("name")
        if node_pool.matches_labels(node.labels)
    ]
    rows = load_node_rows(nodes[:MAX_NODES], node_pool.cluster_id)
    projects = (
        Project.objects.visible_to(request.user).filter(node_pools=node_pool).order_by("name")
    )
    context = {
        "pool": node_pool,
        "cluster": node_pool.cluster,
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
    context = {
        "title": "New node pool",
        "yes": "Create node pool",
        "back": reverse("node-pools"),
        "back_words": "Node pools",
    }
    return render_form(request, form, context)


@require_http_methods(["GET", "POST"])
def pool_edit(request: Request, pk: int) -> HttpResponse:
    """Change the label or description of a pool. Running pods stay where they are."""
    node_pool = _get_visible_pool(request, pk)
    access.require(request.user, Verb.EDIT, Entity.NODE_POOLS, cluster_scope(node_pool.cluster_id))
    form = NodePoolForm(request.POST or None, initial=NodePoolForm.values(node_pool), row=node_pool)

    def save(version: int) -> str:
        node_pools.change(node_pool, form, request.user, version)
        return f"Node pool {node_pool.name} is changed."

    return edit_row(
        request,
        form,
        node_pool,
        entity="node-pool",
        back=reverse("node-pool", args=[pk]),
        values=NodePoolForm.values,
        reload=lambda: _get_visible_pool(request, pk),
        save=save,
    )


@require_http_methods(["GET", "POST"])
def pool_delete(request: Request, pk: int) -> HttpResponse:
    """Ask before a node pool is deleted, with the hindrances, and delete it."""
    node_pool = _get_visible_pool(request, pk)
    access.require(
        request.user, Verb.DELETE, Entity.NODE_POOLS, cluster_scope(node_pool.cluster_id)
    )
    if request.method == "POST":
        node_pools.delete(node_pool, request.user)
        return redirect_with_message(
            request, reverse("node-pools"), f"Node pool {node_pool.name} is deleted."
        )
    question = Question(
        title=f"Delete {node_pool.name}",
        button="Delete node pool",
        crumbs=[
            (reverse("node-pools"), "Node pools"),
            (reverse("node-pool", args=[pk]), node_pool.name),
        ],
        effects=[
            "Nobody can ask for the pool any more. Its nodes stay as they are, with their label, "
            "and so does what runs on them."
        ],
        blocked_text=node_pools.describe_hindrance(node_pool, request.user),
    )
    return render_question(request, question)


def _get_visible_pool(request: Request, pk: int) -> NodePool:
    """Return the pool, if the user may see it. Raises Http404."""
    rows = (
        NodePool.objects.visible_to(request.user)
        .select_related("cluster")
        .defer("cluster__kubeconfig", "cluster__permissions")
    )
    node_pool: NodePool = get_object_or_404(rows, pk=pk)
    return node_pool

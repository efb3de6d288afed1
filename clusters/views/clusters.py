"""The list of clusters, and the page of one cluster with its nodes and capabilities, as last seen.
No page asks a cluster anything.
"""

import uuid
from typing import Any

from django.db.models import Count, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_GET

from clusters import cluster_twins, permission_review, seams
from clusters.models import Cluster
from clusters.node_capacity import load_node_rows, sum_node_rows
from clusters.permission_review import PermissionReview
from clusters.prerequisites import list_prerequisites
from projects.http import Request

MAX_CLUSTERS = 200
"""Clusters that the list shows."""
MAX_NODES = 1000
"""Nodes that a cluster's page shows."""
CHECK_WAIT_SECONDS = 90.0
"""Seconds for which a page waits for a requested check."""


@require_GET
def clusters(request: Request) -> HttpResponse:
    """Render the clusters that the user may see."""
    visible = Cluster.objects.visible_to(request.user).defer("kubeconfig", "permissions")
    rows = list(
        visible.annotate(nodes_count=Count("nodes"), gpus=Sum("nodes__gpus"))[:MAX_CLUSTERS]
    )
    return render(request, "clusters/clusters.html", {"clusters": rows})


@require_GET
def cluster(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Render one cluster: its state, what it can do, and its nodes with what is free."""
    found = get_visible_cluster(request, pk)
    nodes = list(found.nodes.all()[: MAX_NODES + 1])
    rows = load_node_rows(nodes[:MAX_NODES], pk)
    context = {
        "cluster": found,
        "rows": rows,
        "more": len(nodes) > MAX_NODES,
        "most": MAX_NODES,
        "totals": sum_node_rows(rows),
        "twin_warning": cluster_twins.describe_twins(
            cluster_twins.find_twins(found, Cluster.objects.visible_to(request.user))
        ),
    }
    return render(
        request,
        "clusters/cluster.html",
        context | build_checks_context(found, [node.gpus > 0 for node in nodes]),
    )


@require_GET
def checks(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Render what a cluster can do and what we may do there: the part of its page that polls while
    a check is running.
    """
    cluster = get_visible_cluster(request, pk)
    gpus = [each > 0 for each in cluster.nodes.values_list("gpus", flat=True)[:MAX_NODES]]
    return render(
        request, "clusters/_checks.html", {"cluster": cluster} | build_checks_context(cluster, gpus)
    )


def get_visible_cluster(request: Request, pk: uuid.UUID) -> Cluster:
    """Return the cluster, without its credentials, if the user may see it. Raises Http404."""
    cluster: Cluster = get_object_or_404(
        Cluster.objects.visible_to(request.user).defer("kubeconfig"), pk=pk
    )
    return cluster


def build_checks_context(cluster: Cluster, gpus: list[bool]) -> dict[str, Any]:
    """Return the context of templates/clusters/_checks.html beside the cluster. `gpus` says of each
    node whether it offers devices.
    """
    can, review = cluster.can, PermissionReview.from_json(cluster.permissions)
    requested_at = cluster.check_requested_at
    return {
        "known": can.known,
        "frameworks": seams.FRAMEWORKS.get().list_framework_offers(can),
        "prerequisites": list_prerequisites(can, cluster.parsed_findings, gpus),
        "review": review,
        "grant": "\n".join(permission_review.build_grant_commands(review)),
        "is_waiting": requested_at is not None
        and (timezone.now() - requested_at).total_seconds() < CHECK_WAIT_SECONDS,
        "is_late": requested_at is not None
        and (timezone.now() - requested_at).total_seconds() >= CHECK_WAIT_SECONDS,
    }


@require_GET
def single_trust(request: Request) -> HttpResponse:
    """Render what it means that workloads run on this machine."""
    return render(request, "clusters/single_trust.html")

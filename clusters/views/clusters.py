"""Clusters as last seen: the list, and one cluster with its nodes and what it can do. Nothing is
asked of a cluster for a page.
"""

import uuid
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.module_loading import import_string
from django.views.decorators.http import require_GET

from clusters import reviewing
from clusters.models import Cluster
from clusters.prerequisites import prerequisites
from clusters.reviewing import Review
from clusters.rooms import node_rows, totals
from projects.http import Request

MOST = 200
"""Clusters that the list shows."""
MOST_NODES = 1000
"""Nodes that a cluster's page shows."""
PATIENCE = 90.0
"""Seconds for which a page waits for a check that was asked for."""


@require_GET
def clusters(request: Request) -> HttpResponse:
    """The clusters of one's projects."""
    visible = Cluster.objects.visible_to(request.user).defer("kubeconfig", "permissions")
    found = list(visible.annotate(nodes_count=Count("nodes"), gpus=Sum("nodes__gpus"))[:MOST])
    return render(request, "clusters/clusters.html", {"clusters": found})


@require_GET
def cluster(request: Request, pk: uuid.UUID) -> HttpResponse:
    """One cluster: its id, its state, what it can do, and its nodes with what is free."""
    found = seen(request, pk)
    nodes = list(found.nodes.all()[: MOST_NODES + 1])
    rows = node_rows(nodes[:MOST_NODES], pk)
    context = {
        "cluster": found,
        "rows": rows,
        "more": len(nodes) > MOST_NODES,
        "most": MOST_NODES,
        "totals": totals(rows),
    }
    return render(
        request,
        "clusters/cluster.html",
        context | checks_of(found, [node.gpus > 0 for node in nodes]),
    )


@require_GET
def checks(request: Request, pk: uuid.UUID) -> HttpResponse:
    """What a cluster can do and lets us do, as the part of its page that is asked for again while a
    check is on its way.
    """
    found = seen(request, pk)
    gpus = [each > 0 for each in found.nodes.values_list("gpus", flat=True)[:MOST_NODES]]
    return render(request, "clusters/_checks.html", {"cluster": found} | checks_of(found, gpus))


def seen(request: Request, pk: uuid.UUID) -> Cluster:
    """The cluster, without its credentials, if the reader may see it. Raises Http404."""
    found: Cluster = get_object_or_404(
        Cluster.objects.visible_to(request.user).defer("kubeconfig"), pk=pk
    )
    return found


def checks_of(cluster: Cluster, gpus: list[bool]) -> dict[str, Any]:
    """What templates/clusters/_checks.html needs beside the cluster. `gpus` says of each node
    whether it offers devices.
    """
    can, review = cluster.can, Review.from_json(cluster.permissions)
    asked = cluster.check_asked_at
    return {
        "known": can.known,
        "frameworks": import_string(settings.FRAMEWORKS)(can),
        "prerequisites": prerequisites(can, cluster.found, gpus),
        "review": review,
        "grant": "\n".join(reviewing.commands(review)),
        "is_waiting": asked is not None and (timezone.now() - asked).total_seconds() < PATIENCE,
        "is_late": asked is not None and (timezone.now() - asked).total_seconds() >= PATIENCE,
    }


@require_GET
def single_trust(request: Request) -> HttpResponse:
    """What it means that workloads run on this machine."""
    return render(request, "clusters/single_trust.html")

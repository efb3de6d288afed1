"""The page of one node, as last seen: its conditions, its system, and its pods."""

import uuid
from datetime import UTC, datetime

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET

from clusters import seams
from clusters.models import Node
from clusters.node_capacity import load_node_rows, load_pool_lookup
from clusters.views.clusters import get_visible_cluster
from projects.http import Request


@require_GET
def node(request: Request, pk: uuid.UUID, name: str) -> HttpResponse:
    """Render one node and its pods.

    Pods that the user may not see are only counted.
    """
    cluster = get_visible_cluster(request, pk)
    found = get_object_or_404(Node, cluster=cluster, name=name)
    [row] = load_node_rows([found], pk)
    pods = seams.NODE_PODS.get().load_node_pods(pk, name, request.user)
    context = {
        "cluster": cluster,
        "row": row,
        "node": found,
        "pods": pods,
        "pool": ", ".join(load_pool_lookup(pk)(found)),
        "conditions": [
            each | {"at": _parse_moment(each.get("since", ""))} for each in found.conditions
        ],
        "labels": sorted(found.labels.items()),
    }
    return render(request, "clusters/node.html", context)


def _parse_moment(text: str) -> datetime | None:
    """Parse a moment; None for a text that is none, or one that does not exist in every
    time zone.
    """
    try:
        moment = parse_datetime(text)
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None

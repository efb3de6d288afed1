"""Clusters and their nodes, as last seen."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from django.conf import settings
from django.db.models import Count, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.module_loading import import_string

from clusters.models import Cluster, Node
from projects.http import Request

MOST = 200
"""Clusters that the list shows."""
MOST_NODES = 1000
"""Nodes that a cluster's page shows."""


class Amounts(Protocol):
    """GPUs in devices, CPU in cores, memory in bytes."""

    @property
    def gpus(self) -> Decimal: ...
    @property
    def cpu(self) -> Decimal: ...
    @property
    def memory(self) -> Decimal: ...


class Room(Protocol):
    """What a node has free; our pods, which a floor above knows, are counted."""

    @property
    def name(self) -> str: ...
    @property
    def free(self) -> Amounts: ...


@dataclass(frozen=True, slots=True)
class Row:
    """A node with what is allocated of it."""

    node: Node
    free: Decimal
    cpu_free: Decimal
    memory_free: int

    @property
    def allocated(self) -> Decimal:
        return self.node.gpus - self.free

    @property
    def takes_pods(self) -> bool:
        return self.node.is_ready and self.node.is_schedulable


def clusters(request: Request) -> HttpResponse:
    """The clusters of one's projects."""
    found = list(
        Cluster.objects.visible_to(request.user).defer("kubeconfig").annotate(nodes_count=Count("nodes"), gpus=Sum("nodes__gpus"))[:MOST]
    )
    return render(request, "clusters/clusters.html", {"clusters": found})


def cluster(request: Request, pk: uuid.UUID) -> HttpResponse:
    """One cluster: its id, its state, and its nodes with what is free."""
    found = get_object_or_404(Cluster.objects.visible_to(request.user).defer("kubeconfig"), pk=pk)
    nodes = list(found.nodes.all()[: MOST_NODES + 1])
    rows = list(_rows(nodes[:MOST_NODES], pk))
    total, allocated = sum((row.node.gpus for row in rows), Decimal(0)), sum((row.allocated for row in rows), Decimal(0))
    context = {
        "cluster": found,
        "rows": rows,
        "more": len(nodes) > MOST_NODES,
        "most": MOST_NODES,
        "total": total,
        "allocated": allocated,
        "free": sum((row.free for row in rows if row.takes_pods), Decimal(0)),
        "closed": sum((row.free for row in rows if not row.takes_pods), Decimal(0)),
    }
    return render(request, "clusters/cluster.html", context)


def single_trust(request: Request) -> HttpResponse:
    """What it means that workloads run on this machine."""
    return render(request, "clusters/single_trust.html")


def _rows(nodes: Iterable[Node], cluster_id: uuid.UUID) -> Iterable[Row]:
    rooms: Callable[[uuid.UUID], Iterable[Room]] = import_string(settings.ROOMS)
    free = {room.name: room.free for room in rooms(cluster_id)}
    for node in nodes:
        there = free.get(node.name)
        if there is None:
            yield Row(node, node.gpus, node.cpu, node.memory)
        else:
            yield Row(node, there.gpus, there.cpu, int(there.memory))

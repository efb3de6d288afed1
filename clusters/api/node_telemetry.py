"""`GET /api/v1/nodes/telemetry`: what the nodes have now, and how much of it is allocated."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from operator import itemgetter
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.models import Cluster, Node
from clusters.node_capacity import NodeRow, load_node_rows, load_pool_lookup
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.telemetry_answers import (
    MAX_VALUES,
    GroupKey,
    build_parameters,
    build_schema,
    parse_cluster_id,
    parse_groups,
    parse_type,
    serialize_telemetry,
)
from projects.models import User
from projects.shares import to_json_number

NO_POOL = "default"
"""The pool of nodes that are in none."""
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class PooledNode:
    """A node with what is free on it, and the names of its pools."""

    row: NodeRow
    pools: Sequence[str]


def _count_if(holds: Callable[[NodeRow], bool]) -> Callable[[NodeRow], int]:
    return lambda row: int(holds(row))


_AMOUNT_GETTERS: Mapping[str, Callable[[NodeRow], int | Decimal]] = {
    "READY_GPU_NODES": _count_if(lambda row: row.node.is_ready and row.node.gpus > 0),
    "READY_GPUS": lambda row: row.node.gpus if row.node.is_ready else 0,
    "TOTAL_GPU_NODES": _count_if(lambda row: row.node.gpus > 0),
    "TOTAL_GPUS": lambda row: row.node.gpus,
    "FREE_GPUS": lambda row: row.free if row.takes_pods else 0,
    "ALLOCATED_GPUS": lambda row: row.allocated,
    "FULLY_FREE_GPU_NODES": _count_if(
        lambda row: row.takes_pods and row.node.gpus > 0 and row.free == row.node.gpus
    ),
    "TOTAL_GPU_MEMORY_BYTES": lambda row: row.node.gpus * row.node.gpu_memory * MIB,
    "TOTAL_CPU_CORES": lambda row: row.node.cpu,
    "ALLOCATED_CPU_CORES": lambda row: row.cpu_allocated,
    "TOTAL_CPU_MEMORY_BYTES": lambda row: row.node.memory,
    "ALLOCATED_CPU_MEMORY_BYTES": lambda row: row.memory_allocated,
}
"""What is known without a metrics source, which the use of GPUs and CPUs would need."""
_GROUPS: Mapping[str, Callable[[PooledNode], Sequence[GroupKey]]] = {
    "ClusterId": lambda each: [(str(each.row.node.cluster_id), each.row.node.cluster.name)],
    "Nodepool": lambda each: [(pool, "") for pool in each.pools],
    # With its cluster: another one may have a node of the same name.
    "Node": lambda each: [
        (each.row.node.name, f"{each.row.node.cluster.name}/{each.row.node.name}")
    ],
}


class NodesTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_nodes_telemetry",
        description=(
            "What the nodes of the clusters that you may see have now, as last seen. A node of "
            f"several pools counts in each; those of none are the pool “{NO_POOL}”. The name of a "
            "group Node is cluster/node: two clusters may have nodes of the same name. At most "
            f"{MAX_VALUES:,} values, the largest first."
        ),
        parameters=[
            *build_parameters(
                _AMOUNT_GETTERS,
                _GROUPS,
                "What is asked for. FREE_GPUS are those of nodes that take pods.",
            ),
            schemas.query_parameter("clusterId", schemas.ID, "Of the nodes of this cluster."),
            schemas.query_parameter("nodepoolName", schemas.TEXT, "Of the nodes of this pool."),
        ],
        responses={
            200: schemas.json_response(
                build_schema(_AMOUNT_GETTERS, _GROUPS, "A number: nodes, devices, cores or bytes.")
            )
        }
        | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        kind, groups = parse_type(query, _AMOUNT_GETTERS), parse_groups(query, _GROUPS)
        nodes = _load_nodes(self.user, parse_cluster_id(query))
        if pool := query.text("nodepoolName"):
            nodes = [PooledNode(each.row, (pool,)) for each in nodes if pool in each.pools]
        amounts: dict[tuple[GroupKey, ...], Decimal] = defaultdict(Decimal)
        for each in nodes:
            for keys in product(*(_GROUPS[group](each) for group in groups)):
                amounts[keys] += _AMOUNT_GETTERS[kind](each.row)
        largest = sorted(amounts.items(), key=itemgetter(1), reverse=True)[:MAX_VALUES]
        return Response(
            serialize_telemetry(
                kind, groups, {keys: to_json_number(amount) for keys, amount in largest}
            )
        )


def _load_nodes(user: User, cluster: UUID | None) -> list[PooledNode]:
    """Return the nodes that the user may see; a few queries for each cluster."""
    rows = Node.objects.filter(cluster__in=Cluster.objects.visible_to(user))
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    rows = rows.select_related("cluster").defer(
        "cluster__kubeconfig",
        "cluster__permissions",
        "cluster__capabilities",
        "conditions",
        "taints",
    )
    by_cluster: dict[UUID, list[Node]] = defaultdict(list)
    for node in rows.order_by("cluster__name", "name", "pk"):
        by_cluster[node.cluster_id].append(node)
    pooled_nodes = []
    for cluster_id, nodes in by_cluster.items():
        find_pools = load_pool_lookup(cluster_id)
        pooled_nodes += [
            PooledNode(row, find_pools(row.node) or (NO_POOL,))
            for row in load_node_rows(nodes, cluster_id)
        ]
    return pooled_nodes

"""`GET /api/v1/nodes`: the nodes of the clusters that the user may see, with what is free
on them.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.api import cluster_schemas
from clusters.models import Cluster, Node
from clusters.node_capacity import NodeRow, load_node_rows, load_pool_lookup
from console.moments import format_moment
from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery, build_list_body

FIELDS = {
    "name": filtering.text_field("name"),
    "clusterUuid": filtering.uuid_field("cluster_id"),
    "clusterName": filtering.text_field("cluster__name"),
    "gpuType": filtering.text_field("gpu_type"),
    "gpuCount": filtering.number_field("gpus"),
    "gpuMemoryMib": filtering.whole_number_field("gpu_memory"),
    "isReady": filtering.flag_field("is_ready"),
    "isSchedulable": filtering.flag_field("is_schedulable"),
    "statusReason": filtering.text_field("trouble"),
    "roles": filtering.text_field("roles"),
    "cpuTotal": filtering.number_field("cpu"),
    "memoryBytesTotal": filtering.size_field("memory"),
    "updatedAt": filtering.moment_field("seen_at"),
}


class NodesView(ApiView):
    @extend_schema(
        operation_id="list_nodes",
        description="The nodes of the clusters that you may see, as last seen.",
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.list_schema("nodes", cluster_schemas.NODE))}
        | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        nodes = Node.objects.filter(
            cluster__in=Cluster.objects.visible_to(self.user)
        ).select_related("cluster")
        nodes = nodes.defer(
            "cluster__kubeconfig", "cluster__permissions", "cluster__capabilities", "conditions"
        )
        nodes = filtering.filter_and_search(nodes, query, FIELDS)
        page_nodes, following = query.page(
            filtering.order_rows(nodes, query, FIELDS, ("cluster__name", "name", "pk"))
        )
        by_cluster: dict[UUID, list[Node]] = defaultdict(list)
        for node in page_nodes:
            by_cluster[node.cluster_id].append(node)
        pools = {cluster_id: load_pool_lookup(cluster_id) for cluster_id in by_cluster}
        rows = {
            row.node.pk: row
            for cluster_id, cluster_nodes in by_cluster.items()
            for row in load_node_rows(cluster_nodes, cluster_id)
        }
        return Response(
            build_list_body(
                "nodes",
                [
                    _serialize_node(rows[node.pk], pools[node.cluster_id](node))
                    for node in page_nodes
                ],
                following,
            )
        )


class NodesCountView(ApiView):
    @extend_schema(
        operation_id="count_nodes",
        description="How many nodes you may see, of what the list's filterBy and search ask for.",
        parameters=schemas.filter_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.COUNT)} | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        nodes = Node.objects.filter(cluster__in=Cluster.objects.visible_to(self.user))
        return Response(
            {"count": filtering.filter_and_search(nodes, ListQuery(request), FIELDS).count()}
        )


def _serialize_node(row: NodeRow, pools: Sequence[str]) -> dict[str, Any]:
    node = row.node
    if not node.is_ready:
        status = "NotReady"
    elif node.is_schedulable:
        status = "Ready"
    else:
        status = "SchedulingDisabled"
    return {
        "id": str(node.pk),
        "name": node.name,
        "clusterUuid": str(node.cluster_id),
        "clusterName": node.cluster.name,
        "status": status,
        "statusReason": node.trouble,
        "roles": [role for role in node.roles.split(", ") if role],
        "nodePool": ", ".join(pools),
        "gpuInfo": {
            "gpuType": node.gpu_type,
            "gpuCount": float(node.gpus),
            "gpuMemoryMib": node.gpu_memory,
            "allocated": float(row.allocated),
            "free": float(row.free),
            "unhealthy": float(node.gpus_unhealthy),
        },
        "cpu": {"total": float(node.cpu), "allocated": float(row.cpu_allocated)},
        "memoryBytes": {"total": node.memory, "allocated": row.memory_allocated},
        "pods": row.pods,
        "taints": node.taints,
        "updatedAt": format_moment(node.seen_at),
    }

"""`/api/v1/node-pools`: the node pools of the clusters that the user may see, and to make, change
and delete them, as on the pages.
"""

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import node_pools
from clusters.models import NodePool
from clusters.node_pools import NewNodePoolForm, NodePoolForm
from clusters.pool_counts import PoolCounts
from console.errors import Invalid
from projects import access
from projects.api import filtering, quotas, schemas
from projects.api.base import ApiView, ListQuery
from projects.api.bodies import TENANT_ID
from projects.api.schemas import (
    ID,
    INTEGER,
    MOMENT,
    NUMBER,
    TEXT,
    describe_schema,
    enum_schema,
    object_schema,
)
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import cluster_scope

FIELDS = {
    "name": filtering.text_field("name"),
    "clusterId": filtering.uuid_field("cluster_id"),
    "labelKey": filtering.text_field("label_key"),
    "labelValue": filtering.text_field("label_value"),
}
PLACES = {"cluster": "clusterId", "label_key": "labelKey", "label_value": "labelValue"}
SETTABLE_FIELDS = ("name", "clusterId", "description", "labelKey", "labelValue", "version")
_ACCEPTED_FIELDS = (*SETTABLE_FIELDS, "nodes", "gpus", "clusterName", "tenantId", "isDefault")
_FIXED: Mapping[str, quotas.FixedValue] = {
    "overProvisioningRatio": (
        (1,),
        "Muster gives a device to as many as it has room for. Leave it out.",
    ),
    "placementStrategy": (
        ({}, {"gpu": "bin-pack", "cpu": "bin-pack"}),
        "the scheduler's own settings say how it places. Leave it out.",
    ),
}
CREATE_SCHEMA = object_schema(
    ["name", "clusterId", "labelKey", "labelValue"],
    name=describe_schema(TEXT, "It stays: workloads name it."),
    clusterId=ID,
    description=TEXT,
    labelKey=TEXT,
    labelValue=TEXT,
)
CHANGE_SCHEMA = object_schema(
    description=TEXT, labelKey=TEXT, labelValue=TEXT, version=quotas.VERSION
)
POOL_SCHEMA = object_schema(
    ["id", "name", "clusterId"],
    id=TEXT,
    name=TEXT,
    tenantId=INTEGER,
    clusterId=ID,
    clusterName=TEXT,
    isDefault=schemas.BOOLEAN,
    description=TEXT,
    labelKey=TEXT,
    labelValue=TEXT,
    nodes=INTEGER,
    gpus=NUMBER,
    status=object_schema(phase=enum_schema("Ready", "Empty")),
    createdAt=MOMENT,
    updatedAt=MOMENT,
    version=INTEGER,
)


class NodePoolsView(ApiView):
    @extend_schema(
        operation_id="list_node_pools",
        description="The node pools of the clusters that you may see.",
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.list_schema("nodepools", POOL_SCHEMA))}
        | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        visible = NodePool.objects.visible_to(self.user)
        rows = filtering.filter_and_search(
            visible.select_related("cluster").defer("cluster__kubeconfig"), query, FIELDS
        )
        counted = PoolCounts(visible)
        return Response(
            filtering.serialize_page(
                rows,
                query,
                FIELDS,
                ("name", "pk"),
                name="nodepools",
                serialize=lambda each: serialize_node_pool(each, counted),
            )
        )

    @extend_schema(
        operation_id="create_node_pool",
        description="A new node pool: the nodes of a cluster with this value of this label.",
        request=schemas.json_content(CREATE_SCHEMA),
        responses={201: schemas.json_response(POOL_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.NODE_POOLS)
        form = NewNodePoolForm(_parse_body(request.data), user=self.user)
        quotas.require_valid(form, PLACES)
        return Response(
            _serialize_pool(self.user, node_pools.create(form, self.user).pk), status=201
        )


class NodePoolsCountView(ApiView):
    @extend_schema(
        operation_id="count_node_pools",
        description=(
            "How many node pools you may see, of what the list's filterBy and search ask for."
        ),
        parameters=schemas.filter_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.COUNT)} | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        return Response(
            {
                "count": filtering.filter_and_search(
                    NodePool.objects.visible_to(self.user), ListQuery(request), FIELDS
                ).count()
            }
        )


class NodePoolView(ApiView):
    @extend_schema(
        operation_id="get_node_pool",
        description="One node pool.",
        responses={200: schemas.json_response(POOL_SCHEMA)} | schemas.error_responses(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(_serialize_pool(self.user, pk))

    @extend_schema(
        operation_id="change_node_pool",
        description=(
            "Another description or label; what is not given stays. What is placed already stays "
            "where it is."
        ),
        request=schemas.json_content(CHANGE_SCHEMA),
        responses={200: schemas.json_response(POOL_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: int) -> Response:
        return self._apply_change(request, pk, whole=False)

    @extend_schema(
        operation_id="replace_node_pool",
        description=(
            "Another label and description; a description that is not given is empty. Name and "
            "cluster stay."
        ),
        request=schemas.json_content(CHANGE_SCHEMA),
        responses={200: schemas.json_response(POOL_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def put(self, request: Request, pk: int) -> Response:
        return self._apply_change(request, pk, whole=True)

    def _apply_change(self, request: Request, pk: int, *, whole: bool) -> Response:
        found = _get_node_pool(self.user, pk)
        access.require(self.user, Verb.EDIT, Entity.NODE_POOLS, cluster_scope(found.cluster_id))
        body = quotas.parse_object(request.data, _ACCEPTED_FIELDS, _FIXED)
        typed = _parse_body(body)
        for name, now in (("name", found.name), ("cluster", str(found.cluster_id))):
            if typed.get(name, now) != now:
                place = PLACES.get(name, name)
                raise Invalid(
                    [
                        (
                            place,
                            (
                                f"{place} stays: workloads and projects name the pool. Make "
                                "another one."
                            ),
                        )
                    ]
                )
        current = NodePoolForm.values(found) | ({"description": ""} if whole else {})
        form = NodePoolForm(current | typed, row=found)
        quotas.require_valid(form, PLACES)
        node_pools.change(found, form, self.user, quotas.parse_version(body))
        return Response(_serialize_pool(self.user, pk))

    @extend_schema(
        operation_id="delete_node_pool",
        description=(
            "Delete a node pool that no project allows and no workload asks for. Its nodes stay as "
            "they are."
        ),
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: int) -> Response:
        found = _get_node_pool(self.user, pk)
        node_pools.delete(found, self.user)
        return Response({"code": 200, "message": f"Node pool {found.name} is deleted."})


def serialize_node_pool(pool: NodePool, counted: PoolCounts) -> dict[str, Any]:
    """Return a node pool as the API has it; its id is text."""
    nodes = counted.count_nodes(pool)
    return {
        "id": str(pool.pk),
        "name": pool.name,
        "tenantId": TENANT_ID,
        "clusterId": str(pool.cluster_id),
        "clusterName": pool.cluster.name,
        "isDefault": False,
        "description": pool.description,
        "labelKey": pool.label_key,
        "labelValue": pool.label_value,
        "nodes": nodes,
        "gpus": float(counted.count_gpus(pool)),
        "status": {"phase": "Ready" if nodes else "Empty"},
        "createdAt": pool.created_at.isoformat(),
        "updatedAt": pool.updated_at.isoformat(),
        "version": pool.version,
    }


def _serialize_pool(user: User, pk: int) -> dict[str, Any]:
    return serialize_node_pool(_get_node_pool(user, pk), PoolCounts(NodePool.objects.filter(pk=pk)))


def _parse_body(data: Any) -> dict[str, str]:
    """Parse a body into the form's data. Raises Invalid."""
    body = quotas.parse_object(data, _ACCEPTED_FIELDS, _FIXED)
    places = {place: name for name, place in PLACES.items()}
    return {
        places.get(name, name): quotas.parse_text(body, name)
        for name in SETTABLE_FIELDS
        if name != "version" and body.get(name) is not None
    }


def _get_node_pool(user: User, pk: int) -> NodePool:
    found: NodePool | None = (
        NodePool.objects.visible_to(user)
        .select_related("cluster")
        .defer("cluster__kubeconfig")
        .filter(pk=pk)
        .first()
    )
    if found is None:
        raise Http404("There is no such node pool among those that you may see.")
    return found

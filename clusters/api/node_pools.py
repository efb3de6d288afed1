"""`/api/v1/node-pools`: the node pools of the clusters that the user may see, and to make, change
and delete them, as on the pages.
"""

from decimal import Decimal
from typing import Annotated, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from msgspec import UNSET, UnsetType
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import node_pools
from clusters.models import NodePool
from clusters.node_pools import NewNodePoolForm, NodePoolForm
from clusters.pool_counts import PoolCounts
from console.errors import Invalid
from console.moments import format_moment
from console.rest_bodies import describe_field, mark_unsupported
from projects import access
from projects.api import filtering, quotas, schemas
from projects.api.base import ApiView, ListQuery
from projects.api.bodies import TENANT_ID
from projects.api.idempotency import idempotent
from projects.api.merging import follow_version, repeat_stale
from projects.api.schemas import (
    ID,
    INTEGER,
    MOMENT,
    NUMBER,
    TEXT,
    enum_schema,
    object_schema,
)
from projects.api.unit_bodies import AnswerFields, Version, parse_unit_body
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import cluster_scope

FIELDS = {
    "name": filtering.text_field("name"),
    "clusterId": filtering.uuid_field("cluster_id"),
    "labelKey": filtering.text_field("label_key"),
    "labelValue": filtering.text_field("label_value"),
    "clusterName": filtering.text_field("cluster__name"),
    "description": filtering.text_field("description"),
    "createdAt": filtering.moment_field("created_at"),
    "updatedAt": filtering.moment_field("updated_at"),
}
PLACES = {
    "cluster": "clusterId",
    "label_key": "labelKey",
    "label_value": "labelValue",
    "gpu_hour_price": "gpuHourPrice",
    "gpu_watts": "gpuWatts",
}
_EMPTY = {"description": "", "gpu_hour_price": None, "currency": "", "gpu_watts": None}
"""What a replacement that does not give them leaves."""
_REQUIRED = ("name", "clusterId", "labelKey")
OfAnswers = Annotated[Any, describe_field("Of answers.")]


class NodePoolBody(AnswerFields):
    """A node pool."""

    name: Annotated[str | None, describe_field("It stays: workloads name it.")] = None
    cluster_id: Annotated[str | None, describe_field(format="uuid")] = None
    description: str | None = None
    label_key: str | None = None
    label_value: str | None = None
    gpu_hour_price: Annotated[
        Decimal | UnsetType | None,
        describe_field("What a GPU costs for an hour, in the currency; null names no money."),
    ] = UNSET
    currency: Annotated[str | None, describe_field('As "EUR"; "" with a price of null.')] = None
    gpu_watts: Annotated[
        int | UnsetType | None,
        describe_field("What a GPU takes where it is not measured; null says that it is unknown."),
    ] = UNSET
    version: Version | None = None
    nodes: OfAnswers = None
    gpus: OfAnswers = None
    cluster_name: OfAnswers = None
    tenant_id: OfAnswers = None
    is_default: OfAnswers = None
    over_provisioning_ratio: Annotated[
        Any,
        mark_unsupported(
            1,
            1.0,
            reason=(
                "cannot be that: Muster gives a device to as many as it has room for. Leave it out"
            ),
        ),
    ] = None
    placement_strategy: Annotated[
        Any,
        mark_unsupported(
            {"gpu": "bin-pack", "cpu": "bin-pack"},
            reason=("cannot be that: the scheduler's own settings say how it places. Leave it out"),
        ),
    ] = None

    def build_form_data(self) -> dict[str, str]:
        """Return what the body gives as the form's data."""
        values = {
            "name": self.name,
            "cluster": self.cluster_id,
            "description": self.description,
            "label_key": self.label_key,
            "label_value": self.label_value,
            "currency": self.currency,
        }
        typed = {name: value for name, value in values.items() if value is not None}
        numbers = {"gpu_hour_price": self.gpu_hour_price, "gpu_watts": self.gpu_watts}
        return typed | {
            name: "" if value is None else str(value)
            for name, value in numbers.items()
            if value is not UNSET
        }


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
    gpuHourPrice={"type": ["number", "null"]},
    currency=TEXT,
    gpuWatts={"type": ["integer", "null"]},
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
        request=schemas.body_content(NodePoolBody, *_REQUIRED),
        responses={201: schemas.json_response(POOL_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=["organisation"],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.NODE_POOLS)
        body = parse_unit_body(NodePoolBody, request.data)
        form = NewNodePoolForm(body.build_form_data(), user=self.user)
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
        request=schemas.body_content(NodePoolBody),
        responses={200: schemas.json_response(POOL_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def patch(self, request: Request, pk: int) -> Response:
        return self._apply_change(request, pk, is_replacement=False)

    @extend_schema(
        operation_id="replace_node_pool",
        description=(
            "Another label and description; a description, a price and a power that are not given "
            "are empty. Name and cluster stay."
        ),
        request=schemas.body_content(NodePoolBody),
        responses={200: schemas.json_response(POOL_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def put(self, request: Request, pk: int) -> Response:
        return self._apply_change(request, pk, is_replacement=True)

    def _apply_change(self, request: Request, pk: int, *, is_replacement: bool) -> Response:
        pool = _get_node_pool(self.user, pk)
        access.require(self.user, Verb.EDIT, Entity.NODE_POOLS, cluster_scope(pool.cluster_id))
        body = parse_unit_body(NodePoolBody, request.data)
        typed = body.build_form_data()
        for name, now in (("name", pool.name), ("cluster", str(pool.cluster_id))):
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
        current = NodePoolForm.values(pool) | (_EMPTY if is_replacement else {})
        form = NodePoolForm(current | typed, row=pool)
        quotas.require_valid(form, PLACES)
        with follow_version(pool.version, body.version) as version:
            node_pools.change(pool, form, self.user, version)
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
        pool = _get_node_pool(self.user, pk)
        node_pools.delete(pool, self.user)
        return Response({"code": 200, "message": f"Node pool {pool.name} is deleted."})


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
        "gpuHourPrice": None if pool.gpu_hour_price is None else float(pool.gpu_hour_price),
        "currency": pool.currency,
        "gpuWatts": pool.gpu_watts,
        "nodes": nodes,
        "gpus": float(counted.count_gpus(pool)),
        "status": {"phase": "Ready" if nodes else "Empty"},
        "createdAt": format_moment(pool.created_at),
        "updatedAt": format_moment(pool.updated_at),
        "version": pool.version,
    }


def _serialize_pool(user: User, pk: int) -> dict[str, Any]:
    return serialize_node_pool(_get_node_pool(user, pk), PoolCounts(NodePool.objects.filter(pk=pk)))


def _get_node_pool(user: User, pk: int) -> NodePool:
    pool: NodePool | None = (
        NodePool.objects.visible_to(user)
        .select_related("cluster")
        .defer("cluster__kubeconfig")
        .filter(pk=pk)
        .first()
    )
    if pool is None:
        raise Http404("There is no such node pool among those that you may see.")
    return pool

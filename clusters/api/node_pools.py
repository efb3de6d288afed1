"""`/api/v1/node-pools`: the node pools of the clusters that one sees; making, changing and deleting
them, as on the pages.
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
from clusters.pool_counts import Counted
from console.errors import Invalid
from projects import access
from projects.api import filtering, quotas, schemas
from projects.api.base import ApiView, Asked
from projects.api.bodies import TENANT_ID
from projects.api.schemas import ID, MOMENT, NUMBER, TEXT, WHOLE, obj, said, words
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import of_cluster

FIELDS = {
    "name": filtering.text("name"),
    "clusterId": filtering.uuid("cluster_id"),
    "labelKey": filtering.text("label_key"),
    "labelValue": filtering.text("label_value"),
}
PLACES = {"cluster": "clusterId", "label_key": "labelKey", "label_value": "labelValue"}
KNOWN = ("name", "clusterId", "description", "labelKey", "labelValue", "version")
_KNOWN = (*KNOWN, "nodes", "gpus", "clusterName", "tenantId", "isDefault")
_FIXED: Mapping[str, quotas.Fixed] = {
    "overProvisioningRatio": (
        (1,),
        "Muster gives a device to as many as it has room for. Leave it out.",
    ),
    "placementStrategy": (
        ({}, {"gpu": "bin-pack", "cpu": "bin-pack"}),
        "the scheduler's own settings say how it places. Leave it out.",
    ),
}
ASKED = obj(
    ["name", "clusterId", "labelKey", "labelValue"],
    name=said(TEXT, "It stays: workloads name it."),
    clusterId=ID,
    description=TEXT,
    labelKey=TEXT,
    labelValue=TEXT,
)
CHANGED = obj(description=TEXT, labelKey=TEXT, labelValue=TEXT, version=quotas.VERSION)
POOL = obj(
    ["id", "name", "clusterId"],
    id=TEXT,
    name=TEXT,
    tenantId=WHOLE,
    clusterId=ID,
    clusterName=TEXT,
    isDefault=schemas.FLAG,
    description=TEXT,
    labelKey=TEXT,
    labelValue=TEXT,
    nodes=WHOLE,
    gpus=NUMBER,
    status=obj(phase=words("Ready", "Empty")),
    createdAt=MOMENT,
    updatedAt=MOMENT,
    version=WHOLE,
)


class NodePoolsView(ApiView):
    @extend_schema(
        operation_id="list_node_pools",
        description="The node pools of the clusters that you may see.",
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.answer(schemas.items("nodepools", POOL))}
        | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        visible = NodePool.objects.visible_to(self.user)
        rows = filtering.matching(
            visible.select_related("cluster").defer("cluster__kubeconfig"), asked, FIELDS
        )
        counted = Counted(visible)
        return Response(
            filtering.paged(
                rows,
                asked,
                FIELDS,
                ("name", "pk"),
                name="nodepools",
                shown=lambda each: shown(each, counted),
            )
        )

    @extend_schema(
        operation_id="create_node_pool",
        description="A new node pool: the nodes of a cluster with this value of this label.",
        request=schemas.content(ASKED),
        responses={201: schemas.answer(POOL)} | schemas.errors(400, 401, 403, 409),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.NODE_POOLS)
        form = NewNodePoolForm(_typed(request.data), user=self.user)
        quotas.valid(form, PLACES)
        return Response(_one(self.user, node_pools.create(form, self.user).pk), status=201)


class NodePoolsCountView(ApiView):
    @extend_schema(
        operation_id="count_node_pools",
        description=(
            "How many node pools you may see, of what the list's filterBy and search ask for."
        ),
        parameters=schemas.filters(FIELDS),
        responses={200: schemas.answer(schemas.COUNT)} | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        return Response(
            {
                "count": filtering.matching(
                    NodePool.objects.visible_to(self.user), Asked(request), FIELDS
                ).count()
            }
        )


class NodePoolView(ApiView):
    @extend_schema(
        operation_id="get_node_pool",
        description="One node pool.",
        responses={200: schemas.answer(POOL)} | schemas.errors(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(_one(self.user, pk))

    @extend_schema(
        operation_id="change_node_pool",
        description=(
            "Another description or label; what is not given stays. What is placed already stays "
            "where it is."
        ),
        request=schemas.content(CHANGED),
        responses={200: schemas.answer(POOL)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=False)

    @extend_schema(
        operation_id="replace_node_pool",
        description=(
            "Another label and description; a description that is not given is empty. Name and "
            "cluster stay."
        ),
        request=schemas.content(CHANGED),
        responses={200: schemas.answer(POOL)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def put(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=True)

    def _changed(self, request: Request, pk: int, *, whole: bool) -> Response:
        found = _found(self.user, pk)
        access.require(self.user, Verb.EDIT, Entity.NODE_POOLS, of_cluster(found.cluster_id))
        body = quotas.mapping(request.data, _KNOWN, _FIXED)
        typed = _typed(body)
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
        kept = NodePoolForm.values(found) | ({"description": ""} if whole else {})
        form = NodePoolForm(kept | typed, row=found)
        quotas.valid(form, PLACES)
        node_pools.change(found, form, self.user, quotas.version(body))
        return Response(_one(self.user, pk))

    @extend_schema(
        operation_id="delete_node_pool",
        description=(
            "Delete a node pool that no project allows and no workload asks for. Its nodes stay as "
            "they are."
        ),
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: int) -> Response:
        found = _found(self.user, pk)
        node_pools.delete(found, self.user)
        return Response({"code": 200, "message": f"Node pool {found.name} is deleted."})


def shown(pool: NodePool, counted: Counted) -> dict[str, Any]:
    """A node pool as the API has it; its id is text."""
    nodes = counted.nodes(pool)
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
        "gpus": float(counted.gpus(pool)),
        "status": {"phase": "Ready" if nodes else "Empty"},
        "createdAt": pool.created_at.isoformat(),
        "updatedAt": pool.updated_at.isoformat(),
        "version": pool.version,
    }


def _one(user: User, pk: int) -> dict[str, Any]:
    return shown(_found(user, pk), Counted(NodePool.objects.filter(pk=pk)))


def _typed(data: Any) -> dict[str, str]:
    """What a body says as it would be typed. Raises Invalid."""
    body = quotas.mapping(data, _KNOWN, _FIXED)
    places = {place: name for name, place in PLACES.items()}
    return {
        places.get(name, name): quotas.text(body, name)
        for name in KNOWN
        if name != "version" and body.get(name) is not None
    }


def _found(user: User, pk: int) -> NodePool:
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

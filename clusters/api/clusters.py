"""`GET /api/v1/clusters`: a bare array."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.models import Cluster
from projects.api import schemas
from projects.api.base import ApiView
from projects.models import Project


class ClustersView(ApiView):
    @extend_schema(
        operation_id="list_clusters",
        description="The clusters of the projects that you may see; an administrator of Muster sees all. The answer is an array.",
        responses={200: schemas.answer({"type": "array", "items": schemas.CLUSTER})} | schemas.errors(401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        clusters = Cluster.objects.all()
        if not self.user.is_superuser:
            clusters = clusters.filter(pk__in=Project.objects.visible_to(self.user).values("cluster_id"))
        return Response([shown(cluster) for cluster in clusters])


def shown(cluster: Cluster) -> dict[str, Any]:
    """A cluster as the API has it, without its credentials."""
    seen = cluster.last_seen_at
    return {
        "uuid": str(cluster.pk),
        "tenantId": 1,
        "name": cluster.name,
        "createdAt": cluster.created_at.isoformat(),
        "version": cluster.version,
        "status": {"state": cluster.state},
        "lastLiveness": seen.isoformat() if seen else None,
    }

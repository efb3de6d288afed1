"""`GET /api/v1/workloads/{id}/timeline`: a workload's past as lanes of segments and marks."""

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from workloads.api.details import get_workload
from workloads.api.timeline_answers import TIMELINE, serialize_timeline
from workloads.queries import load_timeline
from workloads.timeline import parse_ranks
from workloads.timeline.building import MOST_ALONE, MOST_GROUPS, MOST_LANES


class TimelineView(ApiView):
    @extend_schema(
        operation_id="get_workload_timeline",
        description=(
            "A workload's past, over all attempts, as lanes: its statuses, its attempts, how many "
            "pods had a node, what took pods, what the radar found, what its logs told, and each "
            f"rank with its pods. Of more than {MOST_LANES} ranks {MOST_ALONE} have a lane of "
            f"their own, those with trouble first, and at most {MOST_GROUPS} lanes have the others "
            "together."
        ),
        parameters=[
            schemas.query_parameter(
                "ranks", schemas.TEXT, "Only lanes of these ranks, as 5 or 64-127 or 0,8-15."
            )
        ],
        responses={200: schemas.json_response(TIMELINE)} | schemas.error_responses(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        choice = parse_ranks(ListQuery(request).text("ranks"))
        if choice is None:
            raise Invalid([("ranks", "ranks must be as 5, as 64-127, or several with commas.")])
        return Response(serialize_timeline(load_timeline(workload, self.user, choice), workload))

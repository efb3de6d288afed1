"""`GET /api/v1/workloads/{id}/progress`: how far a training is, its loss, and each rank."""

import uuid
from datetime import UTC, datetime

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.moments import format_moment
from projects.api import schemas
from projects.api.base import ApiView
from workloads import queries
from workloads.api.details import get_workload
from workloads.api.progress_answers import PROGRESS_DETAILS, serialize_progress, serialize_rank


class ProgressView(ApiView):
    @extend_schema(
        operation_id="get_workload_progress",
        description=(
            "How far a training is, as the lines of its logs tell it: the loss over time, thinned, "
            "and each rank. `progress` is null until a line tells anything."
        ),
        responses={200: schemas.json_response(PROGRESS_DETAILS)}
        | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        view = queries.view_progress(workload)
        details = queries.load_progress_details(workload)
        is_known = view is not None and view.is_known
        return Response(
            {
                "progress": serialize_progress(view),
                "evidence": view.state.evidence if view is not None and is_known else "",
                "message": "" if view is None else view.trouble,
                "lossHistory": [
                    {
                        "at": format_moment(datetime.fromtimestamp(at, UTC)),
                        "step": step,
                        "loss": loss,
                    }
                    for at, step, loss in details.loss
                ],
                "ranks": [serialize_rank(each) for each in details.ranks],
            }
        )

"""`GET /api/v1/workloads/{id}/findings`: what the radar found of a workload's present attempt."""

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import schemas
from projects.api.base import ApiView
from workloads.api.details import get_workload
from workloads.api.finding_answers import FINDINGS, serialize_finding
from workloads.queries import load_findings
from workloads.queries.findings import MOST_FINDINGS


class FindingsView(ApiView):
    @extend_schema(
        operation_id="get_workload_findings",
        description=(
            "What the radar found of a workload's present attempt: hangs, slow ranks, idle GPUs, "
            "memory that grows, faulty nodes, bad losses and missed checkpoints. Those that last "
            f"and those that are over, the newest first, at most {MOST_FINDINGS}."
        ),
        responses={200: schemas.json_response(FINDINGS)} | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        return Response({"findings": list(map(serialize_finding, load_findings(workload)))})

"""`POST /api/v1/workloads/batch`: one action on many workloads, each with its own result."""

import uuid
from enum import StrEnum
from typing import Annotated

from drf_spectacular.utils import extend_schema
from msgspec import Meta
from rest_framework.request import Request
from rest_framework.response import Response

from console.rest_bodies import RestBody, describe_field, parse_body
from projects import audit
from projects.api import schemas
from projects.api.base import ApiView
from workloads import actions
from workloads.actions import MOST_AT_ONCE, BulkAction

MAX_ID_CHARS = 64


class BatchAction(StrEnum):
    """What can be done, in the words of Run:ai's clients."""

    DELETE = "delete"
    SUSPEND = "suspend"
    RESUME = "resume"


_BULK_ACTIONS = {
    BatchAction.DELETE: BulkAction.DELETE,
    BatchAction.SUSPEND: BulkAction.STOP,
    BatchAction.RESUME: BulkAction.RUN,
}


class BatchBody(RestBody):
    """Workloads, and what is done to each of them."""

    ids: Annotated[
        Annotated[
            tuple[Annotated[str, Meta(max_length=MAX_ID_CHARS)], ...],
            Meta(min_length=1, max_length=MOST_AT_ONCE),
        ],
        describe_field(
            f"Ids of at most {MOST_AT_ONCE} workloads.",
            problem=f"must be a list of 1 to {MOST_AT_ONCE} ids of workloads",
        ),
    ]
    action: BatchAction


BATCH = schemas.object_schema(
    ["id", "succeeded", "failed"],
    id=schemas.describe_schema(
        schemas.TEXT, "The request's id, with which the audit log has what this did."
    ),
    succeeded=schemas.describe_schema(
        schemas.array_schema(schemas.TEXT), "For which it is accepted, as the single action does."
    ),
    failed=schemas.array_schema(
        schemas.object_schema(
            ["id", "code", "message"],
            id=schemas.TEXT,
            code=schemas.describe_schema(
                schemas.INTEGER, "The HTTP status that the single action would have answered."
            ),
            message=schemas.TEXT,
        )
    ),
)


class WorkloadsBatchView(ApiView):
    @extend_schema(
        operation_id="batch_workloads",
        description=(
            "Stop, run again or delete many workloads of either architecture. A refusal for one "
            "does not stop the others: it is among `failed`, and the answer is still 200. An id "
            "that is given twice counts once."
        ),
        request=schemas.body_content(BatchBody),
        responses={200: schemas.json_response(BATCH)} | schemas.error_responses(400, 401, 413),
        tags=["workloads"],
    )
    def post(self, request: Request) -> Response:
        body = parse_body(BatchBody, request.data)
        results = actions.apply_bulk_action(body.ids, _BULK_ACTIONS[body.action], self.user)
        origin = audit.origin.get()
        return Response(
            {
                "id": (origin.request_id if origin else "") or str(uuid.uuid4()),
                "succeeded": [each.id for each in results if each.ok],
                "failed": [
                    {"id": each.id, "code": _get_rest_status(each), "message": each.text}
                    for each in results
                    if not each.ok
                ],
            }
        )


def _get_rest_status(result: actions.BulkResult) -> int:
    """Return the status of a refusal as the REST API answers it: bad input is 400."""
    return 400 if result.status == 422 else result.status

"""`PUT /api/v1/workloads/{id}/excluded-nodes`: nodes that a workload's next runs do not use."""

import uuid
from typing import Annotated

from drf_spectacular.utils import extend_schema
from msgspec import Meta
from rest_framework.request import Request
from rest_framework.response import Response

from console.rest_bodies import RestBody, describe_field, parse_body
from projects import access
from projects.api import schemas
from projects.api.base import ApiView
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads import actions
from workloads.actions import MOST_EXCLUDED
from workloads.api.details import get_workload

MAX_NAME_CHARS = 253


class ExcludedNodesBody(RestBody):
    """All nodes that are left out; those that are not named may be used again."""

    nodes: Annotated[
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARS)], ...],
            Meta(max_length=MOST_EXCLUDED),
        ],
        describe_field(
            "Names of nodes of its cluster.",
            problem=f"must be a list of at most {MOST_EXCLUDED} names of nodes",
        ),
    ]
    runs_again: Annotated[
        bool,
        describe_field(
            "Whether it is stopped now, and runs again without them as soon as it has stopped.",
            problem="must be true or false",
        ),
    ] = False


class ExcludedNodesView(ApiView):
    @extend_schema(
        operation_id="set_workload_excluded_nodes",
        description=(
            "Set the nodes that a workload does not use from its next run on: faulty ones."
        ),
        request=schemas.body_content(ExcludedNodesBody),
        responses={202: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["workloads"],
    )
    def put(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        access.require(self.user, Verb.EDIT, Entity.WORKLOADS, project_scope(workload.project_id))
        body = parse_body(ExcludedNodesBody, request.data)
        is_new = actions.exclude_nodes(workload, body.nodes, self.user, runs_again=body.runs_again)
        listed = ", ".join(dict.fromkeys(body.nodes))
        outcome = f"does not use {listed}" if listed else "may use any node"
        when = "; it runs again as soon as it has stopped" if body.runs_again else ""
        again = "" if is_new else " as before"
        return Response(
            {
                "code": 202,
                "message": f"{workload.name} {outcome} from its next run on{again}{when}.",
            },
            status=202,
        )

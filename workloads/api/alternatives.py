"""`/alternatives` of a workload or a submission: what would let it start sooner."""

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.moments import format_moment
from projects.api import schemas
from projects.api.base import ApiView
from projects.api.schemas import (
    BOOLEAN,
    INTEGER,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from simulation import Outlook
from workloads.alternatives import (
    AlternativeView,
    AnswerBoard,
    ask_for_draft,
    ask_for_workload,
    play_to_end,
)
from workloads.api.details import get_workload
from workloads.api.previews import judge_request
from workloads.api.submissions import ArchitectureView
from workloads.api.workload_schemas import SUBMISSION
from workloads.queries.forecasts import WAITING_STATUSES

_MAYBE_INTEGER: Schema = {"type": ["integer", "null"]}
_MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_START: dict[str, Schema] = {
    "outlook": enum_schema(*(each.value for each in Outlook)),
    "atOnce": describe_schema(BOOLEAN, "Whether it would start now."),
    "likelyAt": describe_schema(_MAYBE_MOMENT, "It starts before in half of the draws."),
    "earliestAt": _MAYBE_MOMENT,
    "latestAt": describe_schema(_MAYBE_MOMENT, "8 of 10 starts lie between these two."),
    "draws": describe_schema(INTEGER, "From how many draws this is; few draws say little."),
}
_ALTERNATIVE = object_schema(
    [*_START, "title", "soonerBySeconds", "change", "projectId", "workloadId"],
    **_START,
    title=describe_schema(TEXT, "What would be otherwise, in words."),
    soonerBySeconds=describe_schema(_MAYBE_INTEGER, "Null where the start as it is is not known."),
    change=describe_schema(_MAYBE_TEXT, "Key of what a copy would have otherwise."),
    projectId=describe_schema(_MAYBE_TEXT, "Where a copy would be launched; null without one."),
    workloadId=describe_schema(_MAYBE_TEXT, "The workload that would end, where you may see it."),
)
_AS_IT_IS: Schema = object_schema([*_START], **_START)
ALTERNATIVES: Schema = object_schema(
    ["message", "asItIs", "alternatives"],
    message=describe_schema(TEXT, "Why it was not played, or not to its end; empty where it was."),
    asItIs=describe_schema(
        _AS_IT_IS | {"type": ["object", "null"]},
        "Null where it is not known in the time that is played.",
    ),
    alternatives=describe_schema(
        array_schema(_ALTERNATIVE), "What starts clearly sooner, the soonest first; at most five."
    ),
)


class AlternativesView(ApiView):
    @extend_schema(
        operation_id="get_workload_alternatives",
        description=(
            "What would let a workload that waits start sooner: the cluster played forward with "
            "one thing otherwise each time. Takes up to 20 seconds."
        ),
        responses={200: schemas.json_response(ALTERNATIVES)} | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        if workload.status not in WAITING_STATUSES or workload.released_at is not None:
            return Response(_serialize(None, "It does not wait."))
        answer = play_to_end(lambda: ask_for_workload(workload, self.user), self.user.pk)
        return Response(_serialize(*answer))


class SubmissionAlternativesView(ArchitectureView):
    @extend_schema(
        description=(
            "When a submission would start, and what would let it start sooner. Nothing is "
            "submitted; what POST would refuse is refused here in the same words. Takes up to 20 "
            "seconds."
        ),
        request=schemas.json_content(SUBMISSION),
        responses={200: schemas.json_response(ALTERNATIVES)}
        | schemas.error_responses(400, 401, 403, 409, 413),
        tags=["workloads"],
    )
    def post(self, request: Request) -> Response:
        judgement = judge_request(self, request)
        answer = play_to_end(lambda: ask_for_draft(judgement, self.user), self.user.pk)
        return Response(_serialize(*answer))


def _serialize(board: AnswerBoard | None, message: str) -> dict[str, Any]:
    base = None if board is None else board.base
    best = () if board is None else board.list_best()
    return {
        "message": message,
        "asItIs": None if base is None else _serialize_start(base),
        "alternatives": [_serialize_one(each) for each in best],
    }


def _serialize_start(view: AlternativeView) -> dict[str, Any]:
    return {
        "outlook": view.outlook.value,
        "atOnce": view.is_at_once,
        "likelyAt": format_moment(view.likely_at),
        "earliestAt": format_moment(view.earliest_at),
        "latestAt": format_moment(view.latest_at),
        "draws": view.draws,
    }


def _serialize_one(view: AlternativeView) -> dict[str, Any]:
    return {
        **_serialize_start(view),
        "title": view.title,
        "soonerBySeconds": view.gain_seconds,
        "change": view.change or None,
        "projectId": None if view.project is None else str(view.project),
        "workloadId": None if view.ended is None else str(view.ended),
    }

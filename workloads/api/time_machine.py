"""`GET /api/v1/time-machine`: who waited and why, what ran where, and the quotas of a moment."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.moments import format_moment
from projects.api import schemas
from projects.api.base import MAX_ITEMS, ApiView, ListQuery
from projects.api.schemas import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    object_schema,
)
from workloads.overview.past_place import Place, find_place
from workloads.overview.past_sight import load_sight
from workloads.overview.past_view import (
    NodePicture,
    PastFocus,
    PastRow,
    PastRows,
    build_past_view,
    find_past_row,
)
from workloads.overview.quotas import QuotaRow
from workloads.queries.past_states import (
    RecordBounds,
    load_past_state,
    load_record_bounds,
)
from workloads.time_machine import DamagedBlock

_MOMENT = {"type": "string", "format": "date-time"}
_MAYBE_MOMENT = {"type": ["string", "null"], "format": "date-time"}
_MAYBE_NUMBER = {"type": ["number", "null"]}
_ROW = object_schema(
    ["id", "name", "projectId", "projectName", "phase", "since", "requestedGpus", "allocatedGpus"],
    id=schemas.ID,
    name=TEXT,
    projectId=TEXT,
    projectName=TEXT,
    submittedBy=TEXT,
    phase=describe_schema(TEXT, "Its status then."),
    since=_MOMENT,
    requestedGpus=NUMBER,
    requestedGpuMemoryMib=INTEGER,
    allocatedGpus=NUMBER,
    runningPods=INTEGER,
    requestedPods=INTEGER,
    preemptible=BOOLEAN,
    reason=describe_schema(TEXT, "Why it waited; empty where it did not."),
    queuePosition={"type": ["integer", "null"]},
    queueLength={"type": ["integer", "null"]},
    nodes=array_schema(TEXT),
)
_ROWS = object_schema(
    ["workloads", "count", "anotherProject"],
    workloads=array_schema(_ROW),
    count=describe_schema(INTEGER, "Of all that you may see, also beyond the limit."),
    anotherProject=describe_schema(
        object_schema(["count", "gpus"], count=INTEGER, gpus=NUMBER),
        "Workloads that you may not see, or of removed projects.",
    ),
)
_HOLDER = object_schema(
    ["holder", "gpus"],
    holder=describe_schema(TEXT, "A workload's name, or: another project, not Muster's."),
    workloadId=schemas.ID,
    gpus=NUMBER,
)
_NODE = object_schema(
    ["name", "clusterUuid", "isReady", "isSchedulable", "gpus", "freeGpus", "holders"],
    name=TEXT,
    clusterUuid=schemas.ID,
    clusterName=TEXT,
    isReady=BOOLEAN,
    isSchedulable=BOOLEAN,
    gpuType=TEXT,
    gpus=NUMBER,
    freeGpus=NUMBER,
    holders=array_schema(_HOLDER),
)
_QUOTA = object_schema(
    ["id", "name", "allocatedGpus", "gpuQuota", "gpuLimit"],
    id=TEXT,
    name=TEXT,
    allocatedGpus=NUMBER,
    gpuQuota=_MAYBE_NUMBER,
    gpuLimit=_MAYBE_NUMBER,
)
MOMENT: Schema = object_schema(
    ["at", "recordedFrom", "recordedUntil", "gap", "waiting", "running", "nodes", "projects"],
    at=_MOMENT,
    recordedFrom=_MOMENT,
    recordedUntil=_MOMENT,
    gap=describe_schema(
        {
            "type": ["object", "null"],
            "properties": {"begin": _MOMENT, "end": _MAYBE_MOMENT},
            "required": ["begin", "end"],
        },
        "Where nothing was recorded then: the answer is the state of its beginning. The end is "
        "null while nothing is recorded.",
    ),
    silentClusters=array_schema(object_schema(["name", "since"], name=TEXT, since=_MOMENT)),
    workload={"oneOf": [_ROW, {"type": "null"}]},
    waiting=_ROWS,
    running=_ROWS,
    nodes=array_schema(_NODE),
    moreNodes=INTEGER,
    projects=array_schema(_QUOTA),
    departments=array_schema(_QUOTA),
)


class TimeMachineView(ApiView):
    @extend_schema(
        operation_id="get_time_machine",
        description=(
            "Who waited and why, what ran on which nodes, and the quotas of a past moment, as far "
            "as you may see that today. What you may not see is added up as another project."
        ),
        parameters=[
            schemas.query_parameter(
                "at", _MOMENT, "As 2026-11-24T14:02:00Z; the last recorded moment without it."
            ),
            schemas.query_parameter("project", TEXT, "The id of a project: only what is its own."),
            schemas.query_parameter(
                "node", TEXT, "A cluster's UUID and a node's name, as <uuid>/<name>: only there."
            ),
            schemas.query_parameter(
                "workload", schemas.ID, "Answers for one workload, beside its project's queue."
            ),
            schemas.query_parameter(
                "limit",
                INTEGER | {"minimum": 1, "maximum": MAX_ITEMS, "default": 50},
                "At most so many of each.",
            ),
        ],
        responses={200: schemas.json_response(MOMENT)}
        | schemas.error_responses(400, 401, 403, 404),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        parameters = {name: query.text(name) for name in ("project", "node", "workload")}
        place = find_place(self.user, parameters)
        limit = query.integer("limit", 50, 1, MAX_ITEMS)
        bounds = load_record_bounds()
        if bounds is None:
            raise Invalid([("at", "Nothing has been recorded yet.")])
        at = query.moment("at") or bounds.until
        if at > timezone.now():
            raise Invalid([("at", "That moment is yet to come.")])
        return Response(self._serialize(at, bounds, place, limit))

    def _serialize(
        self, at: datetime, bounds: RecordBounds, place: Place, limit: int
    ) -> dict[str, Any]:
        try:
            past = load_past_state(at, bounds)
        except DamagedBlock as error:
            raise Invalid(
                [("at", "The record of this time is damaged. Choose another moment.")]
            ) from error
        if past is None:
            raise Invalid([("at", f"The record begins at {format_moment(bounds.begin)}.")])
        sight = load_sight(self.user)
        focus: PastFocus = place.focus
        view = build_past_view(past.state, sight, focus, limit)
        row = None
        if focus.workload is not None:
            row = find_past_row(past.state, sight, focus.workload)
        return {
            "at": format_moment(at),
            "recordedFrom": format_moment(bounds.begin),
            "recordedUntil": format_moment(bounds.until),
            "gap": None
            if past.gap is None
            else {
                "begin": format_moment(past.gap.begin),
                "end": format_moment(past.gap.end),
            },
            "silentClusters": [
                {"name": name, "since": format_moment(since)} for name, since in view.silent
            ],
            "workload": None if row is None else _serialize_row(row),
            "waiting": _serialize_rows(view.waiting),
            "running": _serialize_rows(view.running),
            "nodes": [_serialize_node(each) for each in view.nodes],
            "moreNodes": view.more_nodes,
            "projects": [_serialize_quota(each) for each in view.projects],
            "departments": [_serialize_quota(each) for each in view.departments],
        }


def _serialize_rows(rows: PastRows) -> dict[str, Any]:
    return {
        "workloads": [_serialize_row(each) for each in rows.rows],
        "count": rows.count,
        "anotherProject": {"count": rows.hidden.count, "gpus": float(rows.hidden.gpus)},
    }


def _serialize_row(row: PastRow) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "name": row.name,
        "projectId": str(row.project_id),
        "projectName": row.project,
        "submittedBy": row.owner,
        "phase": row.state.value,
        "since": format_moment(row.since),
        "requestedGpus": float(row.gpus_requested),
        "requestedGpuMemoryMib": row.gpu_memory,
        "allocatedGpus": float(row.gpus_allocated),
        "runningPods": row.running_pods,
        "requestedPods": row.requested_pods,
        "preemptible": row.preemptible,
        "reason": row.sentence,
        "queuePosition": None if row.place is None else row.place.position,
        "queueLength": None if row.place is None else row.place.length,
        "nodes": list(row.nodes),
    }


def _serialize_node(node: NodePicture) -> dict[str, Any]:
    return {
        "name": node.name,
        "clusterUuid": str(node.cluster_id),
        "clusterName": node.cluster,
        "isReady": node.is_ready,
        "isSchedulable": node.is_schedulable,
        "gpuType": node.gpu_type,
        "gpus": float(node.gpus),
        "freeGpus": float(node.free),
        "holders": [
            {"holder": part.label, "gpus": float(part.gpus)}
            | ({} if part.workload is None else {"workloadId": str(part.workload)})
            for part in node.parts
            if part.kind != "free"
        ],
    }


def _serialize_quota(row: QuotaRow) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "name": row.name,
        "allocatedGpus": float(row.allocated),
        "gpuQuota": None if row.quota is None else float(row.quota),
        "gpuLimit": None if row.limit is None else float(row.limit),
    }

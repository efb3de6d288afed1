"""`GET /api/v1/workloads/{id}/forecast` and `/forecasts/calibration`: when waiting work starts."""

import uuid
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.moments import format_moment
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.schemas import (
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from projects.permissions import Entity, Verb
from simulation import ReliabilityPoint
from workloads.api.details import get_workload
from workloads.api.submissions import get_project
from workloads.models import ForecastOutlook, Horizon
from workloads.queries import ForecastView as View
from workloads.queries import view_forecast
from workloads.queries.calibration import (
    CLAIM,
    Calibration,
    ForecastCounts,
    filter_records,
    load_calibration,
)
from workloads.queries.forecasts import WINDOW, TrackRecord

NOT_WAITING = "not-waiting"
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_BLOCKER = object_schema(
    ["workloadId", "name", "projectName"],
    workloadId=describe_schema(_MAYBE_TEXT, "Null of what you may not see."),
    name=TEXT,
    projectName=describe_schema(TEXT, "Another project where you may not see it."),
)
_COUNTS: dict[str, Schema] = {
    "decided": INTEGER,
    "right": INTEGER,
    "share": describe_schema(_MAYBE_NUMBER, "Of right ones; null where too few are decided."),
}
_RECORD = object_schema(
    ["projectName", "horizon", "days", "message", *_COUNTS],
    projectName=TEXT,
    horizon=enum_schema(*Horizon),
    days=INTEGER,
    message=TEXT,
    **_COUNTS,
)
_POSITION = object_schema(["position", "length"], position=INTEGER, length=INTEGER)
FORECAST: Schema = object_schema(
    ["outlook", "message", "madeAt", "likelyAt", "earliestAt", "latestAt", "queue", "waitsFor"],
    outlook=describe_schema(
        enum_schema(*ForecastOutlook, NOT_WAITING), "Moments come with *starts* alone."
    ),
    message=describe_schema(TEXT, "All of it in words, with times in UTC."),
    madeAt=_MAYBE_MOMENT,
    likelyAt=describe_schema(_MAYBE_MOMENT, "It starts before in half of the draws."),
    earliestAt=describe_schema(_MAYBE_MOMENT, "8 of 10 starts lie between this and `latestAt`."),
    latestAt=describe_schema(_MAYBE_MOMENT, "Null also where it is more than a day ahead."),
    queue=_POSITION | {"type": ["object", "null"]},
    waitsFor=array_schema(_BLOCKER),
    record=describe_schema(_RECORD, "How often such forecasts were right for its project."),
)
_GROUP = object_schema(
    ["projectId", "projectName", "horizon", *_COUNTS],
    projectId=TEXT,
    projectName=TEXT,
    horizon=enum_schema(*Horizon),
    **_COUNTS,
)
_POINT = object_schema(
    ["expected", "observed", "count"],
    expected=describe_schema(NUMBER, "The share that was said to have started by a time."),
    observed=describe_schema(NUMBER, "The share that had."),
    count=INTEGER,
)
CALIBRATION: Schema = object_schema(
    ["days", "claim", "total", "open", "notStarted", "groups", "drawn", "shown"],
    days=INTEGER,
    claim=describe_schema(NUMBER, "The share of intervals that claims to be right."),
    total=object_schema([*_COUNTS], **_COUNTS),
    open=describe_schema(INTEGER, "Not decided yet."),
    notStarted=describe_schema(INTEGER, "Of work that was stopped before: it does not count."),
    groups=array_schema(_GROUP),
    drawn=describe_schema(array_schema(_POINT), "Of the simulator's draws."),
    shown=describe_schema(array_schema(_POINT), "Of what was shown: widened."),
)


class ForecastView(ApiView):
    @extend_schema(
        operation_id="get_workload_forecast",
        description="When a workload that waits is likely to start, or why nobody can say.",
        responses={200: schemas.json_response(FORECAST)} | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        return Response(serialize_forecast(view_forecast(workload, self.user)))


class CalibrationView(ApiView):
    @extend_schema(
        operation_id="get_forecast_calibration",
        description=(
            f"How right the forecasts of starts of the last {WINDOW.days} days were, of the "
            "projects whose workloads you may see."
        ),
        parameters=[
            schemas.query_parameter("projectId", TEXT, "Those of one project."),
            schemas.query_parameter("horizon", enum_schema(*Horizon), "How far they looked."),
        ],
        responses={200: schemas.json_response(CALIBRATION)}
        | schemas.error_responses(400, 401, 403),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.VIEW, Entity.WORKLOADS)
        query = ListQuery(request)
        wanted = query.text("projectId")
        project = get_project(wanted, self.user).pk if wanted else None
        chosen = query.choice("horizon", ["", *Horizon])
        now = timezone.now()
        records = filter_records(self.user, now, project, Horizon(chosen) if chosen else None)
        return Response(serialize_calibration(load_calibration(records, now)))


def serialize_forecast(view: View | None) -> dict[str, Any]:
    """Return a forecast as the API has it; without one the workload does not wait."""
    if view is None:
        return {
            "outlook": NOT_WAITING,
            "message": "It does not wait.",
            **dict.fromkeys(("madeAt", "likelyAt", "earliestAt", "latestAt", "queue")),
            "waitsFor": [],
        }
    place = view.position
    answer: dict[str, Any] = {
        "outlook": view.outlook.value,
        "message": view.sentence,
        "madeAt": format_moment(view.made_at),
        "likelyAt": format_moment(view.likely_at),
        "earliestAt": format_moment(view.earliest_at),
        "latestAt": format_moment(view.latest_at),
        "queue": {"position": place.position, "length": place.length} if place else None,
        "waitsFor": [
            {
                "workloadId": None if each.workload_id is None else str(each.workload_id),
                "name": each.name,
                "projectName": each.project,
            }
            for each in view.blockers
        ],
    }
    return answer | ({"record": _serialize_record(view.record)} if view.record else {})


def _serialize_record(record: TrackRecord) -> dict[str, Any]:
    return {
        "projectName": record.project,
        "horizon": record.horizon.value,
        "days": WINDOW.days,
        "message": record.sentence,
        "decided": record.count,
        "right": record.right,
        "share": record.share,
    }


def serialize_calibration(calibration: Calibration) -> dict[str, Any]:
    """Return how right forecasts were, as the API has it."""
    return {
        "days": WINDOW.days,
        "claim": CLAIM,
        "total": _serialize_counts(calibration.total),
        "open": calibration.open,
        "notStarted": calibration.unstarted,
        "groups": [
            {"projectId": str(each.project_id), "projectName": each.name, "horizon": horizon.value}
            | _serialize_counts(counts)
            for each in calibration.projects
            for horizon, counts in zip(Horizon, each.cells, strict=True)
            if counts.count
        ],
        "drawn": [_serialize_point(each) for each in calibration.drawn],
        "shown": [_serialize_point(each) for each in calibration.shown],
    }


def _serialize_counts(counts: ForecastCounts) -> dict[str, Any]:
    return {"decided": counts.count, "right": counts.right, "share": counts.share}


def _serialize_point(point: ReliabilityPoint) -> dict[str, Any]:
    return {"expected": point.expected, "observed": point.observed, "count": point.count}

"""REST views of what a project or a department used over time.

The values come from the samples that the charts are made of.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Case, Count, F, Sum, When
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.schemas import (
    MOMENT,
    TEXT,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from projects.models import Department, Project
from projects.permissions import Entity, Verb
from projects.scopes import department_scope, project_scope
from workloads.models import Sample

MAX_SAMPLES = 1000
MAX_ROWS = 20_000
MAX_SPAN = timedelta(days=366)
MAX_ID = (1 << 63) - 1
"""The largest id of a row; the database raises an error for a larger number."""

METRIC_COLUMNS: Mapping[str, str] = {
    "ALLOCATED_GPU": "gpus_allocated",
    "GPU_QUOTA": "gpus_quota",
    "IDLE_ALLOCATED_GPUS": "gpus_idle",
    "RUNNING_WORKLOADS": "running",
    "PENDING_WORKLOADS": "waiting",
}
"""The metrics that can be requested, and the columns of samples that have them."""
VALUE_SCHEMA = object_schema(["value", "timestamp"], value=TEXT, timestamp=MOMENT)
MEASUREMENTS_SCHEMA = object_schema(
    ["measurements"],
    measurements=array_schema(
        object_schema(
            ["type", "labels", "values"],
            type=enum_schema(*METRIC_COLUMNS),
            labels=object_schema(),
            values=array_schema(VALUE_SCHEMA),
        )
    ),
)


PARAMETERS = [
    schemas.query_parameter(
        "metricType",
        describe_schema(TEXT, f"Some of {', '.join(METRIC_COLUMNS)}, with commas between them."),
        "What is asked for.",
    ),
    schemas.query_parameter("start", MOMENT, "From when on."),
    schemas.query_parameter("end", MOMENT, "Until when."),
    schemas.query_parameter(
        "numberOfSamples",
        schemas.INTEGER,
        "How many values of each, 20 where it is not given, at most 1000.",
    ),
]


class ProjectMetricsView(ApiView):
    @extend_schema(
        operation_id="get_project_metrics",
        description=(
            "What a project held between two moments. A moment at which something was not known "
            "has no value."
        ),
        parameters=PARAMETERS,
        responses={200: schemas.json_response(MEASUREMENTS_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        project = (
            Project.objects.visible_to(self.user).filter(pk=pk).first() if pk <= MAX_ID else None
        )
        if project is None:
            raise Http404("There is no such project, or it is not yours to see.")
        access.require(self.user, Verb.VIEW, Entity.WORKLOADS, project_scope(project))
        columns = {f"of_{name}": F(name) for name in METRIC_COLUMNS.values()}
        return Response(
            _build_measurements(
                Sample.objects.filter(project=project).values("at").annotate(**columns),
                ListQuery(request),
            )
        )


class DepartmentMetricsView(ApiView):
    @extend_schema(
        operation_id="get_department_metrics",
        description=(
            "What a department's projects held together between two moments. Where something of "
            "one of them was not known, there is no value."
        ),
        parameters=PARAMETERS,
        responses={200: schemas.json_response(MEASUREMENTS_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        department = (
            Department.objects.visible_to(self.user).filter(pk=pk).first() if pk <= MAX_ID else None
        )
        if department is None:
            raise Http404("There is no such department, or it is not yours to see.")
        access.require(self.user, Verb.VIEW, Entity.WORKLOADS, department_scope(department))
        # A sum with something unknown in it is unknown.
        known_counts = {f"known_{name}": Count(name) for name in METRIC_COLUMNS.values()}
        sums = {
            f"of_{name}": Case(When(**{f"known_{name}": F("rows")}, then=Sum(name)))
            for name in METRIC_COLUMNS.values()
        }
        samples = (
            Sample.objects.filter(project__department=department)
            .order_by()
            .values("at")
            .annotate(rows=Count("pk"), **known_counts)
        )
        return Response(_build_measurements(samples.annotate(**sums), ListQuery(request)))


def _build_measurements(samples: Any, query: ListQuery) -> dict[str, Any]:
    """Build the answer from samples with `at` and each value as "of_<column>"."""
    types, (start, end) = _parse_metric_types(query), _parse_span(query)
    samples_by_end = _pick_samples(
        samples, start, end, query.integer("numberOfSamples", 20, 0, MAX_SAMPLES)
    )
    measurements = []
    for name in types:
        values = [(at, sample[f"of_{METRIC_COLUMNS[name]}"]) for at, sample in samples_by_end]
        measurements.append(
            {
                "type": name,
                "labels": {},
                "values": [
                    _serialize_value(at, value) for at, value in values if value is not None
                ],
            }
        )
    return {"measurements": measurements}


def _parse_metric_types(query: ListQuery) -> list[str]:
    types = [each.strip().upper() for each in query.text("metricType").split(",") if each.strip()]
    if not types or set(types) - METRIC_COLUMNS.keys():
        raise Invalid(
            [
                (
                    "metricType",
                    (
                        f"metricType must be some of {', '.join(METRIC_COLUMNS)}, with commas "
                        "between them."
                    ),
                )
            ]
        )
    return list(dict.fromkeys(types))


def _parse_span(query: ListQuery) -> tuple[datetime, datetime]:
    start, end = query.moment("start"), query.moment("end")
    if start is None or end is None:
        name = "start" if start is None else "end"
        raise Invalid([(name, f"{name} must be a moment, as 2026-11-21T12:00:00Z.")])
    if not start < end <= start + MAX_SPAN:
        raise Invalid([("end", f"end must be after start, and at most {MAX_SPAN.days} days.")])
    return start, end


def _pick_samples(
    samples: Any, start: datetime, end: datetime, count: int
) -> list[tuple[datetime, Mapping[str, Any]]]:
    """Return the newest sample of each of `count` equal parts, at the end of its part.

    A part without samples has none.
    """
    newest: dict[int, Mapping[str, Any]] = {}
    part = (end - start) / max(1, count)
    for sample in samples.filter(at__gte=start, at__lt=end).order_by("at")[:MAX_ROWS]:
        newest[int((sample["at"] - start) / part)] = sample
    return (
        [(start + (number + 1) * part, sample) for number, sample in sorted(newest.items())]
        if count
        else []
    )


def _serialize_value(at: datetime, value: object) -> dict[str, Any]:
    return {"value": str(value), "timestamp": at.astimezone(UTC).isoformat().replace("+00:00", "Z")}

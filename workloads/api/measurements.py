"""Measurements in answers of the REST API: the request's parameters, the schema, values as text.

Their form is that of `runapy`'s models: MetricsResponse, of MeasurementResponse.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.moments import format_moment
from projects.api import schemas
from projects.api.base import ListQuery
from projects.api.schemas import (
    MOMENT,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    object_schema,
)
from workloads.metrics.reading import Span

MAX_SAMPLES = 1000
MAX_SPAN = timedelta(days=366)
MAX_TYPES = 40
CSV: Final = "text/csv"
_VALUE: Schema = object_schema(["value", "timestamp"], value=TEXT, timestamp=MOMENT)

Values = Sequence[tuple[datetime, object]]
"""Moments and what was measured."""


@dataclass(frozen=True, slots=True)
class MeasurementQuery:
    """What a request asks for: types of measurements between two moments, and how many of each."""

    types: Sequence[str]
    start: datetime
    end: datetime
    count: int

    @property
    def span(self) -> Span:
        return Span(int(self.start.timestamp()), int(self.end.timestamp()))


def build_parameters(types: Collection[str]) -> list[OpenApiParameter]:
    """Return the parameters that a request for measurements of these types has."""
    return [
        schemas.query_parameter(
            "metricType",
            describe_schema(TEXT, f"Some of {', '.join(types)}, with commas between them."),
            "What is asked for, once with commas or several times.",
        ),
        schemas.query_parameter("start", MOMENT, "From when on."),
        schemas.query_parameter("end", MOMENT, "Until when."),
        schemas.query_parameter(
            "numberOfSamples",
            schemas.INTEGER,
            "How many values of each, 20 where it is not given, at most 1000.",
        ),
    ]


def build_responses() -> dict[Any, Any]:
    """Return the answers of such an operation: JSON, or CSV where the request accepts only that."""
    measurement = object_schema(
        ["type", "labels", "values"],
        type=TEXT,
        labels=object_schema(),
        values=array_schema(_VALUE),
    )
    return {
        200: schemas.json_response(
            object_schema(["measurements"], measurements=array_schema(measurement))
        ),
        (200, CSV): OpenApiTypes.STR,
        **schemas.error_responses(400, 401, 403, 404),
    }


def parse_query(request: Request, types: Collection[str]) -> MeasurementQuery:
    """Return what the request asks for. Raises Invalid, naming the parameter."""
    query = ListQuery(request)
    chosen = query.choices("metricType", list(types), MAX_TYPES)
    if not chosen:
        raise Invalid(
            [
                (
                    "metricType",
                    f"metricType must be some of {', '.join(types)}, with commas between them.",
                )
            ]
        )
    start, end = query.moment("start"), query.moment("end")
    if start is None or end is None:
        name = "start" if start is None else "end"
        raise Invalid([(name, f"{name} must be a moment, as 2026-11-21T12:00:00Z.")])
    if not start < end <= start + MAX_SPAN:
        raise Invalid([("end", f"end must be after start, and at most {MAX_SPAN.days} days.")])
    return MeasurementQuery(
        chosen, start, end, query.integer("numberOfSamples", 20, 0, MAX_SAMPLES)
    )


def answer_measurements(
    request: Request, measurements: Iterable[tuple[str, Values]]
) -> Response | HttpResponse:
    """Return the measurements by their types, as JSON, or as CSV where only that is accepted."""
    if request.META.get("HTTP_ACCEPT", "").partition(",")[0].strip().startswith(CSV):
        lines = ["type,timestamp,value"]
        lines += [
            f"{name},{format_moment(at)},{value}"
            for name, values in measurements
            for at, value in values
        ]
        return HttpResponse("\r\n".join([*lines, ""]), content_type=f"{CSV}; charset=utf-8")
    return Response(
        {
            "measurements": [
                {
                    "type": name,
                    "labels": {},
                    "values": [
                        {"value": str(value), "timestamp": format_moment(at)}
                        for at, value in values
                    ],
                }
                for name, values in measurements
            ]
        }
    )

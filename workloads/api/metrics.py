"""What a project held over time, as the REST API tells it: from the samples that the charts are made of."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, Asked
from projects.api.schemas import MOMENT, TEXT, array, obj, said, words
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import of_project
from workloads.models import Sample

MOST = 1000
MOST_ROWS = 20_000
LONGEST = timedelta(days=366)

TYPES: Mapping[str, Callable[[Sample], object]] = {
    "ALLOCATED_GPU": lambda sample: sample.gpus_allocated,
    "GPU_QUOTA": lambda sample: sample.gpus_quota,
    "IDLE_ALLOCATED_GPUS": lambda sample: sample.gpus_idle,
    "RUNNING_WORKLOADS": lambda sample: sample.running,
    "PENDING_WORKLOADS": lambda sample: sample.waiting,
}
VALUE = obj(["value", "timestamp"], value=TEXT, timestamp=MOMENT)
MEASUREMENTS = obj(
    ["measurements"],
    measurements=array(obj(["type", "labels", "values"], type=words(*TYPES), labels=obj(), values=array(VALUE))),
)


class ProjectMetricsView(ApiView):
    @extend_schema(
        operation_id="get_project_metrics",
        description="What a project held between two moments. A moment at which something was not known has no value.",
        parameters=[
            schemas.parameter("metricType", said(TEXT, f"Some of {', '.join(TYPES)}, with commas between them."), "What is asked for."),
            schemas.parameter("start", MOMENT, "From when on."),
            schemas.parameter("end", MOMENT, "Until when."),
            schemas.parameter("numberOfSamples", schemas.WHOLE, "How many values of each, 20 where it is not given, at most 1000."),
        ],
        responses={200: schemas.answer(MEASUREMENTS)} | schemas.errors(400, 401, 403, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        project = _found(self.user, pk)
        asked = Asked(request)
        types, (start, end) = _types(asked), _span(asked)
        samples = _spread(project, start, end, asked.whole("numberOfSamples", 20, 0, MOST))
        measured = [
            {
                "type": name,
                "labels": {},
                "values": [_value(at, TYPES[name](sample)) for at, sample in samples if TYPES[name](sample) is not None],
            }
            for name in types
        ]
        return Response({"measurements": measured})


def _found(user: User, pk: int) -> Project:
    project: Project | None = Project.objects.visible_to(user).filter(pk=pk).first() if pk < 1 << 63 else None
    if project is None:
        raise Http404("There is no such project, or it is not yours to see.")
    access.require(user, Verb.VIEW, Entity.WORKLOADS, of_project(project))
    return project


def _types(asked: Asked) -> list[str]:
    given = [each.strip().upper() for each in asked.text("metricType").split(",") if each.strip()]
    if not given or set(given) - TYPES.keys():
        raise Invalid([("metricType", f"metricType must be some of {', '.join(TYPES)}, with commas between them.")])
    return list(dict.fromkeys(given))


def _span(asked: Asked) -> tuple[datetime, datetime]:
    start, end = asked.moment("start"), asked.moment("end")
    if start is None or end is None:
        name = "start" if start is None else "end"
        raise Invalid([(name, f"{name} must be a moment, as 2026-11-21T12:00:00Z.")])
    if not start < end <= start + LONGEST:
        raise Invalid([("end", f"end must be after start, and at most {LONGEST.days} days.")])
    return start, end


def _spread(project: Project, start: datetime, end: datetime, count: int) -> list[tuple[datetime, Sample]]:
    """The newest sample of each of so many equal parts, at the end of its part; none for a part without any."""
    found: dict[int, Sample] = {}
    part = (end - start) / max(1, count)
    for sample in Sample.objects.filter(project=project, at__gte=start, at__lt=end).order_by("at")[:MOST_ROWS]:
        found[int((sample.at - start) / part)] = sample
    return [(start + (number + 1) * part, sample) for number, sample in sorted(found.items())] if count else []


def _value(at: datetime, value: object) -> dict[str, Any]:
    return {"value": str(value), "timestamp": at.astimezone(UTC).isoformat().replace("+00:00", "Z")}

"""The page of how right forecasts of starts were, and the same as CSV."""

from collections.abc import Iterator

from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console import pagination
from console.http import build_empty_state
from console.streams import build_file_response
from console.texts import parse_number
from projects import access
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Verb
from workloads.models import ForecastRecord, Horizon
from workloads.overview.reliability_picture import build_reliability_picture
from workloads.queries import calibration as queries
from workloads.queries.forecasts import LEAST_RECORD, WINDOW

CSV_TITLES = ("Project", "Ahead", "Decided forecasts", "Right", "Share of right ones")


@require_safe
@never_cache
def calibration(request: Request) -> HttpResponse:
    """Show how right the forecasts were for projects whose workloads the reader may see."""
    project, horizon = _find_project(request), _find_horizon(request)
    summary = queries.load_calibration(_filter_records(request, project, horizon), timezone.now())
    return render(
        request,
        "forecasts/calibration.html",
        {
            "project": project,
            "horizon": horizon,
            "horizons": list(Horizon),
            "found": summary,
            "picture": build_reliability_picture(summary),
            "days": WINDOW.days,
            "least": LEAST_RECORD,
            **build_empty_state(
                "hourglass",
                "No forecast has been decided yet",
                "When work waits, Muster forecasts its start, and keeps what came of it. The page "
                "of a workload that waits has its forecast.",
            ),
        },
    )


@require_safe
@never_cache
def calibration_csv(request: Request) -> HttpResponseBase:
    """Return how right the forecasts were of all projects, by how far ahead they looked."""
    records = _filter_records(request, _find_project(request), _find_horizon(request))

    def render_lines() -> Iterator[str]:
        yield pagination.format_csv_line(CSV_TITLES)
        projects = queries.load_projects(records, timezone.now())
        for row in queries.iterate_rows(projects):
            yield pagination.format_csv_line(row)

    return build_file_response(render_lines(), "forecasts.csv", "text/csv; charset=utf-8")


def _filter_records(
    request: Request, project: Project | None, horizon: Horizon | None
) -> "QuerySet[ForecastRecord]":
    access.require_anywhere(request.user, Verb.VIEW, Entity.WORKLOADS)
    key = project.pk if project else None
    return queries.filter_records(request.user, timezone.now(), key, horizon)


def _find_project(request: Request) -> Project | None:
    """Return the project that the address names; 404 where the reader does not see it."""
    text = request.GET.get("project", "")
    if not text:
        return None
    visible = Project.objects.visible_to(request.user)
    project: Project = get_object_or_404(visible, pk=parse_number(text))
    return project


def _find_horizon(request: Request) -> Horizon | None:
    wanted = request.GET.get("horizon", "")
    return next((each for each in Horizon if each.value == wanted), None)

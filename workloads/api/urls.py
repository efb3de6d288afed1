"""The addresses of this room, the description of the whole API, and the answer for whatever is not
there.
"""

from collections.abc import Iterator

from django.urls import URLPattern, path, re_path

from workloads.api import details, lists, submissions, templates
from workloads.api.api_description import NotFoundView, SchemaView
from workloads.api.logs import LogsView
from workloads.api.metrics import DepartmentMetricsView, ProjectMetricsView
from workloads.specs import Architecture


def _build_workload_paths(name: str, architecture: Architecture) -> list[URLPattern]:
    """The addresses of distributed workloads, or of standard ones."""
    views = submissions
    return [
        path(
            f"workloads/{name}",
            views.SubmitView.as_view(architecture=architecture),
            name=f"api-{name}",
        ),
        path(
            f"workloads/{name}/<uuid:workload_id>",
            views.SubmittedView.as_view(architecture=architecture),
            name=f"api-{name}-one",
        ),
        path(
            f"workloads/{name}/<uuid:workload_id>/suspend",
            views.SuspendView.as_view(architecture=architecture),
            name=f"api-{name}-suspend",
        ),
        path(
            f"workloads/{name}/<uuid:workload_id>/resume",
            views.ResumeView.as_view(architecture=architecture),
            name=f"api-{name}-resume",
        ),
    ]


def _build_template_paths() -> Iterator[URLPattern]:
    """The addresses of templates: of all, and the same of each architecture."""
    yield path(
        "workload-templates/count",
        templates.TemplatesCountView.as_view(),
        name="api-templates-count",
    )
    for name, architecture in (
        ("", None),
        ("distributed", Architecture.DISTRIBUTED),
        ("trainings", Architecture.STANDARD),
    ):
        at, end = (
            ("workload-templates" + (f"/{name}" if name else "")),
            (f"-{name}" if name else ""),
        )
        many, one = templates.build_views(architecture, name.removesuffix("s") or "workload")
        yield path(at, many.as_view(), name=f"api-templates{end}")
        yield path(f"{at}/<uuid:key>", one.as_view(), name=f"api-template{end}")


urlpatterns = [
    *_build_workload_paths("distributed", Architecture.DISTRIBUTED),
    *_build_workload_paths("trainings", Architecture.STANDARD),
    path("workloads", lists.WorkloadsView.as_view(), name="api-workloads"),
    path("workloads/count", lists.WorkloadsCountView.as_view(), name="api-workloads-count"),
    path("workloads/pods", lists.PodsView.as_view(), name="api-pods"),
    path("workloads/<uuid:workload_id>", details.WorkloadView.as_view(), name="api-workload"),
    path(
        "workloads/<uuid:workload_id>/pods",
        details.WorkloadPodsView.as_view(),
        name="api-workload-pods",
    ),
    path(
        "workloads/<uuid:workload_id>/events",
        details.EventsView.as_view(),
        name="api-workload-events",
    ),
    path(
        "workloads/<uuid:workload_id>/history",
        details.HistoryView.as_view(),
        name="api-workload-history",
    ),
    path(
        "workloads/<uuid:workload_id>/pods/<str:pod_name>/logs",
        LogsView.as_view(),
        name="api-pod-logs",
    ),
    *_build_template_paths(),
    path(
        "org-unit/departments/<int:pk>/metrics",
        DepartmentMetricsView.as_view(),
        name="api-department-metrics",
    ),
    path(
        "org-unit/projects/<int:pk>/metrics",
        ProjectMetricsView.as_view(),
        name="api-project-metrics",
    ),
    path("schema", SchemaView.as_view(), name="api-schema"),
    # Last of all rooms: clients of the API read JSON only, so they get their 404 as such.
    re_path("", NotFoundView.as_view(), name="api-not-there"),
]

"""The addresses of this room, the description of the whole API, and the answer for whatever is not there."""

from django.urls import URLPattern, path, re_path

from workloads.api import details, lists, submitting, templates
from workloads.api.about import NotThere, SchemaView
from workloads.api.logs import LogsView
from workloads.api.metrics import ProjectMetricsView
from workloads.specs import Architecture


def _of_one_kind(name: str, architecture: Architecture) -> list[URLPattern]:
    """The addresses of distributed workloads, or of standard ones."""
    views = submitting
    return [
        path(f"workloads/{name}", views.SubmitView.as_view(architecture=architecture), name=f"api-{name}"),
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


urlpatterns = [
    *_of_one_kind("distributed", Architecture.DISTRIBUTED),
    *_of_one_kind("trainings", Architecture.STANDARD),
    path("workloads", lists.WorkloadsView.as_view(), name="api-workloads"),
    path("workloads/pods", lists.PodsView.as_view(), name="api-pods"),
    path("workloads/<uuid:workload_id>", details.WorkloadView.as_view(), name="api-workload"),
    path("workloads/<uuid:workload_id>/pods", details.WorkloadPodsView.as_view(), name="api-workload-pods"),
    path("workloads/<uuid:workload_id>/events", details.EventsView.as_view(), name="api-workload-events"),
    path("workloads/<uuid:workload_id>/history", details.HistoryView.as_view(), name="api-workload-history"),
    path("workloads/<uuid:workload_id>/pods/<str:pod_name>/logs", LogsView.as_view(), name="api-pod-logs"),
    path("workload-templates", templates.TemplatesView.as_view(), name="api-templates"),
    path("workload-templates/<uuid:key>", templates.TemplateView.as_view(), name="api-template"),
    path("org-unit/projects/<int:pk>/metrics", ProjectMetricsView.as_view(), name="api-project-metrics"),
    path("schema", SchemaView.as_view(), name="api-schema"),
    # Last of all rooms: clients of the API read JSON only, so they get their 404 as such.
    re_path("", NotThere.as_view(), name="api-not-there"),
]

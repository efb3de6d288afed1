"""The addresses of workloads and templates in the REST API, and of its description."""

from collections.abc import Iterator

from django.urls import URLPattern, path

from environments.api.asset_names import build_name_view
from environments.kinds import TEMPLATE
from projects.api.name_availability import PATH as NAME_PATH
from workloads.api import batch, details, lists, pods, previews, submissions, templates
from workloads.api.alternatives import AlternativesView, SubmissionAlternativesView
from workloads.api.api_description import SchemaView
from workloads.api.excluded_nodes import ExcludedNodesView
from workloads.api.findings import FindingsView
from workloads.api.forecasts import CalibrationView, ForecastView
from workloads.api.logs import LogsView
from workloads.api.metrics import (
    ClusterMetricsView,
    DepartmentMetricsView,
    NodeMetricsView,
    PodMetricsView,
    ProjectMetricsView,
    WorkloadMetricsView,
)
from workloads.api.name_availability import WorkloadNameView
from workloads.api.progress import ProgressView
from workloads.api.quota_trials import QuotaTrialsView, QuotaTrialView
from workloads.api.telemetry import WorkloadsTelemetryView
from workloads.api.time_machine import TimeMachineView
from workloads.api.timeline import TimelineView
from workloads.api.usage import UsageView
from workloads.specs import Architecture


def _build_workload_paths(name: str, architecture: Architecture) -> list[URLPattern]:
    """Return the addresses of distributed workloads, or of standard ones."""
    views = submissions
    return [
        path(
            f"workloads/{name}",
            views.SubmitView.as_view(architecture=architecture),
            name=f"api-{name}",
        ),
        path(
            f"workloads/{name}/preview",
            previews.PreviewView.as_view(architecture=architecture),
            name=f"api-{name}-preview",
        ),
        path(
            f"workloads/{name}/preflight",
            previews.PreflightView.as_view(architecture=architecture),
            name=f"api-{name}-preflight",
        ),
        path(
            f"workloads/{name}/alternatives",
            SubmissionAlternativesView.as_view(architecture=architecture),
            name=f"api-{name}-alternatives",
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
    """Yield the addresses of templates: of all, and the same of each architecture."""
    yield path(
        f"workload-templates/{NAME_PATH}",
        build_name_view(TEMPLATE, "template", "templates").as_view(),
        name="api-templates-name",
    )
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
        route, suffix = (
            ("workload-templates" + (f"/{name}" if name else "")),
            (f"-{name}" if name else ""),
        )
        list_view, item_view = templates.build_views(
            architecture, name.removesuffix("s") or "workload"
        )
        yield path(route, list_view.as_view(), name=f"api-templates{suffix}")
        yield path(f"{route}/<uuid:key>", item_view.as_view(), name=f"api-template{suffix}")


urlpatterns = [
    *_build_workload_paths("distributed", Architecture.DISTRIBUTED),
    *_build_workload_paths("trainings", Architecture.STANDARD),
    path("workloads", lists.WorkloadsView.as_view(), name="api-workloads"),
    path("workloads/count", lists.WorkloadsCountView.as_view(), name="api-workloads-count"),
    path("workloads/telemetry", WorkloadsTelemetryView.as_view(), name="api-workloads-telemetry"),
    path(f"workloads/{NAME_PATH}", WorkloadNameView.as_view(), name="api-workloads-name"),
    path("workloads/batch", batch.WorkloadsBatchView.as_view(), name="api-workloads-batch"),
    path("workloads/pods", pods.PodsView.as_view(), name="api-pods"),
    path("workloads/<uuid:workload_id>", details.WorkloadView.as_view(), name="api-workload"),
    path(
        "workloads/<uuid:workload_id>/pods",
        pods.WorkloadPodsView.as_view(),
        name="api-workload-pods",
    ),
    path(
        "workloads/<uuid:workload_id>/data-delivery",
        details.DataDeliveryView.as_view(),
        name="api-workload-data-delivery",
    ),
    path(
        "workloads/<uuid:workload_id>/events",
        details.EventsView.as_view(),
        name="api-workload-events",
    ),
    path(
        "workloads/<uuid:workload_id>/progress",
        ProgressView.as_view(),
        name="api-workload-progress",
    ),
    path(
        "workloads/<uuid:workload_id>/findings",
        FindingsView.as_view(),
        name="api-workload-findings",
    ),
    path(
        "workloads/<uuid:workload_id>/timeline",
        TimelineView.as_view(),
        name="api-workload-timeline",
    ),
    path(
        "workloads/<uuid:workload_id>/excluded-nodes",
        ExcludedNodesView.as_view(),
        name="api-workload-excluded-nodes",
    ),
    path(
        "workloads/<uuid:workload_id>/history",
        details.HistoryView.as_view(),
        name="api-workload-history",
    ),
    path(
        "workloads/<uuid:workload_id>/pods/<str:pod_id>/logs",
        LogsView.as_view(),
        name="api-pod-logs",
    ),
    path(
        "workloads/<uuid:workload_id>/metrics",
        WorkloadMetricsView.as_view(),
        name="api-workload-metrics",
    ),
    path(
        "workloads/<uuid:workload_id>/pods/<str:pod_id>/metrics",
        PodMetricsView.as_view(),
        name="api-pod-metrics",
    ),
    path("nodes/<int:pk>/metrics", NodeMetricsView.as_view(), name="api-node-metrics"),
    path("clusters/<uuid:pk>/metrics", ClusterMetricsView.as_view(), name="api-cluster-metrics"),
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
    path(
        "workloads/<uuid:workload_id>/alternatives",
        AlternativesView.as_view(),
        name="api-workload-alternatives",
    ),
    path(
        "workloads/<uuid:workload_id>/forecast",
        ForecastView.as_view(),
        name="api-workload-forecast",
    ),
    path("forecasts/calibration", CalibrationView.as_view(), name="api-forecast-calibration"),
    path("time-machine", TimeMachineView.as_view(), name="api-time-machine"),
    path("quota-trials", QuotaTrialsView.as_view(), name="api-quota-trials"),
    path("quota-trials/<uuid:pk>", QuotaTrialView.as_view(), name="api-quota-trial"),
    path("usage", UsageView.as_view(), name="api-usage"),
    path("schema", SchemaView.as_view(), name="api-schema"),
]

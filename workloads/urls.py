"""The URLs of workloads."""

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from workloads.api import reference_pages
from workloads.views import (
    actions,
    alternatives,
    data_delivery,
    details,
    forecasts,
    ledger,
    live,
    metrics,
    overview,
    owner_metrics,
    pod_changes,
    saved_views,
    time_machine,
    timeline,
    training,
    trials,
    wizard_assets,
)
from workloads.views import logs as log_views
from workloads.views import policies as policy_views
from workloads.views import table as table_views
from workloads.views import wizard as wizard_views
from workloads.views import wizard_templates as template_views

# The table, the details, and the actions on a workload.
table: list[URLPattern] = [
    path(
        "",
        RedirectView.as_view(pattern_name="workloads", http_method_names=["get", "head"]),
        name="home",
    ),
    path("workloads", table_views.table, name="workloads"),
    path("workloads/changes", table_views.changes, name="workloads-changes"),
    path("workloads/live", live.stream_table, name="workloads-live"),
    path("workloads.csv", table_views.table_csv, name="workloads-csv"),
    path("workloads/bulk", actions.bulk, name="workloads-bulk"),
    path("workloads/views/new", saved_views.save_view, name="workloads-view-new"),
    path("workloads/views/<uuid:view_id>", saved_views.edit_view, name="workloads-view"),
    path(
        "workloads/views/<uuid:view_id>/delete",
        saved_views.delete_view,
        name="workloads-view-delete",
    ),
    path("workloads/<uuid:pk>", details.details, name="workload"),
    path(
        "workloads/<uuid:pk>/alternatives",
        alternatives.workload_alternatives,
        name="workload-alternatives",
    ),
    path("workloads/<uuid:pk>/head", details.head, name="workload-head"),
    path("workloads/<uuid:pk>/events", details.events, name="workload-events"),
    path("workloads/<uuid:pk>/pods", details.pods, name="workload-pods"),
    path("workloads/<uuid:pk>/pod-changes", pod_changes.pod_changes, name="workload-pod-changes"),
    path("workloads/<uuid:pk>/delivery", data_delivery.delivery, name="workload-delivery"),
    path("workloads/<uuid:pk>/training", training.training, name="workload-training"),
    path(
        "workloads/<uuid:pk>/timeline-lanes",
        timeline.timeline_lanes,
        name="workload-timeline-lanes",
    ),
    path("workloads/<uuid:pk>/timeline.svg", timeline.timeline_svg, name="workload-timeline-svg"),
    path("workloads/<uuid:pk>/metric-frames", metrics.metric_frames, name="workload-metric-frames"),
    path("workloads/<uuid:pk>/live", live.stream_workload, name="workload-live"),
    path("workloads/<uuid:pk>/stop", actions.stop, name="workload-stop"),
    path("workloads/<uuid:pk>/run", actions.run, name="workload-run"),
    path("workloads/<uuid:pk>/delete", actions.delete, name="workload-delete"),
    path("workloads/<uuid:pk>/exclude-node", actions.exclude_node, name="workload-exclude-node"),
    path("workloads/<uuid:pk>/<slug:tab>", details.details, name="workload-tab"),
]

# The wizard.
wizard: list[URLPattern] = [
    path("workloads/new", wizard_views.start_draft, name="workload-new"),
    path(
        "workloads/new/<uuid:draft>/assets/<slug:kind>",
        wizard_assets.new_asset,
        name="wizard-asset",
    ),
    path(
        "workloads/new/<uuid:draft>/template", template_views.save_template, name="wizard-template"
    ),
    path(
        "workloads/new/<uuid:draft>/templates",
        template_views.template_choices,
        name="wizard-templates",
    ),
    path(
        "workloads/new/<uuid:draft>/machines",
        wizard_views.show_machines,
        name="wizard-machines",
    ),
    path(
        "workloads/new/<uuid:draft>/preflight",
        wizard_views.show_preflight,
        name="wizard-preflight",
    ),
    path(
        "workloads/new/<uuid:draft>/alternatives",
        alternatives.draft_alternatives,
        name="wizard-alternatives",
    ),
    path("templates/design", template_views.design_template, name="template-design"),
    path("templates/<uuid:key>/design", template_views.redesign_template, name="template-redesign"),
    path(
        "workloads/new/<uuid:draft>/<slug:step>/typed", wizard_views.save_step, name="wizard-save"
    ),
    path("workloads/new/<uuid:draft>/<slug:step>", wizard_views.wizard_step, name="wizard"),
]

# The policies in force.
policies: list[URLPattern] = [
    path("policies/effective", policy_views.effective_policies, name="policies-effective")
]

# Logs.
logs: list[URLPattern] = [
    path("workloads/<uuid:pk>/logs/window", log_views.window, name="log-window"),
    path("workloads/<uuid:pk>/logs/search", log_views.search, name="log-search"),
    path("workloads/<uuid:pk>/logs/stream", log_views.stream, name="log-stream"),
    path("workloads/<uuid:pk>/logs/download", log_views.download, name="log-download"),
]

# The overview, and the current state on a project's page.
glance: list[URLPattern] = [
    path("overview", overview.overview, name="overview"),
    path("overview/allocation", overview.allocation, name="overview-allocation"),
    path("overview/<slug:chart>.csv", overview.chart, name="overview-csv"),
    path("forecasts", forecasts.calibration, name="forecasts"),
    path("forecasts.csv", forecasts.calibration_csv, name="forecasts-csv"),
    path("time-machine", time_machine.time_machine, name="time-machine"),
    path("usage", ledger.usage, name="usage"),
    path("projects/<int:pk>/usage", ledger.project_usage, name="project-usage"),
    path("projects/<int:pk>/now", overview.project_state, name="project-now"),
    path("nodes/<int:pk>/metric-frames", owner_metrics.node_frames, name="node-metric-frames"),
    path(
        "node-pools/<int:pk>/metric-frames",
        owner_metrics.node_pool_frames,
        name="node-pool-metric-frames",
    ),
    path(
        "projects/<int:pk>/metric-frames",
        owner_metrics.project_frames,
        name="project-metric-frames",
    ),
    path("projects/<int:pk>/allocation", overview.project_allocation, name="project-allocation"),
]

# Other quotas and nodes, tried on the past.
quota_trials: list[URLPattern] = [
    path("quota-trials", trials.trials, name="quota-trials"),
    path("clusters/<uuid:pk>/quota-trial", trials.trial_new, name="quota-trial-new"),
    path("quota-trials/<uuid:pk>", trials.trial, name="quota-trial"),
    path("quota-trials/<uuid:pk>/cancel", trials.trial_cancel, name="quota-trial-cancel"),
]

# The REST API as pages.
reference: list[URLPattern] = [
    path("rest", reference_pages.show_reference, name="rest-reference"),
    path("rest/<slug:operation>", reference_pages.show_operation, name="rest-operation"),
]

urlpatterns = [*glance, *table, *wizard, *policies, *logs, *quota_trials, *reference]

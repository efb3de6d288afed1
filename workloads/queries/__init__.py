"""The queries of pages and of the REST API.

Every function takes rows or a user, reads a bounded number of rows, and changes nothing.
"""

from workloads.queries.changes import Changes, load_changes, load_position
from workloads.queries.data_delivery import (
    DataWorkerView,
    DeliveryView,
    PreparationView,
    RankView,
    load_delivery,
    load_preparations,
)
from workloads.queries.disruptions import (
    EventWords,
    Notice,
    load_disruptions,
    load_event_words,
    load_notices,
)
from workloads.queries.explanations import (
    Explanation,
    diagnose_failed_workloads,
    explain_workload,
    explain_workloads,
)
from workloads.queries.findings import (
    FindingView,
    GravestFinding,
    WatchView,
    load_findings,
    load_gravest_findings,
    load_open_findings,
    load_watch,
)
from workloads.queries.forecasts import ForecastView, view_forecast
from workloads.queries.history import HistoryFilter, load_history
from workloads.queries.metrics import (
    MetricsView,
    iterate_frames,
    list_measured_pods,
    pack_metrics,
    view_metrics,
)
from workloads.queries.node_capacity import load_node_capacities
from workloads.queries.owner_metrics import (
    MOST_POOL_NODES,
    MeasuredPart,
    get_project_part,
    iterate_part_rows,
    list_node_parts,
    pack_part_metrics,
)
from workloads.queries.pods import (
    MOST_PODS,
    PodFilter,
    list_pod_names,
    load_pod_page,
    load_pods,
)
from workloads.queries.table import (
    list_in_projects,
    select_table_fields,
)
from workloads.queries.timeline import load_timeline
from workloads.queries.training_progress import (
    ProgressDetails,
    ProgressView,
    load_progress_details,
    view_progress,
)
from workloads.queries.workload_diagnosis import WorkloadDiagnosis, diagnose_workload

__all__ = [
    "MOST_PODS",
    "MOST_POOL_NODES",
    "Changes",
    "DataWorkerView",
    "DeliveryView",
    "EventWords",
    "Explanation",
    "FindingView",
    "ForecastView",
    "GravestFinding",
    "HistoryFilter",
    "MeasuredPart",
    "MetricsView",
    "Notice",
    "PodFilter",
    "PreparationView",
    "ProgressDetails",
    "ProgressView",
    "RankView",
    "WatchView",
    "WorkloadDiagnosis",
    "diagnose_failed_workloads",
    "diagnose_workload",
    "explain_workload",
    "explain_workloads",
    "get_project_part",
    "iterate_frames",
    "iterate_part_rows",
    "list_in_projects",
    "list_measured_pods",
    "list_node_parts",
    "list_pod_names",
    "load_changes",
    "load_delivery",
    "load_disruptions",
    "load_event_words",
    "load_findings",
    "load_gravest_findings",
    "load_history",
    "load_node_capacities",
    "load_notices",
    "load_open_findings",
    "load_pod_page",
    "load_pods",
    "load_position",
    "load_preparations",
    "load_progress_details",
    "load_timeline",
    "load_watch",
    "pack_metrics",
    "pack_part_metrics",
    "select_table_fields",
    "view_forecast",
    "view_metrics",
    "view_progress",
]

"""The only writer of workloads' status, attempts, pods and events.

Every change gets a position and wakes the pages that show it.
"""

from workloads.journal.cluster_events import Subject, find_subjects
from workloads.journal.cluster_removal import abandon_workloads
from workloads.journal.data_preparation import (
    PreparationChange,
    close_preparations,
    record_data_failure,
    record_failed_job,
    record_preparation_trouble,
    record_preparations,
    record_rank_counters,
    record_resumption,
)
from workloads.journal.disruption_records import (
    REASONS as DISRUPTION_REASONS,
)
from workloads.journal.disruption_records import (
    DisruptionRecord,
    dismiss_notices,
    record_disruptions,
)
from workloads.journal.event_allowance import EventAllowances
from workloads.journal.forecast_records import (
    ForecastUpdate,
    claim_forecast,
    clear_forecasts,
    hide_likely_starts,
    record_forecasts,
    settle_forecast_records,
)
from workloads.journal.gpu_use import record_gpu_use
from workloads.journal.left_out_events import MAX_EVENTS, record_left_out_events
from workloads.journal.observed_objects import Kind, Observation, uid_of
from workloads.journal.observing import (
    KnownObject,
    Listing,
    list_known_objects,
    reconcile_workload,
    record_listing,
    record_observations,
)
from workloads.journal.radar_findings import (
    RadarUpdate,
    close_findings,
    record_radar,
    record_radar_action,
)
from workloads.journal.scaling import (
    cancel_scaling,
    drop_scaling,
    plan_scaling,
    record_foreign_scaling,
    record_no_growth,
    record_room,
    record_scaling,
)
from workloads.journal.step_results import (
    record_delay,
    record_launch,
    record_refusal,
    record_release,
)
from workloads.journal.training_progress import ProgressUpdate, record_training_progress
from workloads.journal.user_requests import (
    cancel_due_run,
    create_workload,
    exclude_nodes,
    record_warning,
    request_deletion,
    request_run,
    request_stop,
    require_free_name,
    suggest_free_name,
)
from workloads.journal.workload_names import WorkloadNames

__all__ = [
    "DISRUPTION_REASONS",
    "MAX_EVENTS",
    "DisruptionRecord",
    "EventAllowances",
    "ForecastUpdate",
    "Kind",
    "KnownObject",
    "Listing",
    "Observation",
    "PreparationChange",
    "ProgressUpdate",
    "RadarUpdate",
    "Subject",
    "WorkloadNames",
    "abandon_workloads",
    "cancel_due_run",
    "cancel_scaling",
    "claim_forecast",
    "clear_forecasts",
    "close_findings",
    "close_preparations",
    "create_workload",
    "dismiss_notices",
    "drop_scaling",
    "exclude_nodes",
    "find_subjects",
    "hide_likely_starts",
    "list_known_objects",
    "plan_scaling",
    "reconcile_workload",
    "record_data_failure",
    "record_delay",
    "record_disruptions",
    "record_failed_job",
    "record_forecasts",
    "record_foreign_scaling",
    "record_gpu_use",
    "record_launch",
    "record_left_out_events",
    "record_listing",
    "record_no_growth",
    "record_observations",
    "record_preparation_trouble",
    "record_preparations",
    "record_radar",
    "record_radar_action",
    "record_rank_counters",
    "record_refusal",
    "record_release",
    "record_resumption",
    "record_room",
    "record_scaling",
    "record_training_progress",
    "record_warning",
    "request_deletion",
    "request_run",
    "request_stop",
    "require_free_name",
    "settle_forecast_records",
    "suggest_free_name",
    "uid_of",
]

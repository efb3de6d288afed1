"""The steps of a workload's life in its cluster. Each may run twice, late or never."""

from clusters.tasks import heartbeat, heartbeats, provision
from projects.tasks import forget
from workloads.tasks.accounting import account_gpu_hours
from workloads.tasks.disruptions import tell_disruptions
from workloads.tasks.forecasting import forecast_all
from workloads.tasks.launching import launch
from workloads.tasks.limiting import limit
from workloads.tasks.measuring import measure, measure_all, thin_metrics
from workloads.tasks.polling import poll, poll_all
from workloads.tasks.preparing import follow_preparations, resume
from workloads.tasks.reconciliation import reconcile
from workloads.tasks.retaining import retain
from workloads.tasks.sampling import sample, thin
from workloads.tasks.scaling import scale, scale_all
from workloads.tasks.sweeping import sweep
from workloads.tasks.teardown import remove, stop, tidy, tidy_data
from workloads.tasks.training_progress import follow_training
from workloads.tasks.trials import play_trials
from workloads.tasks.watching import watch_workloads

__all__ = [
    "account_gpu_hours",
    "follow_preparations",
    "follow_training",
    "forecast_all",
    "forget",
    "heartbeat",
    "heartbeats",
    "launch",
    "limit",
    "measure",
    "measure_all",
    "play_trials",
    "poll",
    "poll_all",
    "provision",
    "reconcile",
    "remove",
    "resume",
    "retain",
    "sample",
    "scale",
    "scale_all",
    "stop",
    "sweep",
    "tell_disruptions",
    "thin",
    "thin_metrics",
    "tidy",
    "tidy_data",
    "watch_workloads",
]

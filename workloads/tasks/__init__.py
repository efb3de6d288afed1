"""The steps of a workload's life in its cluster, and beat's schedule of the periodic ones.

Each may run twice, late or never.
"""

from datetime import timedelta

from django.conf import settings

from clusters.tasks import heartbeat, heartbeats, provision
from console.celery import app
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

_EVERY = {
    "workloads.tasks.sweeping.sweep": settings.OPTIONS.sweep_seconds,
    "workloads.tasks.limiting.limit": 15,
    "workloads.tasks.disruptions.tell_disruptions": 5,
    "workloads.tasks.scaling.scale_all": 10,
    "workloads.tasks.preparing.follow_preparations": 3,
    "workloads.tasks.training_progress.follow_training": 5,
    "workloads.tasks.watching.watch_workloads": 10,
    "workloads.tasks.polling.poll_all": settings.OPTIONS.poll_seconds,
    "clusters.tasks.heartbeats": 30,
    "workloads.tasks.retaining.retain": 3600,
    "projects.tasks.forget": 3600,
    "workloads.tasks.measuring.measure_all": settings.OPTIONS.metric_seconds,
    "workloads.tasks.measuring.thin_metrics": 60,
    "workloads.tasks.sampling.sample": settings.OPTIONS.sample_seconds,
    "workloads.tasks.sampling.thin": 3600,
    "workloads.tasks.accounting.account_gpu_hours": 60,
    "workloads.tasks.forecasting.forecast_all": 20,
    "workloads.tasks.trials.play_trials": 20,
    "workloads.recording.turns.record_state": 30,
}

# A message that no worker took in time is worth nothing: the next one asks for the same.
app.conf.beat_schedule = {
    name: {"task": name, "schedule": timedelta(seconds=seconds), "options": {"expires": seconds}}
    for name, seconds in _EVERY.items()
}

"""Workloads, their attempts and pods, as last seen, and all other rows of this room by name.

Only `journal` writes a workload's status.
"""

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from projects.querysets import InProject
from workloads.data_models import DataPreparation, RankDelivery
from workloads.event_models import Event
from workloads.forecast_models import (
    FORECAST_AGE,
    MOST_FORECASTS,
    NO_LIKELY_START,
    ClusterForecast,
    ForecastOutlook,
    ForecastRecord,
    Horizon,
    WorkloadForecast,
)
from workloads.form_models import Draft, SavedView
from workloads.ledger_models import LedgerBookmark, LedgerEntry, LedgerLoss
from workloads.log_models import Log
from workloads.metric_models import MetricRollup, MetricRow, MetricSeries
from workloads.pod_counts import Standing
from workloads.progress_models import LossCurve, RankProgress, TrainingProgress
from workloads.radar_models import RadarFinding, RadarWatch
from workloads.specs import Framework
from workloads.states import GONE, BadgeLook, Status, was_suspended_by_others
from workloads.time_machine_models import StateBlock, StateBookmark, StateDelta
from workloads.trial_models import (
    MOST_OPEN_TRIALS,
    MOST_TRIALS,
    MOST_TRIALS_OF_ONE,
    OPEN_TRIALS,
    TRIAL_AGE,
    TRIAL_WINDOW,
    QuotaTrial,
    TrialStatus,
)

__all__ = [
    "FORECAST_AGE",
    "MOST_FORECASTS",
    "MOST_OPEN_TRIALS",
    "MOST_TRIALS",
    "MOST_TRIALS_OF_ONE",
    "NO_LIKELY_START",
    "OPEN_TRIALS",
    "TRIAL_AGE",
    "TRIAL_WINDOW",
    "Attempt",
    "ClusterForecast",
    "DataPreparation",
    "Desired",
    "Draft",
    "Event",
    "ForecastOutlook",
    "ForecastRecord",
    "Horizon",
    "LedgerBookmark",
    "LedgerEntry",
    "LedgerLoss",
    "Log",
    "LossCurve",
    "MetricRollup",
    "MetricRow",
    "MetricSeries",
    "Pod",
    "Position",
    "QuotaTrial",
    "RadarFinding",
    "RadarWatch",
    "RankDelivery",
    "RankProgress",
    "Sample",
    "SavedView",
    "StateBlock",
    "StateBookmark",
    "StateDelta",
    "TrainingProgress",
    "TrialStatus",
    "UsedAsset",
    "Workload",
    "WorkloadForecast",
]

ZERO = Decimal(0)
CONSTANT_ZERO = models.Value(0)
"""A decimal's default in the database. SQLite adds no column with what Django makes of ZERO there:
the cast is not a constant to it.
"""


def _build_choices(enum: Any) -> list[tuple[str, str]]:
    return [(each.value, getattr(each, "label", each.value)) for each in enum]


class Desired(models.TextChoices):
    """What the person wants of a workload: the sweep repeats steps until the cluster agrees."""

    RUNNING = "Running"
    STOPPED = "Stopped"
    DELETED = "Deleted"


class Workload(models.Model):
    """One submission and everything that became of it.

    `name` is also the name of its objects in the cluster. It is unique in its project until
    `released_at`, when the cluster has released them. `changed` is the journal's position of the
    last change: pages ask for changes after a position.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(
        "projects.Project", models.PROTECT, related_name="workloads", db_index=False
    )
    cluster = models.ForeignKey("clusters.Cluster", models.PROTECT, related_name="workloads")
    name = models.CharField(max_length=63)
    architecture = models.CharField(max_length=16)
    framework = models.CharField(max_length=16, blank=True)
    job_kind = models.CharField(max_length=64, default="")
    """The kind that represents it in its cluster, as "kubeflow.org/v1/PyTorchJob". It is decided
    when an attempt is requested.
    """
    spec = models.JSONField()
    """The submission, as `specs.to_json` writes it."""
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    preemptible = models.BooleanField(default=True)
    priority = models.CharField(max_length=16, blank=True)
    auto_delete_seconds = models.PositiveBigIntegerField(null=True)
    """Seconds after its end until it is deleted automatically; None: it is kept."""

    status = models.CharField(
        max_length=16, choices=_build_choices(Status), default=Status.CREATING.value
    )
    reason = models.TextField(blank=True)
    """Why it is in this status, in words. The text may come from the cluster, so it is hostile."""
    status_at = models.DateTimeField(default=timezone.now)
    desired = models.CharField(max_length=8, choices=Desired, default=Desired.RUNNING)
    attempt = models.PositiveIntegerField(default=1)

    pod_counts = models.JSONField(null=True)
    """The counts of its pods (`pod_counts.PodCounts`). None: unknown, to be counted anew."""
    running_pods = models.PositiveIntegerField(default=0)
    requested_pods = models.PositiveIntegerField(default=0)
    ended = models.CharField(max_length=120, blank=True)
    """How the pods of the attempt ended: "3 succeeded"."""
    gpus_requested = models.DecimalField(max_digits=12, decimal_places=3, default=ZERO)
    gpus_allocated = models.DecimalField(max_digits=12, decimal_places=3, default=ZERO)
    gpu_memory_requested = models.BigIntegerField(default=0)
    """MiB of shared devices."""
    cpu_requested = models.DecimalField(
        max_digits=12, decimal_places=3, default=ZERO, db_default=CONSTANT_ZERO
    )
    """Cores, like `cpu_allocated`."""
    cpu_allocated = models.DecimalField(
        max_digits=12, decimal_places=3, default=ZERO, db_default=CONSTANT_ZERO
    )
    memory_requested = models.BigIntegerField(default=0, db_default=0)
    """Bytes, like `memory_allocated`."""
    memory_allocated = models.BigIntegerField(default=0, db_default=0)

    # What lists show of the spec, which is large (`spec_summary`).
    image = models.CharField(max_length=512, blank=True, default="", db_default="")
    command = models.CharField(max_length=500, blank=True, default="", db_default="")
    node_pools = models.CharField(max_length=500, blank=True, default="", db_default="")
    labels = models.CharField(max_length=1000, blank=True, default="", db_default="")

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    """When this attempt first ran."""
    ended_at = models.DateTimeField(null=True)
    """When this attempt ended or was stopped."""
    ran_seconds = models.FloatField(default=0)
    """Running time of the attempts before this one, in seconds."""
    deleted_at = models.DateTimeField(null=True)
    """When deletion was requested."""
    released_at = models.DateTimeField(null=True)
    """When the cluster had released all its objects; it is then listed under Deleted."""

    job = models.JSONField(null=True)
    """The attempt's job object as last seen, without fields that nobody reads."""
    job_uid = models.CharField(max_length=64, blank=True)
    pod_group = models.JSONField(null=True)
    data_job = models.JSONField(null=True)
    """The batch Job of the attempt's data workers, likewise."""

    changed = models.BigIntegerField(default=0)
    tries = models.PositiveIntegerField(default=0)
    """How often the step that `desired` and `status` call for has failed; 0 once it worked."""
    next_try_at = models.DateTimeField(null=True)
    """When the sweep may queue that step again; None: no step is outstanding."""
    trouble = models.TextField(blank=True)
    """Why that step failed the last time."""

    time_limit_seconds = models.PositiveIntegerField(null=True)
    """Seconds that it may be in Running, over all attempts: its project's limit at submission."""
    idle_limit_seconds = models.PositiveIntegerField(null=True)
    """Seconds that it may hold GPUs without using them."""
    limit_warned_at = models.DateTimeField(null=True)
    """When the history got the warning that half of a limit is used."""
    idle_since = models.DateTimeField(null=True)
    """Since when its GPUs are entirely unused. None while they are used or where that is unknown:
    `is_use_known` says which.
    """
    is_use_known = models.BooleanField(default=False)
    """Whether the last sample knew the use of all its GPUs."""

    min_pods = models.PositiveIntegerField(null=True)
    """The fewest pods that an elastic workload runs with; None where it is not elastic."""
    max_pods = models.PositiveIntegerField(null=True)
    data_workers = models.PositiveSmallIntegerField(null=True)
    """How many data workers load what it trains on; None where it loads that itself."""
    disrupted_at = models.DateTimeField(null=True)
    """Since when pods are taken from it, until the history tells how it went on; else None."""
    excluded_nodes = models.JSONField(default=list)
    """Names of nodes that its next attempts do not run on."""
    is_run_due = models.BooleanField(default=False, db_default=False)
    """Whether it is to run again as soon as it has stopped."""
    likely_start_at = models.DateTimeField(default=NO_LIKELY_START, db_default=NO_LIKELY_START)
    """When it is likely to start, for lists; NO_LIKELY_START where nothing is forecast."""

    objects = InProject.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name"],
                condition=models.Q(released_at=None),
                name="workload_name_once_a_project",
            )
        ]
        indexes = [
            # The orders of the table. What it is filtered by comes last: a page is found without
            # looking into the rows, which are large. An index on the project or the submitter alone
            # would tempt a planner to sort everything.
            models.Index(
                fields=["-created_at", "-id", "project", "status", "name"],
                condition=models.Q(released_at=None),
                name="workload_newest",
            ),
            # The orders by project, department and cluster read all rows: SQLite takes them out of
            # an index alone only where that has the column of its own condition, too.
            models.Index(
                fields=["project", "-created_at", "-id", "cluster", "released_at"],
                condition=models.Q(released_at=None),
                name="workload_newest_of_project",
            ),
            models.Index(
                fields=["cluster", "-created_at", "-id", "project", "released_at"],
                condition=models.Q(released_at=None),
                name="workload_newest_of_cluster",
            ),
            models.Index(
                fields=["submitted_by", "-created_at", "-id"], name="workload_newest_of_person"
            ),
            models.Index(
                fields=["name", "id", "project"],
                condition=models.Q(released_at=None),
                name="workload_by_name",
            ),
            models.Index(
                fields=["status", "-created_at", "-id", "project"],
                condition=models.Q(released_at=None),
                name="workload_by_status",
            ),
            models.Index(
                fields=["-created_at", "-id"],
                condition=models.Q(released_at__isnull=False),
                name="workload_deleted",
            ),
            models.Index(fields=["changed"], name="workload_changed"),
            models.Index(
                fields=["next_try_at"],
                condition=models.Q(next_try_at__isnull=False),
                name="workload_outstanding",
            ),
            models.Index(fields=["cluster", "status"], name="workload_of_cluster"),
            # What waits or runs, and who holds GPUs, is found beside any number of ended workloads.
            # SQLite knows how often a status is on average, and would rather read all rows.
            models.Index(
                fields=["status", "status_at", "id", "project"],
                condition=models.Q(ended_at=None, released_at=None),
                name="workload_unended",
            ),
            models.Index(
                fields=["project", "cluster", "status"],
                condition=models.Q(gpus_allocated__gt=0),
                name="workload_with_gpus",
            ),
            models.Index(
                fields=["-ended_at", "project"],
                condition=models.Q(status="Failed", released_at=None),
                name="workload_failed_last",
            ),
            models.Index(
                fields=["idle_since"],
                condition=models.Q(idle_since__isnull=False),
                name="workload_idle",
            ),
            models.Index(
                fields=["id"], condition=models.Q(is_use_known=True), name="workload_use_known"
            ),
            models.Index(
                fields=["disrupted_at"],
                condition=models.Q(disrupted_at__isnull=False),
                name="workload_disrupted",
            ),
            models.Index(
                fields=["id"], condition=models.Q(is_run_due=True), name="workload_run_due"
            ),
            models.Index(
                fields=["ended_at"],
                condition=models.Q(auto_delete_seconds__isnull=False, released_at=None),
                name="workload_to_be_deleted",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> Status | BadgeLook:
        """Its status with what the badge shows.

        Once the cluster has released it, the look of Deleted, which is no status.
        """
        return Status(self.status) if self.released_at is None else GONE

    @property
    def may_be_resumed_by_others(self) -> bool:
        """Whether others suspended its job, which is there: it goes on when they resume it."""
        # The job comes last: where it was not loaded, only what is suspended needs a query for it.
        return was_suspended_by_others(self.status, self.reason) and self.job is not None

    @property
    def likely_start(self) -> datetime | None:
        """When it is likely to start; None where it does not wait, and where nobody knows."""
        is_known = self.status == Status.PENDING and self.likely_start_at != NO_LIKELY_START
        # One so long past is of a forecast that is not shown any more.
        is_current = timezone.now() - self.likely_start_at <= FORECAST_AGE
        return self.likely_start_at if is_known and is_current else None

    @property
    def is_start_due(self) -> bool:
        """Whether its likely start is past, and it waits still."""
        return (moment := self.likely_start) is not None and moment <= timezone.now()

    @property
    def framework_label(self) -> str:
        """The framework's name for a page; "" for a standard workload."""
        return (
            Framework(self.framework).label
            if self.framework in Framework.__members__.values()
            else self.framework
        )


class Attempt(models.Model):
    """One run of a workload.

    The current attempt's row is updated with the workload; earlier ones are final.
    """

    workload = models.ForeignKey(Workload, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=16)
    reason = models.TextField(blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    requested_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended = models.CharField(max_length=120, blank=True)
    job_uid = models.CharField(max_length=64, blank=True)
    workers_set = models.PositiveIntegerField(null=True)
    """Workers of its job as Muster set them last; None where it never changes them, because the
    workload is not elastic or its kind has no scale.
    """
    workers_wanted = models.PositiveIntegerField(null=True)
    """Workers that a change under way is to set; equal to `workers_set` where there is none."""
    is_scaled_by_others = models.BooleanField(default=False, db_default=False)
    """Whether somebody else changed the job's workers: Muster then leaves them alone."""
    scale_after = models.DateTimeField(null=True)
    """Before this moment Muster does not change the workers again; where a change is under way,
    until when it may be begun.
    """
    room_since = models.DateTimeField(null=True)
    """Since when there has been room for another worker; None while there is none."""

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["workload", "number"], name="attempt_number_once")
        ]
        indexes = [
            models.Index(
                fields=["workload"],
                condition=models.Q(workers_set__isnull=False, ended_at=None),
                name="attempt_scaled",
            )
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.workload_id}"

    @property
    def state(self) -> Status:
        """Its status with what the badge shows."""
        return Status(self.status)


class Pod(models.Model):
    """A pod as last seen; the row stays after the cluster has removed it (`vanished_at`)."""

    # The unique constraint below is an index that begins with it.
    workload = models.ForeignKey(Workload, models.CASCADE, related_name="pods", db_index=False)
    attempt = models.PositiveIntegerField()
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    role = models.CharField(max_length=16, blank=True)
    index = models.PositiveIntegerField(null=True)
    rank = models.PositiveIntegerField(null=True)
    phase = models.CharField(max_length=16, blank=True)
    status = models.CharField(max_length=64, blank=True)
    reason = models.TextField(blank=True)
    is_ready = models.BooleanField(default=False)
    ready_at = models.DateTimeField(null=True)
    """Since when it is ready, by its condition."""
    standing = models.CharField(
        max_length=16, choices=_build_choices(Standing), blank=True, default="", db_default=""
    )
    """What the pod is for its attempt; "" where that is unknown."""
    is_preempted = models.BooleanField(default=False, db_default=False)
    node = models.CharField(max_length=253, blank=True)
    gpus = models.DecimalField(max_digits=12, decimal_places=3, null=True)
    cpu = models.DecimalField(max_digits=12, decimal_places=3, null=True)
    """Cores that its containers request."""
    memory = models.BigIntegerField(null=True)
    """Bytes that its containers request."""
    restarts = models.PositiveIntegerField(default=0)
    image = models.CharField(max_length=512, blank=True)
    created_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    vanished_at = models.DateTimeField(null=True)
    version = models.CharField(max_length=32, blank=True)
    """The object's resource version."""
    data = models.JSONField(default=dict)
    """The object without fields that nobody reads (`slimming.slim_object`)."""
    logs_kept = models.BooleanField(default=False)
    """Whether the pod has ended, or vanished, and all its available logs are stored. Only the
    logbook writes it.
    """

    class Meta:
        ordering = ["rank", "created_at", "name"]
        constraints = [models.UniqueConstraint(fields=["workload", "uid"], name="pod_once")]
        indexes = [
            models.Index(fields=["node", "phase"], name="pod_on_node"),
            # The ledger asks each minute which pods held GPUs of late, beside any number of old
            # ones.
            models.Index(
                fields=["vanished_at", "ended_at"],
                condition=models.Q(gpus__gt=0),
                name="pod_with_gpus_by_end",
            ),
            # Of a workload's pods the first of a standing is found without reading the others.
            models.Index(
                fields=["workload", "attempt", "standing", "rank"],
                condition=models.Q(vanished_at=None),
                name="pod_by_standing",
            ),
            models.Index(
                fields=["id"], condition=models.Q(logs_kept=False), name="pod_with_logs_to_read"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class UsedAsset(models.Model):
    """An asset whose values a workload copied at submission, and the version it had."""

    workload = models.ForeignKey(Workload, models.CASCADE, related_name="assets")
    kind = models.CharField(max_length=16)
    """The kind as `environments` names it: "environment", "compute", "data-source", "credential",
    "template", "policy".
    """
    asset = models.UUIDField()
    name = models.CharField(max_length=63)
    version = models.PositiveIntegerField(default=1)
    part = models.CharField(max_length=8, blank=True)
    """"master" where only the master has it."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "kind", "asset", "part"], name="used_asset_once"
            )
        ]
        indexes = [models.Index(fields=["asset", "workload"], name="used_asset_by_asset")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}, version {self.version}"


class Sample(models.Model):
    """A project's quota and use at one moment: the data of the charts."""

    at = models.DateTimeField()
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, related_name="+", db_index=False
    )
    gpus_quota = models.DecimalField(max_digits=12, decimal_places=3, null=True)
    gpus_allocated = models.DecimalField(max_digits=12, decimal_places=3, default=ZERO)
    gpus_idle = models.DecimalField(max_digits=12, decimal_places=3, null=True)
    """GPUs that are allocated and not used; None where that is unknown."""
    gpus_used = models.DecimalField(max_digits=12, decimal_places=3, null=True)
    """GPU use added up over the allocated GPUs; None where it is unknown of one of them."""
    running = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "at"], name="sample_once")]
        indexes = [models.Index(fields=["at"], name="sample_by_time")]

    def __str__(self) -> str:
        return f"{self.project_id} at {self.at}"


class Position(models.Model):
    """The journal's position, in one row.

    The transaction of every change raises it, so that positions are committed in their order.
    """

    value = models.BigIntegerField(default=0)

"""Rows of start forecasts: what is forecast now, and what became of every forecast.

Only `journal` writes them. Code imports them from `workloads.models`, with all others.
"""

from datetime import UTC, datetime, timedelta

from django.db import models

from projects.querysets import InProject

NO_LIKELY_START = datetime(9000, 1, 1, tzinfo=UTC)
"""Stands for no likely start in a column that is sorted by, and so cannot be null."""
FORECAST_AGE = timedelta(minutes=15)
"""From which age on a forecast is not shown any more."""
MOST_FORECASTS = 2_000
"""Waiting workloads of one cluster whose forecasts are kept, those that waited longest."""


class ForecastOutlook(models.TextChoices):
    """What can be said of the start of a workload; the first four are the simulator's."""

    STARTS = "starts"
    NO_END = "no-end"
    TOO_LATE = "too-late"
    NEVER = "never"
    PREPARING = "preparing"
    """Its data is being prepared; GPUs are asked for afterwards."""
    HELD = "held"
    """Kueue holds it, whose rules nobody plays forward."""
    NO_PODS = "no-pods"
    """It has no pods yet that wait for a node."""
    UNKNOWN = "unknown"
    """It cannot be played forward: `ClusterForecast.trouble` says why of the whole cluster. Without
    that it asks for devices that are not counted, or waits behind too many of its project.
    """


class Horizon(models.TextChoices):
    """How far ahead a likely start lies: forecasts of alike ones are compared."""

    QUARTER = "15min", "up to 15 min"
    HOUR = "1h", "up to 1 h"
    SIX_HOURS = "6h", "up to 6 h"
    DAY = "24h", "up to 24 h"


class ClusterForecast(models.Model):
    """When a cluster was played forward last, and of which state of it."""

    cluster = models.OneToOneField(
        "clusters.Cluster", models.CASCADE, primary_key=True, related_name="+"
    )
    computed_at = models.DateTimeField()
    took_seconds = models.FloatField(default=0)
    fingerprint = models.CharField(max_length=64)
    has_more = models.BooleanField(default=False)
    """Whether more waited than forecasts are kept of."""
    trouble = models.CharField(max_length=300, blank=True, default="")
    """Why it could not be played forward, in words for a person."""
    claimed_until = models.DateTimeField(null=True)
    """Until when a process has it that plays it forward now, or died at it; None: none has."""

    def __str__(self) -> str:
        return f"forecast of {self.cluster_id} at {self.computed_at}"


class WorkloadForecast(models.Model):
    """When a workload that waits will start, as forecast last."""

    workload = models.OneToOneField(
        "workloads.Workload", models.CASCADE, primary_key=True, related_name="forecast"
    )
    attempt = models.PositiveIntegerField()
    made_at = models.DateTimeField()
    outlook = models.CharField(max_length=12, choices=ForecastOutlook)
    horizon = models.CharField(max_length=8, choices=Horizon, blank=True, default="")
    """"" unless it `STARTS`, as the moments below are None."""
    likely_at = models.DateTimeField(null=True)
    earliest_at = models.DateTimeField(null=True)
    latest_at = models.DateTimeField(null=True)
    """The bounds that are shown: widened, and at whole minutes. None for a latest start that lies
    beyond what is played forward.
    """
    blockers = models.JSONField(default=list)
    """Ids of the workloads whose ends it waits for, the most frequent first. They may be of
    projects that the reader does not see.
    """

    def __str__(self) -> str:
        return f"{self.outlook} of {self.workload_id}"


class ForecastRecord(models.Model):
    """One forecast of a likely start, and what became of it. It outlives the workload.

    A record is open until the workload starts or is known not to start.
    """

    workload = models.UUIDField()
    """Its id. No foreign key: the workload may be gone."""
    attempt = models.PositiveIntegerField()
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, related_name="+", db_index=False
    )
    cluster = models.ForeignKey(
        "clusters.Cluster", models.CASCADE, related_name="+", db_index=False
    )
    made_at = models.DateTimeField()
    horizon = models.CharField(max_length=8, choices=Horizon)
    drawn_earliest_at = models.DateTimeField()
    drawn_latest_at = models.DateTimeField(null=True)
    """The interval as it was drawn, before it was widened."""
    quantiles = models.JSONField(default=list)
    """The drawn seconds from `made_at` by which shares of the draws had started, as [share, seconds
    or null].
    """
    likely_at = models.DateTimeField()
    earliest_at = models.DateTimeField()
    latest_at = models.DateTimeField(null=True)
    """The bounds that were shown."""
    closed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    """When it started; None while it is open, and where it was stopped before."""
    is_right = models.BooleanField(null=True)
    """Whether it started between the bounds that were shown; None while that is open, and where it
    did not start.
    """

    objects = InProject.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["project", "horizon", "made_at", "is_right"],
                name="forecast_record_of_project",
            ),
            models.Index(fields=["cluster", "horizon", "made_at"], name="forecast_record_alike"),
            models.Index(fields=["made_at"], name="forecast_record_by_time"),
            models.Index(
                fields=["workload", "attempt"],
                condition=models.Q(closed_at=None),
                name="forecast_record_open",
            ),
            models.Index(
                fields=["cluster"],
                condition=models.Q(closed_at=None),
                name="forecast_record_open_there",
            ),
        ]

    def __str__(self) -> str:
        return f"forecast for {self.workload} at {self.made_at}"

    @staticmethod
    def find_known_outcomes(now: datetime) -> models.Q:
        """Return the condition on records whose outcome is known against what was drawn.

        They started, or waited in vain for longer than the drawn interval, whatever came then: if
        those did not count, the record would be of those alone that came early.
        """
        return (
            models.Q(started_at__isnull=False)
            | models.Q(closed_at=None, drawn_latest_at__lt=now)
            | models.Q(closed_at__gt=models.F("drawn_latest_at"))
        )

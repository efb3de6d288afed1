"""Rows of how far trainings are, each of their ranks, and the loss.

Only `journal` writes them. Code imports them from `workloads.models`, with all others.
"""

from django.db import models
from django.utils import timezone


class TrainingProgress(models.Model):
    """How far a workload's training is, as its logs tell it; it stays after the end.

    Its own columns are those that lists show, of the rank `rank`.
    """

    workload = models.OneToOneField(
        "workloads.Workload", models.CASCADE, primary_key=True, related_name="progress"
    )
    attempt = models.PositiveIntegerField()
    rank = models.PositiveIntegerField(null=True)
    """Whose lines tell it; None while no rank's do."""
    pattern = models.CharField(max_length=24, blank=True)
    """The pattern that was recognised (`training_progress.TITLES`)."""
    step = models.BigIntegerField(null=True)
    total = models.BigIntegerField(null=True)
    epoch = models.FloatField(null=True)
    epochs = models.BigIntegerField(null=True)
    at = models.DateTimeField(null=True)
    """When the last line came that told something."""
    ends_at = models.DateTimeField(null=True)
    """When it would be over; None where that cannot be said."""
    estimate = models.CharField(max_length=200, blank=True)
    """How that was worked out, in words."""
    state = models.JSONField(default=dict)
    """All that is known of this rank (`training_progress.RankState`)."""
    pace = models.JSONField(default=dict)
    """The points that its pace is measured by, and whether they count steps or epochs."""
    log = models.BigIntegerField(null=True)
    """The log with the last line, and where in it that line begins: the log may be gone."""
    offset = models.BigIntegerField(default=0)
    trouble = models.CharField(max_length=300, blank=True)
    """Why the workload's own pattern cannot be used, or what is new cannot be read."""
    first_other = models.PositiveIntegerField(default=0)
    """The other rank, counted from 0, with which the next turn begins its share of them."""
    unread_ranks = models.PositiveIntegerField(null=True)
    """How many other ranks are still to be read since the attempt is over; None while it runs."""
    read_at = models.DateTimeField(default=timezone.now)
    is_settled = models.BooleanField(default=False)
    """Whether the attempt is over, and its logs were read to their end."""

    def __str__(self) -> str:
        return f"step {self.step} of {self.workload_id}"


class LossCurve(models.Model):
    """The loss of a workload over time, thinned (`training_progress.LossHistory`)."""

    workload = models.OneToOneField(
        "workloads.Workload", models.CASCADE, primary_key=True, related_name="loss_curve"
    )
    history = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"loss of {self.workload_id}"


class RankProgress(models.Model):
    """How far one rank is. Only the latest of a workload's attempts is kept."""

    workload = models.ForeignKey(
        "workloads.Workload", models.CASCADE, related_name="rank_progress", db_index=False
    )
    rank = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    pod = models.CharField(max_length=253)
    at = models.DateTimeField(null=True)
    """When its last line came that told something; None where none did."""
    read_at = models.DateTimeField(default=timezone.now)
    """When its logs were read last: of many ranks a turn reads a share."""
    state = models.JSONField(default=dict)
    """`training_progress.RankState`."""
    places = models.JSONField(default=dict)
    """How far its logs are read: the byte, by the log's id."""
    log = models.BigIntegerField(null=True)
    offset = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["rank"]
        constraints = [
            models.UniqueConstraint(fields=["workload", "rank"], name="rank_progress_once")
        ]

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.workload_id}"

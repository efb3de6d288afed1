"""Rows of the radar: what it found, and what it keeps of each workload that it watches.

Only `journal` writes them. Code imports them from `workloads.models`, with all others.
"""

from django.db import models
from django.utils import timezone


class RadarFinding(models.Model):
    """One trouble of an attempt, from its beginning to its end (`radar.Finding`); it stays."""

    workload = models.ForeignKey(
        "workloads.Workload", models.CASCADE, related_name="findings", db_index=False
    )
    attempt = models.PositiveIntegerField()
    kind = models.CharField(max_length=16)
    key = models.CharField(max_length=280)
    """What tells it from others of its workload: its kind, and of what it is."""
    rank = models.PositiveIntegerField(null=True)
    pod = models.ForeignKey("workloads.Pod", models.SET_NULL, null=True, related_name="+")
    node = models.CharField(max_length=253, blank=True)
    certainty = models.CharField(max_length=16)
    sentence = models.CharField(max_length=1000)
    help = models.CharField(max_length=1000)
    proofs = models.JSONField(default=list)
    """[{text, metric}]: what shows it, in words, and the metric whose chart does."""
    began_at = models.DateTimeField()
    found_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)
    """When it was seen last."""
    told_at = models.DateTimeField(default=timezone.now)
    """When open pages were told of it last."""
    ended_at = models.DateTimeField(null=True)
    acted_at = models.DateTimeField(null=True)
    """When Muster did what the workload's settings ask for in this case."""

    class Meta:
        ordering = ["-found_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "key"],
                condition=models.Q(ended_at=None),
                name="finding_open_once",
            )
        ]
        indexes = [models.Index(fields=["workload", "-found_at"], name="finding_of_workload")]

    def __str__(self) -> str:
        return self.sentence


class RadarWatch(models.Model):
    """What the radar keeps of a workload from one look to the next."""

    workload = models.OneToOneField(
        "workloads.Workload", models.CASCADE, primary_key=True, related_name="radar_watch"
    )
    attempt = models.PositiveIntegerField()
    memory = models.JSONField(default=dict)
    """`radar.Memory`."""
    looked_at = models.DateTimeField(default=timezone.now)
    measured_at = models.DateTimeField(null=True)
    """When it looked at the figures of its pods last, and not at their lines only."""

    def __str__(self) -> str:
        return f"watch of {self.workload_id}"

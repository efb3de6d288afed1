"""Rows of logs: one for each run of a container, whose output is a file.

Code imports them from `workloads.models`, with all others.
"""

from django.db import models
from django.utils import timezone


class Log(models.Model):
    """The output of one run of one container.

    The file grows while the container runs, and is kept when it has ended.
    """

    class State(models.TextChoices):
        CAPTURING = "capturing"
        COMPLETE = "complete"
        LOST = "lost"
        REMOVED = "removed"

    pod = models.ForeignKey("workloads.Pod", models.CASCADE, related_name="logs")
    container = models.CharField(max_length=253)
    is_init = models.BooleanField(default=False)
    run = models.PositiveIntegerField(default=0)
    """The container's restart count at that run: 0 is the first one."""
    state = models.CharField(max_length=12, choices=State, default=State.CAPTURING)
    path = models.CharField(max_length=512, blank=True)
    """The file's path below the log storage's root."""
    size = models.BigIntegerField(default=0)
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    gaps = models.JSONField(default=list)
    """What is missing: [{"at": RFC 3339, "cause": words, "offset": byte before which it is
    missing}].
    """
    note = models.CharField(max_length=500, blank=True)
    """Why it is not being read now, or why it is lost or removed: a sentence for the person."""
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["is_init", "container", "run"]
        constraints = [
            models.UniqueConstraint(fields=["pod", "container", "run"], name="log_once_a_run")
        ]
        indexes = [models.Index(fields=["state", "ended_at"], name="log_by_age")]

    def __str__(self) -> str:
        return f"{self.container} of pod {self.pod_id}"

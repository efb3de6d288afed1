"""Rows of quota trials: what is tried, and what came out.

Code imports them from `workloads.models`, with all others.
"""

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

TRIAL_WINDOW = timedelta(days=30)
"""How much of the past is played again."""
TRIAL_AGE = timedelta(days=30)
"""How long a trial is kept."""
MOST_TRIALS_OF_ONE = 20
MOST_TRIALS = 200
"""Trials of one person, and of all, that are kept, the newest."""
MOST_OPEN_TRIALS = 20
"""Trials that may wait at once."""


class TrialStatus(models.TextChoices):
    """How far a trial is."""

    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Computing"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


OPEN_TRIALS = (TrialStatus.WAITING.value, TrialStatus.RUNNING.value)


class QuotaTrial(models.Model):
    """Other quotas, weights and nodes of a cluster, and how long its work would have waited then.

    Nothing of it is applied.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey("clusters.Cluster", models.CASCADE, related_name="+")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    changes = models.JSONField(default=list)
    """What differs from the cluster as it was then (`trials.changes.Change`)."""
    first_changes = models.JSONField(default=list)
    """The first few of them: lists of trials leave out all others, which may be thousands."""
    change_count = models.PositiveSmallIntegerField(default=0)
    status = models.CharField(max_length=8, choices=TrialStatus, default=TrialStatus.WAITING)
    trouble = models.CharField(max_length=300, blank=True, default="")
    """Why it failed, in words for a person."""
    tries = models.PositiveSmallIntegerField(default=0)
    """How often it was begun."""
    created_at = models.DateTimeField(default=timezone.now)
    began_at = models.DateTimeField(null=True)
    computed_at = models.DateTimeField(null=True)
    took_seconds = models.FloatField(default=0)
    result = models.JSONField(default=dict)
    """Waiting times by project (`trials.results.TrialResult`); {} until it is done."""

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["asked_by"],
                condition=models.Q(status__in=OPEN_TRIALS),
                name="quota_trial_one_open_a_person",
            )
        ]
        indexes = [models.Index(fields=["-created_at", "-id"], name="quota_trial_newest")]

    def __str__(self) -> str:
        return f"trial of {self.cluster_id} at {self.created_at}"

    @property
    def is_open(self) -> bool:
        """Whether its result is still to come."""
        return self.status in OPEN_TRIALS

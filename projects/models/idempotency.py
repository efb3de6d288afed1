"""Requests over REST that carry a key, so that sending them twice makes one thing."""

from django.db import models
from django.utils import timezone

from projects.models.people import User


class IdempotentRequest(models.Model):
    """A request with an Idempotency-Key, and its answer once there is one.

    Key and fingerprint are digests. A secret of the answer is not kept.
    """

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        UNKNOWN = "unknown", "Unknown"

    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    """Of the address and the body: the same key for another request is a mistake."""
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    """UNKNOWN: it failed in a way that does not say whether anything was made."""
    status = models.PositiveSmallIntegerField(null=True)
    body = models.TextField(blank=True)
    """The answer as JSON; "" where it was too large to be kept."""
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotent_request_once")
        ]
        indexes = [
            models.Index(fields=["user", "-created_at", "-id"], name="idempotent_request_newest")
        ]

    def __str__(self) -> str:
        return f"{self.key[:8]} of {self.user_id}: {self.state}"

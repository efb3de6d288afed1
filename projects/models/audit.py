"""The audit log: what was done, by whom, from where.

Rows are added, and deleted when they are old; they never change. The database itself refuses to
change one (migration 0006).
"""

from django.db import models
from django.utils import timezone

from projects.models.people import User


class AuditEntry(models.Model):
    """One thing that somebody did, or tried.

    `before` and `after` hold what changed, never a secret.
    """

    class Event(models.TextChoices):
        CREATE = "create", "Create"
        UPDATE = "update", "Update"
        DELETE = "delete", "Delete"
        SIGN_IN = "sign-in", "Sign-in"
        SIGN_OUT = "sign-out", "Sign-out"
        TOKEN = "token", "Token from a new address"
        STOP = "stop", "Stop"
        RUN = "run", "Run"
        GRANT = "grant", "Permission given"
        REVOKE = "revoke", "Permission taken"
        SECRET = "secret", "Secret made"
        LOOK_AS = "look-as", "Looked as another"

    at = models.DateTimeField(default=timezone.now)
    event = models.CharField(max_length=16, choices=Event)
    succeeded = models.BooleanField(default=True)
    entity = models.CharField(max_length=32)
    """The kind of object: "project", "environment", "workload"."""
    entity_id = models.CharField(max_length=64, blank=True)
    entity_name = models.CharField(max_length=253, blank=True)
    scope = models.CharField(max_length=64, blank=True)
    """Where the object is, as `Scope` writes it."""
    user = models.ForeignKey(
        User, models.DO_NOTHING, null=True, db_constraint=False, related_name="+"
    )
    """No enforced reference: an entry stays as it is when the user is deleted."""
    subject = models.CharField(max_length=200, blank=True)
    """Who did it, by name, which stays when the user is deleted."""
    subject_kind = models.CharField(max_length=16, blank=True)
    """"user", "service account", "personal key", "system"."""
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    method = models.CharField(max_length=8, blank=True)
    path = models.CharField(max_length=300, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    text = models.CharField(max_length=500, blank=True)
    """What else there is to say, as why a sign-in failed."""

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="audit_newest"),
            models.Index(fields=["entity", "entity_id", "-at"], name="audit_of_entity"),
            models.Index(fields=["user", "-at"], name="audit_of_user"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.event} {self.entity} {self.entity_name}"


class KnownAddress(models.Model):
    """An address from which somebody's token or session was seen.

    The first time is worth an audit entry.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    address = models.GenericIPAddressField()
    first_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "address"], name="known_address_once")
        ]

    def __str__(self) -> str:
        return f"{self.address} of {self.user_id}"

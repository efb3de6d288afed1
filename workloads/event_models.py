"""Rows of a workload's history: changes of status, people's actions, events of its cluster.

Code imports them from `workloads.models`, with all others.
"""

from django.conf import settings
from django.db import models
from django.utils import timezone

from workloads.states import Status


class Event(models.Model):
    """An entry of the history: a change of status, a person's action, a cluster event, or a change
    of how many pods there are.

    Rows are never changed, except for `count`, and a disruption until it is over.
    """

    class Kind(models.TextChoices):
        STATUS = "status", "Status"
        ACTION = "action", "Action"
        CLUSTER = "cluster", "Cluster"
        SCALE = "scale", "Scale"
        FINDING = "finding", "Finding"

    workload = models.ForeignKey("workloads.Workload", models.CASCADE, related_name="events")
    attempt = models.PositiveIntegerField()
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=8, choices=Kind)
    is_warning = models.BooleanField(default=False)
    old = models.CharField(max_length=16, blank=True)
    new = models.CharField(max_length=16, blank=True)
    reason = models.CharField(max_length=128, blank=True)
    text = models.TextField(blank=True)
    source = models.CharField(max_length=128, blank=True)
    """The component of the cluster that reported it."""
    subject_kind = models.CharField(max_length=64, blank=True)
    subject = models.CharField(max_length=253, blank=True)
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField(null=True)
    uid = models.CharField(max_length=64, blank=True)
    """The uid of the cluster's event object; "" for our own events."""
    cause = models.JSONField(null=True)
    """What took pods: a `disruptions.Cause` of the cluster's event, or a `disruptions.Disruption`.

    It may name another project; `text` does not.
    """
    notice_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    """Who is still to be told of it on their next page."""
    pods_before = models.PositiveIntegerField(null=True)
    """Pods that the job wanted before a change of their number; None for any other event."""
    pods_after = models.PositiveIntegerField(null=True)
    """Pods that it wants since."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "uid"], condition=~models.Q(uid=""), name="event_once"
            )
        ]
        indexes = [
            models.Index(fields=["workload", "at", "id"], name="event_in_time_order"),
            # A large workload has tens of thousands of events of its cluster, and few changes.
            models.Index(
                fields=["workload", "at", "id"],
                condition=models.Q(new__gt=""),
                name="event_of_change",
            ),
            # The picture of pods has its marks, and a page its notices, beside any number of them.
            models.Index(
                fields=["workload", "at", "id"],
                condition=models.Q(kind="scale"),
                name="event_of_scale",
            ),
            models.Index(
                fields=["notice_to", "id"],
                condition=models.Q(notice_to__isnull=False),
                name="event_with_notice",
            ),
        ]

    def __str__(self) -> str:
        return self.text or f"{self.old_label} to {self.new_label}"

    @property
    def old_label(self) -> str:
        """The status before a change of status, as pages call it."""
        return _label_status(self.old)

    @property
    def new_label(self) -> str:
        """The status after a change of status, as pages call it."""
        return _label_status(self.new)


def _label_status(name: str) -> str:
    return Status(name).label if name in Status.__members__.values() else name

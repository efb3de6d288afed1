"""Rows of what people fill in and keep for themselves: drafts of forms, and views of the table.

Code imports them from `workloads.models`, with all others.
"""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone


class Draft(models.Model):
    """A form that is being filled in.

    What was typed survives reloads, visits to other pages, and errors.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(auto_now=True)


class SavedView(models.Model):
    """A person's name for a state of the workload table: columns, filters and order."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=40)
    query = models.CharField(max_length=2000)
    """The query of the table's address, as `console.tables.build_query` writes it."""
    is_default = models.BooleanField(default=False)
    """Whether the table begins with it."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="saved_view_name_once"),
            models.UniqueConstraint(
                fields=["user"], condition=models.Q(is_default=True), name="saved_view_default_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name

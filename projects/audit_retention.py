"""Retention of the audit log: deletes old entries and records how many were deleted."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.utils import timezone

from projects import append_only, audit
from projects.audit import Event
from projects.models import AuditEntry, KnownAddress

BATCH = 1000
"""Entries that one transaction deletes: the longest that writers wait for it."""
MAX_BATCHES = 100
"""Batches of one run; the next run deletes the rest."""


def delete_old_entries() -> int:
    """Delete entries older than MUSTER_AUDIT_DAYS and record their number; return it.

    Also deletes addresses that were not used for as long.
    """
    before = timezone.now() - timedelta(days=settings.OPTIONS.audit_days)
    KnownAddress.objects.filter(last_at__lt=before).delete()
    deleted = 0
    for _ in range(MAX_BATCHES):
        count = _delete_batch(before)
        deleted += count
        if count < BATCH:
            break
    return deleted


def _delete_batch(before: datetime) -> int:
    with append_only.allow_deletion(connection):
        entry_ids = list(
            AuditEntry.objects.filter(at__lt=before)
            .order_by("at")
            .values_list("pk", flat=True)[:BATCH]
        )
        if not entry_ids:
            return 0
        deleted, _ = AuditEntry.objects.filter(pk__in=entry_ids).delete()
        # In the same transaction: no entry goes without a record.
        after = {"entries": deleted, "older than": before.isoformat(timespec="seconds")}
        audit.record(Event.DELETE, "audit-log", by=None, name="Audit log", after=after)
    return deleted

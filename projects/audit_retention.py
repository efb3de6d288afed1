"""How long the audit log goes back: what is older than the settings say goes, and that it went is
recorded.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.utils import timezone

from projects import append_only, audit
from projects.audit import Event
from projects.models import AuditEntry, KnownAddress

BATCH = 1000
"""Entries of a transaction: writers wait no longer than it takes to delete so many."""
MAX_BATCHES = 100
"""In one turn; what is left is for the next one."""


def delete_old_entries() -> int:
    """Delete what is older than MUSTER_AUDIT_DAYS, and record how many entries that were. Also
    addresses that were not seen for so long.
    """
    before = timezone.now() - timedelta(days=settings.OPTIONS.audit_days)
    KnownAddress.objects.filter(last_at__lt=before).delete()
    gone = 0
    for _ in range(MAX_BATCHES):
        some = _delete_batch(before)
        gone += some
        if some < BATCH:
            break
    return gone


def _delete_batch(before: datetime) -> int:
    with append_only.allow_deletion(connection):
        old = list(
            AuditEntry.objects.filter(at__lt=before)
            .order_by("at")
            .values_list("pk", flat=True)[:BATCH]
        )
        if not old:
            return 0
        gone, _ = AuditEntry.objects.filter(pk__in=old).delete()
        # In the transaction in which they go: none goes unsaid.
        told = {"entries": gone, "older than": before.isoformat(timespec="seconds")}
        audit.record(Event.DELETE, "audit-log", by=None, name="Audit log", after=told)
    return gone

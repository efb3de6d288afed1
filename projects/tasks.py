"""The periodic steps of this app."""

from console.celery import step
from projects import audit_retention, idempotency, request_limits


@step
def forget() -> None:
    """Delete what was kept for its time: audit log entries, answers, counts of requests."""
    audit_retention.delete_old_entries()
    idempotency.delete_old_requests()
    request_limits.delete_old_counts()

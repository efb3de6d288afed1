"""The periodic steps of this app."""

from console.celery import step
from projects import audit_retention


@step
def forget() -> None:
    """Delete audit log entries that are older than the settings allow."""
    audit_retention.delete_old_entries()

"""The steps of this floor."""

from console.celery import step
from projects import audit_retention


@step
def forget() -> None:
    """The audit log -> without what has been kept as long as the settings say."""
    audit_retention.delete_old_entries()

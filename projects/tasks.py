"""The steps of this floor."""

from console.celery import step
from projects import forgetting


@step
def forget() -> None:
    """The audit log -> without what has been kept as long as the settings say."""
    forgetting.forget_old_entries()

"""Who changed something last, as the audit log has it: for whom a form came too late."""

from datetime import datetime

from projects.models import AuditEntry


def find_last_change(entity: str, id: object) -> tuple[str, datetime | None]:
    """By whom, and when; ("", None) where the log has nothing of it any more."""
    rows = AuditEntry.objects.filter(
        entity=entity, entity_id=str(id), event=AuditEntry.Event.UPDATE
    )
    found = rows.order_by("-at", "-id").values_list("subject", "at").first()
    return found or ("", None)

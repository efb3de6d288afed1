"""The last change of an object according to the audit log, for conflicts of forms."""

from datetime import datetime

from projects.models import AuditEntry


def find_last_change(entity: str, id: object) -> tuple[str, datetime | None]:
    """Return who changed the object last, and when; ("", None) where the log has no entry."""
    rows = AuditEntry.objects.filter(
        entity=entity, entity_id=str(id), event=AuditEntry.Event.UPDATE
    )
    last = rows.order_by("-at", "-id").values_list("subject", "at").first()
    return last or ("", None)

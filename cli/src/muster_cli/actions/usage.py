"""What became of GPU hours."""

from typing import Any

from muster_cli import routes
from muster_cli.session import Session


def list_usage(
    session: Session, month: str, group_by: str, project: str, limit: int
) -> list[dict[str, Any]]:
    """Return the GPU-hours of a month, added up, those with most first; "" is the present month."""
    query = {
        "month": month or None,
        "groupBy": group_by,
        "filterBy": f"projectName=={project}" if project else None,
    }
    return list(session.list_items(routes.LIST_USAGE, "usage", query=query, limit=limit))

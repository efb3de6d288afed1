"""What changed since a position of the journal."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from projects.querysets import InProject
from workloads.models import Position, Workload
from workloads.queries.table import list_in_projects, select_table_columns

MOST_ROWS = 200
"""Changed rows told at once; who has missed more looks at the table anew."""
MOST_SCANNED = 2000
"""Changed rows of all projects that are gone through to find the visible ones."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Up to `position`: the rows that changed and are looked at, and the ids of those that changed
    and are not, or not any more.

    `reset` says that there were too many to tell: look at the table anew.
    """

    position: int
    rows: Sequence[Workload] = ()
    gone_ids: Sequence[uuid.UUID] = field(default=())
    needs_reset: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows or self.gone_ids or self.needs_reset)


def load_position() -> int:
    """The journal's position now. Read it before the rows: what changes between the two is then
    told twice, not never.
    """
    return Position.objects.values_list("value", flat=True).order_by("pk").first() or 0


def load_changes(
    after: int, visible: frozenset[int] | None, narrow: Callable[[InProject], InProject]
) -> Changes:
    """What changed after a position in these projects; `narrowed` leaves the rows that are looked
    at. At most three queries.
    """
    now = load_position()
    if now <= after:
        # A position that has not been reached yet is of another database: what its page shows is as
        # old.
        return Changes(now, needs_reset=now < after)
    # By position alone: this index finds the few that changed, where one on projects would go
    # through all of theirs.
    news = (
        Workload.objects.filter(changed__gt=after, changed__lte=now)
        .order_by("changed")
        .values_list("id", "project_id")
    )
    changed = list(news[: MOST_SCANNED + 1])
    ids = [id for id, project in changed if visible is None or project in visible]
    if len(changed) > MOST_SCANNED or len(ids) > MOST_ROWS:
        return Changes(now, needs_reset=True)
    if not ids:
        return Changes(now)
    rows = list(select_table_columns(narrow(list_in_projects(visible)).filter(pk__in=ids)))
    left = {row.pk for row in rows}
    return Changes(now, rows, [id for id in ids if id not in left])

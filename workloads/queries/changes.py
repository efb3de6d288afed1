"""The workloads that changed since a position of the journal."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from console.table_filters import Rows
from workloads.models import Position, Workload
from workloads.queries.table import list_in_projects, select_table_fields
from workloads.workload_table import TABLE

MOST_ROWS = 200
"""Changed rows in one answer; a page that missed more reloads the table."""
MOST_SCANNED = 2000
"""Changed rows of all projects that are searched for visible ones."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes up to `position`.

    `rows` changed and pass the filters, `gone_ids` changed and do not, or no longer. `needs_reset`
    says that there were too many: reload the table.
    """

    position: int
    rows: Sequence[Workload] = ()
    gone_ids: Sequence[uuid.UUID] = field(default=())
    needs_reset: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows or self.gone_ids or self.needs_reset)


def load_position() -> int:
    """Return the journal's current position.

    Load it before the rows: what changes between the two is then reported twice, not never.
    """
    return Position.objects.values_list("value", flat=True).order_by("pk").first() or 0


def load_changes(
    after: int, visible: frozenset[int] | None, narrow: Callable[[Rows], Rows]
) -> Changes:
    """Load what changed after a position in these projects.

    `narrow` applies the page's filters. At most three queries.
    """
    now = load_position()
    if now <= after:
        # A position ahead of ours comes from another database, as after a restored backup: the
        # page's rows are stale, so reset it.
        return Changes(now, needs_reset=now < after)
    # Filter by position alone: its index finds the few changed rows, while an index on projects
    # would scan all rows of theirs.
    changed_rows = (
        Workload.objects.filter(changed__gt=after, changed__lte=now)
        .order_by("changed")
        .values_list("id", "project_id")
    )
    changed = list(changed_rows[: MOST_SCANNED + 1])
    ids = [id for id, project in changed if visible is None or project in visible]
    if len(changed) > MOST_SCANNED or len(ids) > MOST_ROWS:
        return Changes(now, needs_reset=True)
    if not ids:
        return Changes(now)
    selected = select_table_fields(narrow(list_in_projects(visible)).filter(pk__in=ids))
    rows = list(TABLE.annotate_rows(selected))
    visible_ids = {row.pk for row in rows}
    return Changes(now, rows, [id for id in ids if id not in visible_ids])

"""Rows of the table as HTML, rendered once for each change and cached.

A row is the same for everybody who may see it; each page shows the cells of its columns.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from console.tables import Column
from console.templatetags.rows import render_cell
from workloads import runtime_limits
from workloads.models import Workload
from workloads.queries import load_gravest_findings
from workloads.queries.data_delivery import load_preparations
from workloads.workload_table import CHECKBOX, TABLE

CACHE_SECONDS = 300
"""Seconds: a project or a person may be renamed without a change of the row."""
ALL_COLUMNS = (CHECKBOX, *TABLE.columns)
_COLUMNS_KEY = zlib.crc32(",".join(column.name for column in ALL_COLUMNS).encode())
"""Tells cached rows with these columns from those of another release."""


@dataclass(frozen=True, slots=True)
class RenderedRow:
    """A row as HTML; the page sorts by `created`, in microseconds since 1970."""

    id: str
    created: int
    html: SafeString


@dataclass(frozen=True, slots=True)
class Runtime:
    """Seconds that a workload ran in all its attempts, as its time limit counts them.

    `since` is when it went on, while it runs; `before` are the seconds until then.
    """

    seconds: float
    before: float
    since: str = ""


def load_runtime(workload: Workload) -> Runtime:
    """Load the running time of a workload. One query, none for what has not run."""
    return load_runtimes([workload])[workload.pk]


def load_runtimes(workloads: Sequence[Workload]) -> Mapping[UUID, Runtime]:
    """Load the running time of each workload, by its id. One query for all of them."""
    now = timezone.now()
    runs = runtime_limits.load_running_times(workloads, now)
    return {
        key: Runtime(
            ran.total_seconds(now),
            ran.seconds_before,
            ran.running_since.isoformat() if ran.running_since else "",
        )
        for key, ran in runs.items()
    }


def set_runtimes(workloads: Sequence[Any]) -> None:
    """Set `runtime` on each workload. One query for all of them."""
    runtimes = load_runtimes(workloads)
    for each in workloads:
        each.runtime = runtimes[each.pk]


def set_preparations(workloads: Sequence[Any]) -> None:
    """Set `preparation` on each workload, None on those that prepare no data. One query at most."""
    preparations = load_preparations(workloads)
    for each in workloads:
        each.preparation = preparations.get(each.pk)


def set_findings(workloads: Sequence[Any]) -> None:
    """Set `finding` on each workload: its gravest open one, or None. One query at most."""
    findings = load_gravest_findings(workloads)
    for each in workloads:
        each.finding = findings.get(each.pk)


def render_rows(
    workloads: Iterable[Workload], columns: Sequence[Column] = ALL_COLUMNS
) -> list[RenderedRow]:
    """Render the rows in the same order with these columns; cached ones are not rendered again."""
    by_key = {_build_key(workload): workload for workload in workloads}
    cells: dict[str, dict[str, str]] = cache.get_many(by_key)
    missing = {key: workload for key, workload in by_key.items() if key not in cells}
    set_runtimes(list(missing.values()))
    set_preparations(list(missing.values()))
    set_findings(list(missing.values()))
    rendered = {key: render_cells(workload) for key, workload in missing.items()}
    cache.set_many(rendered, CACHE_SECONDS)
    cells |= rendered
    return [_build_row(each, cells[key], columns) for key, each in by_key.items()]


def _build_key(workload: Workload) -> str:
    """Return the key of a row as it is now: a likely start passes without a change of the row."""
    start = "due" if workload.is_start_due else "likely" if workload.likely_start else ""
    return f"row:{_COLUMNS_KEY:x}:{workload.pk}:{workload.changed}:{start}"


def render_cells(workload: Workload) -> dict[str, str]:
    """Render the cells of a row by their columns: nothing of the viewer can get into them."""
    return {
        column.name: render_cell(column, workload, is_first=column is TABLE.columns[0])
        for column in ALL_COLUMNS
    }


def _build_row(
    workload: Workload, cells: Mapping[str, str], columns: Sequence[Column]
) -> RenderedRow:
    created = int(workload.created_at.timestamp() * 1_000_000)
    content = "".join(cells[column.name] for column in columns)
    id = str(workload.pk)
    html = f'<tr id="w-{id}" data-id="{id}" data-created="{created}">{content}</tr>'
    # An id and a number need no escaping, and `render_cell` has escaped everything else.
    return RenderedRow(id, created, mark_safe(html))  # noqa: S308

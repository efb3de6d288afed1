"""What pages show of the figures of nodes, and of a project as a whole, over time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils import timezone

from clusters.models import Node
from projects.models import Project
from workloads.metrics.frames import Frame
from workloads.metrics.packing import pack_figures
from workloads.metrics.reading import (
    MOST_FILE_BYTES,
    Span,
    choose_spacing,
    describe_reading,
    find_series,
    iterate_series_frames,
    load_series_rows,
)
from workloads.models import MetricSeries

MOST_POOL_NODES = 200
"""Nodes of a pool whose figures are shown: the first by name."""


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """Something that figures are kept of as a whole: a node, or a project."""

    key: int
    name: str
    series: int | None
    """None: nothing was ever measured of it."""


def list_node_parts(nodes: Sequence[Node]) -> list[MeasuredPart]:
    """Return the first `MOST_POOL_NODES` nodes with the numbers of their series. One query."""
    first_nodes = nodes[:MOST_POOL_NODES]
    rows = MetricSeries.objects.filter(node__in=[node.pk for node in first_nodes])
    series = dict(rows.values_list("node_id", "pk"))
    return [MeasuredPart(node.pk, node.name, series.get(node.pk)) for node in first_nodes]


def get_project_part(project: Project) -> MeasuredPart:
    """Return a project with the number of its series. One query."""
    return MeasuredPart(project.pk, project.name, find_series(project=project))


def pack_part_metrics(
    parts: Sequence[MeasuredPart], span: Span, *, hidden: int = 0, after: int | None = None
) -> bytes:
    """Return the figures of the span as the page's script reads them.

    `hidden` parts more are left out. With `after` those until then may be missing: the script has
    them.
    """
    now = timezone.now()
    keys = {part.series: part.key for part in parts if part.series is not None}
    spacing = choose_spacing(span, now, len(keys))
    rows = load_series_rows(list(keys), span.begin_after(after, now), now, spacing) if keys else []
    named = [
        {"id": part.key, "name": part.name, "attempt": 1, "rank": None, "node": ""}
        for part in parts
    ]
    head = describe_reading(span, now, spacing) | {"pods": named, "marks": [], "hidden": hidden}
    return pack_figures(head, ((keys[series], start, data) for series, start, data in rows))


def iterate_part_rows(
    parts: Sequence[MeasuredPart], span: Span
) -> Iterator[tuple[datetime, str, Frame]]:
    """Yield the frames of each part in order, with their moment and the part's name."""
    now = timezone.now()
    spacing = choose_spacing(span, now, len(parts), MOST_FILE_BYTES)
    for part in parts:
        if part.series is not None:
            for at, _, frame in iterate_series_frames(part.series, span, now, spacing):
                yield datetime.fromtimestamp(at, UTC), part.name, frame

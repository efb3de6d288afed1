"""What nodes, node pools and projects used, for the script of their pages and as CSV."""

from collections.abc import Iterator, Sequence

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from clusters.models import Cluster, Node, NodePool
from console.moments import format_moment
from console.pagination import format_csv_line
from console.streams import build_file_response
from projects import access
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads import queries
from workloads.metrics.reading import Span
from workloads.queries import MeasuredPart
from workloads.views.metric_csv import METRIC_COLUMNS, format_metrics
from workloads.views.metric_ranges import parse_after, parse_span


@require_safe
@never_cache
def node_frames(request: Request, pk: int) -> HttpResponseBase:
    """Answer what was used on a node over time, as bytes or as CSV."""
    visible = Node.objects.filter(cluster__in=Cluster.objects.visible_to(request.user))
    node: Node = get_object_or_404(visible, pk=pk)
    return _build_response(request, node.name, queries.list_node_parts([node]))


@require_safe
@never_cache
def node_pool_frames(request: Request, pk: int) -> HttpResponseBase:
    """Answer what was used on each node of a pool over time, as bytes or as CSV."""
    visible = NodePool.objects.visible_to(request.user).select_related("cluster")
    pool: NodePool = get_object_or_404(visible, pk=pk)
    nodes = Node.objects.filter(cluster=pool.cluster_id).order_by("name").only("name", "labels")
    inside = [node for node in nodes if pool.matches_labels(node.labels)]
    parts = queries.list_node_parts(inside)
    return _build_response(request, pool.name, parts, hidden=len(inside) - len(parts))


@require_safe
@never_cache
def project_frames(request: Request, pk: int) -> HttpResponseBase:
    """Answer what the pods of a project used together over time, as bytes or as CSV."""
    project: Project = get_object_or_404(Project.objects.visible_to(request.user), pk=pk)
    access.require(request.user, Verb.VIEW, Entity.WORKLOADS, project_scope(project))
    return _build_response(request, project.name, [queries.get_project_part(project)])


def _build_response(
    request: Request, name: str, parts: Sequence[MeasuredPart], *, hidden: int = 0
) -> HttpResponseBase:
    span = parse_span(request.GET)
    if request.GET.get("format") == "csv":
        return build_file_response(
            _render_csv(parts, span), f"{name}-metrics.csv", "text/csv; charset=utf-8"
        )
    packed = queries.pack_part_metrics(parts, span, hidden=hidden, after=parse_after(request.GET))
    return HttpResponse(packed, content_type="application/octet-stream")


def _render_csv(parts: Sequence[MeasuredPart], span: Span) -> Iterator[str]:
    """Yield the figures as lines: a moment and a part each."""
    yield format_csv_line(["time", "name", *METRIC_COLUMNS])
    for at, name, frame in queries.iterate_part_rows(parts, span):
        yield format_csv_line([format_moment(at), name, *format_metrics(frame, 0)])

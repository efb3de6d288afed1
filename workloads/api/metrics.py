"""REST views of what workloads, pods, projects, departments, nodes and clusters used over time.

What was allocated comes from the samples that the charts are made of, what was used from the kept
figures of pods and nodes.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from django.db.models import Case, Count, F, Sum, When
from django.http import Http404, HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME, Metric
from clusters.models import Cluster, Node
from projects import access
from projects.api.base import ApiView
from projects.models import Department, Project
from projects.permissions import Entity, Verb
from projects.querysets import list_visible_project_ids
from projects.scopes import department_scope, project_scope
from workloads.api.details import get_pod, get_workload
from workloads.api.measurements import (
    MeasurementQuery,
    Values,
    answer_measurements,
    build_parameters,
    build_responses,
    parse_query,
)
from workloads.metrics.reading import (
    MOST_FILE_BYTES,
    LastingFrame,
    Measure,
    build_share,
    build_use,
    choose_spacing,
    find_series,
    iterate_series_frames,
    pick_values,
)
from workloads.models import Pod, Sample

MAX_ROWS = 20_000
MAX_ID = (1 << 63) - 1
"""The largest id of a row; the database raises an error for a larger number."""

SAMPLE_COLUMNS: Final[Mapping[str, str]] = {
    "ALLOCATED_GPU": "gpus_allocated",
    "GPU_QUOTA": "gpus_quota",
    "IDLE_ALLOCATED_GPUS": "gpus_idle",
    "RUNNING_WORKLOADS": "running",
    "PENDING_WORKLOADS": "waiting",
}
"""The metrics of projects and departments, and the columns of samples that have them."""
USED: Final[Mapping[str, Metric]] = {each.rest_type: each for each in METRICS if each.rest_type}
"""What pods and nodes use, by its name in the API."""
SHARES: Final[Mapping[str, tuple[str, str]]] = {
    "CPU_UTILIZATION": ("cpu", "cpu_capacity"),
    "CPU_MEMORY_UTILIZATION": ("memory", "memory_capacity"),
}
"""Percentages of what nodes have: the metric, named as the column of nodes, and its capacity."""
PROJECT_TYPES = (*SAMPLE_COLUMNS, *USED)
NODE_TYPES = (*USED, *SHARES)
CLUSTER_TYPES = (*SAMPLE_COLUMNS, *USED, *SHARES)
_GAP = "A moment at which something was not known has no value."
_SHARES = (
    "Shares are of what those nodes had whose use was measured at the moment; where that was not "
    "kept, of what all nodes have now."
)


class WorkloadMetricsView(ApiView):
    @extend_schema(
        operation_id="get_workload_metrics",
        description=f"What the pods of a workload used together, in all of its attempts. {_GAP}",
        parameters=build_parameters(USED),
        responses=build_responses(),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response | HttpResponse:
        workload = get_workload(self.user, workload_id)
        query = parse_query(request, USED)
        values = _pick_measured(query, _build_uses(query), workload=workload)
        return answer_measurements(request, values)


class PodMetricsView(ApiView):
    @extend_schema(
        operation_id="get_workload_pod_metrics",
        description=f"What one pod of a workload used; it is named by its id, or its name. {_GAP}",
        parameters=build_parameters(USED),
        responses=build_responses(),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID, pod_id: str) -> Response | HttpResponse:
        workload = get_workload(self.user, workload_id)
        pod = get_pod(workload, pod_id)
        query = parse_query(request, USED)
        values = _pick_measured(query, _build_uses(query, pod), workload=workload)
        return answer_measurements(request, values)


class ProjectMetricsView(ApiView):
    @extend_schema(
        operation_id="get_project_metrics",
        description=f"What a project held, and what its pods used, between two moments. {_GAP}",
        parameters=build_parameters(PROJECT_TYPES),
        responses=build_responses(),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response | HttpResponse:
        project = (
            Project.objects.visible_to(self.user).filter(pk=pk).first() if pk <= MAX_ID else None
        )
        if project is None:
            raise Http404("There is no such project, or it is not yours to see.")
        access.require(self.user, Verb.VIEW, Entity.WORKLOADS, project_scope(project))
        query = parse_query(request, PROJECT_TYPES)
        columns = {f"of_{name}": F(name) for name in SAMPLE_COLUMNS.values()}
        samples = Sample.objects.filter(project=project).values("at").annotate(**columns)
        used = _pick_measured(query, _build_uses(query), project=project)
        return answer_measurements(request, [*_pick_samples(query, samples), *used])


class DepartmentMetricsView(ApiView):
    @extend_schema(
        operation_id="get_department_metrics",
        description=(
            "What a department's projects held together between two moments. Where something of "
            "one of them was not known, there is no value."
        ),
        parameters=build_parameters(SAMPLE_COLUMNS),
        responses=build_responses(),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response | HttpResponse:
        department = (
            Department.objects.visible_to(self.user).filter(pk=pk).first() if pk <= MAX_ID else None
        )
        if department is None:
            raise Http404("There is no such department, or it is not yours to see.")
        access.require(self.user, Verb.VIEW, Entity.WORKLOADS, department_scope(department))
        query = parse_query(request, SAMPLE_COLUMNS)
        samples = _sum_samples(Sample.objects.filter(project__department=department))
        return answer_measurements(request, _pick_samples(query, samples))


class NodeMetricsView(ApiView):
    @extend_schema(
        operation_id="get_node_metrics",
        description=f"What was used on a node between two moments, by whomever. {_GAP}",
        parameters=build_parameters(NODE_TYPES),
        responses=build_responses(),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response | HttpResponse:
        nodes = Node.objects.filter(cluster__in=Cluster.objects.visible_to(self.user))
        node = nodes.filter(pk=pk).first() if pk <= MAX_ID else None
        if node is None:
            raise Http404("There is no such node, or it is not yours to see.")
        query = parse_query(request, NODE_TYPES)
        capacity = {"cpu": node.cpu, "memory": Decimal(node.memory)}
        measures = _build_uses(query) | _build_shares(query, capacity.get)
        return answer_measurements(request, _pick_measured(query, measures, node=node))


class ClusterMetricsView(ApiView):
    @extend_schema(
        operation_id="get_cluster_metrics",
        description=(
            "What the projects of a cluster held, and what was used on its nodes, between two "
            f"moments. {_GAP} {_SHARES}"
        ),
        parameters=build_parameters(CLUSTER_TYPES),
        responses=build_responses(),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response | HttpResponse:
        cluster = Cluster.objects.visible_to(self.user).filter(pk=pk).only("pk").first()
        if cluster is None:
            raise Http404("There is no such cluster, or it is not yours to see.")
        query = parse_query(request, CLUSTER_TYPES)
        visible = list_visible_project_ids(self.user)
        samples = Sample.objects.filter(project__cluster=cluster)
        samples = samples if visible is None else samples.filter(project__in=visible)
        capacity = Node.objects.filter(cluster=cluster).aggregate(
            cpu=Sum("cpu"), memory=Sum("memory")
        )
        measures = _build_uses(query) | _build_shares(query, capacity.get)
        measured = _pick_measured(query, measures, cluster=cluster)
        return answer_measurements(
            request, [*_pick_samples(query, _sum_samples(samples)), *measured]
        )


def _iterate_frames(query: MeasurementQuery, **owner: Any) -> Iterator[LastingFrame]:
    """Yield the frames of an owner; none where none of the types needs them."""
    series = find_series(**owner) if {*query.types} & {*USED, *SHARES} else None
    if series is None:
        return
    now = timezone.now()
    sources = owner["workload"].requested_pods if "workload" in owner else 1
    spacing = choose_spacing(query.span, now, sources, MOST_FILE_BYTES)
    # Each value that is asked for has a frame, where there is one.
    part = (query.span.until - query.span.since) // max(1, query.count)
    yield from iterate_series_frames(series, query.span, now, min(spacing, part))


def _pick_measured(
    query: MeasurementQuery, measures: Mapping[str, Measure], **owner: Any
) -> Iterator[tuple[str, Values]]:
    """Yield the values of these measures of an owner's frames, by their types."""
    values_by_name = pick_values(_iterate_frames(query, **owner), measures, query.span, query.count)
    for name, values in values_by_name.items():
        yield name, [(datetime.fromtimestamp(at, UTC), value) for at, value in values]


def _build_uses(query: MeasurementQuery, pod: Pod | None = None) -> dict[str, Measure]:
    """Return the measures of what was used, among the types that are asked for."""
    source = None if pod is None else pod.pk
    return {name: build_use(USED[name], source) for name in query.types if name in USED}


def _build_shares(
    query: MeasurementQuery, get_capacity: Callable[[str], Decimal | int | None]
) -> dict[str, Measure]:
    """Return the measures of shares of a capacity, among the types that are asked for."""
    measures = {}
    for name in query.types:
        if name in SHARES:
            metric, capacity = (METRICS_BY_NAME[each] for each in SHARES[name])
            present = float(get_capacity(metric.name) or 0)
            measures[name] = build_share(metric, capacity, present)
    return measures


def _sum_samples(samples: Any) -> Any:
    """Return the sums of several projects' samples. A sum with something unknown is unknown."""
    known_counts = {f"known_{name}": Count(name) for name in SAMPLE_COLUMNS.values()}
    sums = {
        f"of_{name}": Case(When(**{f"known_{name}": F("rows")}, then=Sum(name)))
        for name in SAMPLE_COLUMNS.values()
    }
    counted = samples.order_by().values("at").annotate(rows=Count("pk"), **known_counts)
    return counted.annotate(**sums)


def _pick_samples(query: MeasurementQuery, samples: Any) -> Iterator[tuple[str, Values]]:
    """Yield the newest sample of each of equal parts, at the end of its part.

    A part without samples has none. One query, where one of the types needs it.
    """
    types = [name for name in query.types if name in SAMPLE_COLUMNS]
    if not types:
        return
    newest: dict[int, Mapping[str, Any]] = {}
    part = (query.end - query.start) / max(1, query.count)
    within = samples.filter(at__gte=query.start, at__lt=query.end).order_by("at")
    for sample in within[:MAX_ROWS] if query.count else ():
        newest[int((sample["at"] - query.start) / part)] = sample
    for name in types:
        column = f"of_{SAMPLE_COLUMNS[name]}"
        yield (
            name,
            [
                (query.start + (number + 1) * part, sample[column])
                for number, sample in sorted(newest.items())
                if sample[column] is not None
            ],
        )

"""The pods of a workload, of all attempts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import Case, Count, F, Q, QuerySet, When
from django.http import QueryDict

from console.texts import parse_number
from workloads.kube_objects import DATA_WORKER
from workloads.models import Pod, Workload

MOST_PODS = 1000
PAGE = 100
"""Pods that a page of them shows."""
LONGEST_SEARCH = 253
MOST_STATUSES = 50
"""Different statuses that are counted; words of a cluster, which may be many."""


@dataclass(frozen=True, slots=True)
class PodFilter:
    """The chosen pods: `search` is a rank, or a part of a name or of a node's name."""

    search: str = ""
    status: str = ""
    first: int = 0
    """How many pods are before the page."""

    @classmethod
    def from_query(cls, query: QueryDict) -> "PodFilter":
        """Parse it from an address: q=, status=, from=."""
        search, status = (
            query.get(name, "").replace("\x00", "").strip()[:LONGEST_SEARCH]
            for name in ("q", "status")
        )
        return cls(search, status, parse_number(query.get("from"), 7) or 0)

    def __bool__(self) -> bool:
        return bool(self.search or self.status)

    def narrow(self, pods: "QuerySet[Pod]") -> "QuerySet[Pod]":
        """Return those of the pods that are chosen."""
        if self.status:
            pods = pods.filter(status=self.status)
        if self.search:
            condition = Q(name__icontains=self.search) | Q(node__icontains=self.search)
            rank = parse_number(self.search, 9)
            pods = pods.filter(condition if rank is None else condition | Q(rank=rank))
        return pods


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Pods of a page that belong together: those of an attempt's job, or its data workers."""

    attempt: int
    is_of_data: bool
    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class PodPage:
    """A page of pods, how many there are, and how many have each status."""

    pods: Sequence[Pod]
    first: int
    count: int
    """Pods that fit the filter."""
    total: int
    """Pods of all attempts."""
    statuses: Sequence[tuple[str, int]]

    @property
    def groups(self) -> Sequence[PodGroup]:
        """The pods of each attempt, and its data workers after them."""
        return [
            PodGroup(*key, list(pods))
            for key, pods in groupby(self.pods, lambda pod: (pod.attempt, pod.role == DATA_WORKER))
        ]

    @property
    def last(self) -> int:
        return self.first + len(self.pods)

    @property
    def previous(self) -> int | None:
        """What is `first` on the page before; None for the first page."""
        return max(0, self.first - PAGE) if self.first else None

    @property
    def next(self) -> int | None:
        return self.last if self.last < self.count else None


def load_pod_page(workload: Workload, wanted: PodFilter) -> PodPage:
    """Load a page of pods, newest attempt first, then by rank, data workers last.

    Three queries for any number of pods, a fourth with a filter.
    """
    pods = Pod.objects.filter(workload=workload)
    statuses = _count_statuses(pods)
    total = sum(count for _, count in statuses)
    chosen = wanted.narrow(pods)
    count = chosen.count() if wanted or len(statuses) >= MOST_STATUSES else total
    first = wanted.first if wanted.first < count else 0
    # The keys first: the rows, which are large, are not sorted.
    keys = list(_order_pods(chosen).values_list("pk", flat=True)[first : first + PAGE])
    rows = Pod.objects.defer("data").order_by().in_bulk(keys)
    page_rows = [rows[key] for key in keys if key in rows]
    return PodPage(page_rows, first, count, max(total, count), statuses)


def list_pod_names(workload: Workload, most: int) -> Sequence[str]:
    """List the first names of the pods of all attempts."""
    names = Pod.objects.filter(workload=workload).order_by("name").values_list("name", flat=True)
    return list(names.distinct()[:most])


def load_pods(workload: Workload, *, attempt: int | None = None) -> Sequence[Pod]:
    """Load at most MOST_PODS pods, newest attempt first, then by rank, data workers last.

    Without the objects themselves.
    """
    pods = Pod.objects.filter(workload=workload).defer("data")
    if attempt is not None:
        pods = pods.filter(attempt=attempt)
    return list(_order_pods(pods)[:MOST_PODS])


def _order_pods(pods: "QuerySet[Pod]") -> "QuerySet[Pod]":
    is_of_data = Case(When(role=DATA_WORKER, then=1), default=0)
    ranks = F("rank").asc(nulls_last=True)
    return pods.order_by("-attempt", is_of_data, ranks, "created_at", "name")


def _count_statuses(pods: "QuerySet[Pod]") -> Sequence[tuple[str, int]]:
    counts = pods.order_by().values_list("status").annotate(pods=Count("id"))
    return list(counts.order_by("-pods", "status")[:MOST_STATUSES])

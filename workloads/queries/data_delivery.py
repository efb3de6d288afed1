"""How a workload's data is delivered: for its page, the REST API and the command line alike."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, FloatField, Max, Sum
from django.db.models.functions import Cast, NullIf
from django.utils import timezone

from workloads import data_delivery
from workloads.data_delivery import Preparation, WorkerProgress
from workloads.kube_objects import DATA_WORKER
from workloads.models import DataPreparation, Pod, RankDelivery, Workload
from workloads.pod_counts import Standing
from workloads.states import Status

MOST_RANKS = 200
"""Ranks that are listed: those that waited the largest share of their time."""
MOST_PODS = 500
RECENT = timedelta(minutes=12)
"""Counters that are older are of what was, not of what is."""


@dataclass(frozen=True, slots=True)
class DataWorkerView:
    """A data worker: its pod, "" while there is none, and how far it is with its part."""

    number: int
    pod: str
    pod_id: int | None
    """The key of the pod's row."""
    status: str
    node: str
    prepared: int
    of: int
    rate: float | None
    """Units a second; None while it does not say it."""
    is_ready: bool
    error: str
    """Why its loader raised; hostile text."""


@dataclass(frozen=True, slots=True)
class RankView:
    """The newest counters of a rank, of `span` seconds."""

    rank: int
    at: datetime
    waited: float
    computed: float
    span: float
    depth: int
    rate: float
    delivered: int
    epoch: int

    @property
    def waited_share(self) -> float:
        """The share of waiting in what it waited and computed, from 0 to 1."""
        total = self.waited + self.computed
        return self.waited / total if total else 0.0


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """How the data of a workload's attempt is prepared and delivered."""

    attempt: int
    data_workers: int
    wanted: int
    """Units to be prepared before GPUs are taken; 0: they are taken at once."""
    prepared: int
    percent: int
    rate: float | None
    eta_seconds: float | None
    progress_sentence: str
    progress_at: datetime | None
    has_stalled: bool
    ended_early: bool
    ready_at: datetime | None
    resumed_at: datetime | None
    failure: str
    """Why its data workers failed; "" where they did not. Hostile text."""
    workers: Sequence[DataWorkerView]
    ranks: Sequence[RankView]
    """At most MOST_RANKS, those that waited most first."""
    rank_count: int
    waited_share: float | None
    """Of all ranks together; None where none said it."""
    elements_per_second: float | None
    """What all ranks together got."""
    counted_at: datetime | None
    """When the newest of the counters was written."""
    is_recent: bool
    """Whether the counters are of the last minutes."""
    sentence: str
    """How long GPUs waited for data, and what would have covered it; "" where that is unknown."""
    suggested_workers: int | None
    """How many data workers would have covered the waiting; None where nothing is to do."""


@dataclass(frozen=True, slots=True)
class PreparationView:
    """How far a workload that prepares data is, for a row of a list."""

    prepared: int
    wanted: int
    percent: int
    eta_seconds: float | None


def load_delivery(workload: Workload, attempt: int | None = None) -> DeliveryView | None:
    """Load how the data of an attempt, else of the present one, is delivered.

    None for a workload without data workers, with no query; else five queries.
    """
    if workload.data_workers is None:
        return None
    number = workload.attempt if attempt is None else attempt
    row = DataPreparation.objects.filter(workload=workload, attempt=number).first()
    if row is None:
        return None
    workers = data_delivery.decode_workers(row.workers, workload.data_workers)
    preparation = _build_preparation(row)
    totals = _load_totals(workload.pk, number)
    waited, computed = totals["waited"] or 0.0, totals["computed"] or 0.0
    is_known = bool(waited or computed)
    now, counted_at = timezone.now(), totals["at"]
    is_ended = number != workload.attempt or workload.ended_at is not None
    sentence = data_delivery.describe_starvation(
        workload.data_workers, waited, computed, totals["span"] or 0.0
    )
    return DeliveryView(
        attempt=number,
        data_workers=workload.data_workers,
        wanted=row.wanted,
        prepared=row.prepared,
        percent=preparation.percent,
        rate=row.rate,
        eta_seconds=preparation.eta_seconds,
        progress_sentence=data_delivery.describe_preparation(preparation) if row.wanted else "",
        progress_at=row.progress_at,
        has_stalled=row.has_stalled,
        ended_early=row.ended_early,
        ready_at=row.ready_at,
        resumed_at=row.resumed_at,
        failure=row.failure,
        workers=_build_workers(workers, _load_data_pods(workload.pk, number)),
        ranks=_load_ranks(workload.pk, number),
        rank_count=totals["ranks"],
        waited_share=waited / (waited + computed) if is_known else None,
        elements_per_second=totals["rate"],
        counted_at=counted_at,
        is_recent=counted_at is not None and not is_ended and now - counted_at < RECENT,
        sentence=sentence,
        suggested_workers=data_delivery.suggest_workers(workload.data_workers, waited, computed),
    )


def build_no_delivery(workload: Workload) -> DeliveryView:
    """Build the view of a workload whose ranks load their data themselves."""
    return DeliveryView(
        attempt=workload.attempt,
        data_workers=0,
        wanted=0,
        prepared=0,
        percent=0,
        rate=None,
        eta_seconds=None,
        progress_sentence="",
        progress_at=None,
        has_stalled=False,
        ended_early=False,
        ready_at=None,
        resumed_at=None,
        failure="",
        workers=(),
        ranks=(),
        rank_count=0,
        waited_share=None,
        elements_per_second=None,
        counted_at=None,
        is_recent=False,
        sentence="",
        suggested_workers=None,
    )


def load_preparations(workloads: Sequence[Workload]) -> Mapping[uuid.UUID, PreparationView]:
    """Load how far those of a list are that prepare data, by id. One query, none without any."""
    keys = {each.pk: each.attempt for each in workloads if each.status == Status.PREPARING}
    if not keys:
        return {}
    rows = DataPreparation.objects.filter(
        workload__in=list(keys), attempt=F("workload__attempt")
    ).order_by()
    return {row.workload_id: _build_row_view(row) for row in rows}


def _build_row_view(row: DataPreparation) -> PreparationView:
    preparation = _build_preparation(row)
    return PreparationView(row.prepared, row.wanted, preparation.percent, preparation.eta_seconds)


def _build_preparation(row: DataPreparation) -> Preparation:
    return Preparation(
        row.wanted, row.prepared, row.rate, row.ready_at is not None, row.ended_early
    )


def _load_totals(workload_id: uuid.UUID, attempt: int) -> dict[str, Any]:
    rows = RankDelivery.objects.filter(workload=workload_id, attempt=attempt)
    totals: dict[str, Any] = rows.aggregate(
        ranks=Count("pk"),
        waited=Sum("waited"),
        computed=Sum("computed"),
        span=Max("span"),
        rate=Sum("rate"),
        at=Max("at"),
    )
    return totals


def _load_ranks(workload_id: uuid.UUID, attempt: int) -> Sequence[RankView]:
    total = NullIf(F("waited") + F("computed"), 0.0, output_field=FloatField())
    share = Cast("waited", FloatField()) / total
    rows = RankDelivery.objects.filter(workload=workload_id, attempt=attempt)
    return [
        RankView(
            *(row.rank, row.at, row.waited, row.computed, row.span),
            *(row.depth, row.rate, row.delivered, row.epoch),
        )
        for row in rows.order_by(share.desc(nulls_last=True), "rank")[:MOST_RANKS]
    ]


def _load_data_pods(workload_id: uuid.UUID, attempt: int) -> Mapping[int, Pod]:
    """Load the newest data worker of each number."""
    pods = Pod.objects.filter(workload=workload_id, attempt=attempt, role=DATA_WORKER)
    fields = ("index", "name", "status", "phase", "node", "vanished_at")
    newest: dict[int, Pod] = {}
    for pod in (
        pods.exclude(standing=Standing.FOREIGN)
        .only(*fields)
        .order_by("-created_at", "-id")[:MOST_PODS]
    ):
        if pod.index is not None:
            newest.setdefault(pod.index, pod)
    return newest


def _build_workers(
    workers: Sequence[WorkerProgress], pods: Mapping[int, Pod]
) -> Sequence[DataWorkerView]:
    views = []
    for number, worker in enumerate(workers):
        pod = pods.get(number)
        status = (pod.status or pod.phase) if pod is not None else ""
        if pod is not None and pod.vanished_at is not None:
            status = "Deleted"
        views.append(
            DataWorkerView(
                number=number,
                pod=pod.name if pod is not None else "",
                pod_id=pod.pk if pod is not None else None,
                status=status,
                node=pod.node if pod is not None else "",
                prepared=worker.units,
                of=worker.of,
                rate=worker.rate or None,
                is_ready=worker.is_ready,
                error=worker.error,
            )
        )
    return views

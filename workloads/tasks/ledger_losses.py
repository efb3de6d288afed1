"""What disruptions cost, found once each and moved from the other kinds of the ledger."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from console.chunks import split_chunks
from workloads.disruptions import Disruption, decode_disruption
from workloads.ledger import AMOUNT_NAMES, Amounts, Loss, measure_loss, move_loss
from workloads.models import Event, LedgerEntry, LedgerLoss, Pod, TrainingProgress
from workloads.training_progress.estimating import measure_pace

LONGEST = timedelta(days=31)
"""How old a disruption may be that is still counted."""
PACE_PATIENCE = timedelta(minutes=10)
"""How long a training's pace is waited for; then steps that were done again cost nothing known."""
RECENT = timedelta(minutes=30)
"""How long after its last pod a workload's disruptions are looked for: they are over before."""
MOST_EVENTS = 500
"""Disruptions of one span; the next goes on with the rest."""


@dataclass(frozen=True, slots=True)
class WorkloadLoss:
    """What a disruption of a workload cost; `event` is the key of its row."""

    event: int
    workload: uuid.UUID
    at: datetime
    loss: Loss


def load_losses(cluster_id: uuid.UUID, end: datetime) -> Sequence[WorkloadLoss]:
    """Load the disruptions before `end` that are over and not in the ledger yet. Two queries."""
    holders = Pod.objects.filter(
        Q(vanished_at=None) | Q(vanished_at__gt=end - RECENT),
        Q(ended_at=None) | Q(ended_at__gt=end - RECENT),
        gpus__gt=0,
        workload__cluster=cluster_id,
    )
    events = (
        Event.objects.filter(
            ~Exists(LedgerLoss.objects.filter(event=OuterRef("pk"))),
            workload__in=holders.order_by().values("workload"),
            kind=Event.Kind.SCALE,
            cause__isnull=False,
            at__gte=end - LONGEST,
            at__lt=end,
        )
        .order_by("at", "pk")
        .values_list("pk", "workload_id", "at", "cause")
    )
    closed: list[tuple[int, uuid.UUID, datetime, Disruption]] = []
    for key, workload, at, cause in events[:MOST_EVENTS]:
        disruption = decode_disruption(cause)
        if disruption is not None and not disruption.is_open:
            closed.append((key, workload, at, disruption))
    paces = _load_paces([workload for _, workload, _, _ in closed])
    return [
        WorkloadLoss(key, workload, at, measure_loss(disruption, paces.get(workload)))
        for key, workload, at, disruption in closed
        if workload in paces or not disruption.lost_steps or at < end - PACE_PATIENCE
    ]


def _load_paces(workloads: Sequence[uuid.UUID]) -> dict[uuid.UUID, float]:
    """Load the seconds that a step takes, of the trainings that count steps."""
    paces = {}
    rows = TrainingProgress.objects.filter(workload__in=workloads).values_list("workload", "pace")
    for workload, kept in rows:
        if kept.get("unit") != "step":
            continue
        pace = measure_pace([(at, done) for at, done in kept.get("points", ())])
        if pace is not None:
            paces[workload] = 1 / pace.per_second
    return paces


def write_losses(losses: Sequence[WorkloadLoss]) -> None:
    """Move losses from the other kinds, each once. Three statements for each batch.

    It belongs to the transaction that adds the span.
    """
    for chunk in split_chunks(losses, MOST_EVENTS):
        LedgerLoss.objects.bulk_create(
            [LedgerLoss(event=each.event, at=each.at) for each in chunk], ignore_conflicts=True
        )
        costly = [each for each in chunk if each.loss != Loss()]
        if costly:
            _move_losses(costly)


def _move_losses(losses: Sequence[WorkloadLoss]) -> None:
    days = {each.at.date() - timedelta(days=number) for each in losses for number in (0, 1)}
    rows = LedgerEntry.objects.filter(
        workload__in={each.workload for each in losses}, day__in=days
    ).order_by("-day", "pk")
    by_workload: dict[uuid.UUID, list[tuple[LedgerEntry, Amounts]]] = defaultdict(list)
    for entry in rows:
        by_workload[entry.workload].append((entry, entry.amounts))
    for each in losses:
        # A little after midnight the work that was lost is of the day before.
        earlier = [
            amounts for entry, amounts in by_workload[each.workload] if entry.day <= each.at.date()
        ]
        move_loss(each.loss, earlier)
    changed = []
    for pairs in by_workload.values():
        for entry, amounts in pairs:
            entry.set_amounts(amounts)
            changed.append(entry)
    LedgerEntry.objects.bulk_update(changed, AMOUNT_NAMES, batch_size=100)

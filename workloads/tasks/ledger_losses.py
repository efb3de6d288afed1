"""What disruptions cost, found once each and moved from the other kinds of the ledger."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from console.chunks import split_chunks
from workloads.disruptions import Disruption, decode_disruption
from workloads.ledger import AMOUNT_NAMES, Amounts, Loss, measure_loss, merge_takers, move_loss
from workloads.models import Event, LedgerEntry, LedgerLoss, Pod, TrainingProgress
from workloads.tasks.disruptions import find_prefix
from workloads.training_progress.estimating import measure_pace

LONGEST = timedelta(days=31)
"""How old a disruption may be that is still counted."""
PACE_PATIENCE = timedelta(minutes=10)
"""How long a training's pace is waited for; then steps that were done again cost nothing known."""
RECENT = timedelta(minutes=30)
"""How long after its last pod a workload's disruptions are looked for: they are over before."""
MOST_EVENTS = 500
"""Events of disruptions of one span; the next goes on with the rest."""


@dataclass(frozen=True, slots=True)
class WorkloadLoss:
    """What a disruption of a workload cost; `events` are the keys of its rows, one each taker."""

    events: Sequence[int]
    workload: uuid.UUID
    at: datetime
    loss: Loss


@dataclass(frozen=True, slots=True)
class _ClosedDisruption:
    """A disruption that is over, with the moments of its first and its last taker."""

    events: Sequence[int]
    workload: uuid.UUID
    first_at: datetime
    last_at: datetime
    disruption: Disruption


def load_losses(cluster_id: uuid.UUID, end: datetime) -> Sequence[WorkloadLoss]:
    """Load the disruptions before `end` that are over and not in the ledger yet. Two queries."""
    disruptions = [each for each in _load_disruptions(cluster_id, end) if each.last_at < end]
    paces = _load_paces([each.workload for each in disruptions])
    return [
        WorkloadLoss(
            each.events,
            each.workload,
            each.first_at,
            measure_loss(each.disruption, paces.get(each.workload)),
        )
        for each in disruptions
        if each.workload in paces
        or not each.disruption.lost_steps
        or each.first_at < end - PACE_PATIENCE
    ]


def _load_disruptions(cluster_id: uuid.UUID, end: datetime) -> Sequence[_ClosedDisruption]:
    """Load the disruptions that are over, each with the events of all of its takers. One query."""
    holders = Pod.objects.filter(
        Q(vanished_at=None) | Q(vanished_at__gt=end - RECENT),
        Q(ended_at=None) | Q(ended_at__gt=end - RECENT),
        gpus__gt=0,
        workload__cluster=cluster_id,
    )
    closed = Event.objects.filter(
        ~Exists(LedgerLoss.objects.filter(event=OuterRef("pk"))),
        kind=Event.Kind.SCALE,
        cause__is_open=False,
        at__gte=end - LONGEST,
    )
    # What waits, for its turn or for a pace, must not stand in front of what can be counted.
    due = closed.filter(
        Q(at__lt=end - PACE_PATIENCE)
        | Q(cause__lost_steps__isnull=True)
        | Q(cause__lost_steps=0)
        | Exists(TrainingProgress.objects.filter(workload=OuterRef("workload"), pace__unit="step")),
        at__lt=end,
        workload__in=holders.order_by().values("workload"),
    )
    # A disruption is whole only with its events that are not due alone.
    rows = list(
        closed.filter(workload__in=due.order_by().values("workload"))
        .order_by("workload", "at", "pk")
        .values_list("workload_id", "uid", "pk", "at", "cause")[: MOST_EVENTS + 1]
    )
    if len(rows) > MOST_EVENTS and rows[0][0] != rows[-1][0]:
        # The last workload may have more events than were read.
        rows = [row for row in rows if row[0] != rows[-1][0]]
    parts: dict[tuple[uuid.UUID, str], list[tuple[int, datetime, Disruption]]] = defaultdict(list)
    for workload, uid, key, at, cause in rows:
        if (disruption := decode_disruption(cause)) is not None:
            parts[workload, find_prefix(uid)].append((key, at, disruption))
    return [
        _ClosedDisruption(
            [key for key, _, _ in each],
            workload,
            each[0][1],
            each[-1][1],
            merge_takers([disruption for _, _, disruption in each]),
        )
        for (workload, _), each in parts.items()
    ]


def _load_paces(workloads: Sequence[uuid.UUID]) -> dict[uuid.UUID, float]:
    """Load the seconds that a step takes, of the trainings that count steps."""
    paces = {}
    rows = TrainingProgress.objects.filter(workload__in=workloads).values_list("workload", "pace")
    for workload, stored_pace in rows:
        if stored_pace.get("unit") != "step":
            continue
        pace = measure_pace([(at, done) for at, done in stored_pace.get("points", ())])
        if pace is not None:
            paces[workload] = 1 / pace.per_second
    return paces


def write_losses(losses: Sequence[WorkloadLoss]) -> None:
    """Move losses from the other kinds, each once. Three statements for each batch.

    It belongs to the transaction that adds the span.
    """
    for chunk in split_chunks(losses, MOST_EVENTS):
        LedgerLoss.objects.bulk_create(
            [LedgerLoss(event=event, at=each.at) for each in chunk for event in each.events],
            ignore_conflicts=True,
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

"""What the radar found of workloads, for pages and REST: all of one, and the gravest of many."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F

from workloads.models import RadarFinding, RadarWatch, Workload
from workloads.radar import TITLES, Certainty, Kind, format_seconds
from workloads.specs import UnreadableSpec, decode_spec
from workloads.states import UP

MOST_FINDINGS = 200
"""Findings of one attempt in an answer, the newest ones."""
_KINDS = frozenset(Kind)
_GRAVITY = {
    kind: place
    for place, kind in enumerate(
        (
            Kind.NODE,
            Kind.HANG,
            Kind.LOSS,
            Kind.MEMORY,
            Kind.CHECKPOINTS,
            Kind.STRAGGLER,
            Kind.IDLE,
        )
    )
}
"""Kinds by what they cost: a faulty node is why the others are there, idle GPUs harm nobody's
model.
"""
_DANGERS = frozenset({Kind.NODE, Kind.HANG, Kind.LOSS})
"""Troubles with which a training comes to nothing."""
_CERTAINTIES = {each: place for place, each in enumerate(Certainty)}
_CERTAINTY_MEANINGS = {
    Certainty.CERTAIN: "What was measured has no other cause.",
    Certainty.LIKELY: "It looks so; something else may be the cause.",
    Certainty.POSSIBLE: "It may be usual for this training.",
}


@dataclass(frozen=True, slots=True)
class ProofView:
    """One piece of evidence; `metric` names the chart that shows it, "" for none."""

    text: str
    metric: str


@dataclass(frozen=True, slots=True)
class FindingView:
    """One trouble of a workload, open where `ended_at` is None.

    Its texts may hold lines of a log: text, bounded, hostile.
    """

    id: int
    kind: str
    rank: int | None
    pod_id: int | None
    pod_name: str
    node: str
    certainty: str
    sentence: str
    help: str
    proofs: Sequence[ProofView]
    began_at: datetime
    found_at: datetime
    seen_at: datetime
    ended_at: datetime | None

    @property
    def title(self) -> str:
        return get_title(self.kind)

    @property
    def certainty_meaning(self) -> str:
        """How sure the radar is, as a sentence."""
        is_known = self.certainty in _CERTAINTIES
        return _CERTAINTY_MEANINGS[Certainty(self.certainty)] if is_known else ""

    @property
    def is_danger(self) -> bool:
        """Whether the training comes to nothing with it, as far as one can see."""
        return self.kind in _DANGERS and self.certainty != Certainty.POSSIBLE

    @property
    def lasted(self) -> str:
        """How long it lasted, in words; "" while it is open."""
        if self.ended_at is None:
            return ""
        return format_seconds((self.ended_at - self.began_at).total_seconds())


@dataclass(frozen=True, slots=True)
class GravestFinding:
    """The gravest open finding of a workload, which has `count` of them."""

    kind: str
    certainty: str
    sentence: str
    began_at: datetime
    count: int

    @property
    def title(self) -> str:
        return get_title(self.kind)


@dataclass(frozen=True, slots=True)
class WatchView:
    """Whether the radar watches a workload, and when it looked at the present attempt last."""

    is_on: bool
    looked_at: datetime | None


def get_title(kind: str) -> str:
    """Return what a kind of trouble is called."""
    return TITLES[Kind(kind)] if kind in _KINDS else kind


def load_open_findings(workload: Workload) -> Sequence[FindingView]:
    """Load the open findings of the present attempt, the gravest first.

    One query, none for a workload that does not run: it has none, even where nobody has closed
    them yet.
    """
    if workload.status not in UP:
        return []
    rows = RadarFinding.objects.filter(
        workload=workload, attempt=workload.attempt, ended_at=None
    ).order_by("-found_at", "-id")
    return sorted(_load_views(rows, workload), key=_rank_view)


def load_findings(workload: Workload) -> Sequence[FindingView]:
    """Load the findings of the present attempt, open and over, the newest first. One query."""
    rows = RadarFinding.objects.filter(workload=workload, attempt=workload.attempt)
    return _load_views(rows.order_by("-found_at", "-id"), workload)


def load_gravest_findings(
    workloads: Sequence[Workload],
) -> Mapping[uuid.UUID, GravestFinding]:
    """Load the gravest open finding of each workload that has any, by id.

    One query, none where none of the workloads runs.
    """
    running = [each.pk for each in workloads if each.status in UP]
    if not running:
        return {}
    rows = (
        RadarFinding.objects.filter(
            workload__in=running, attempt=F("workload__attempt"), ended_at=None
        )
        .order_by("workload_id", "began_at", "pk")
        .only("workload", "kind", "certainty", "sentence", "began_at")
    )
    by_workload: dict[uuid.UUID, list[RadarFinding]] = {}
    for row in rows:
        by_workload.setdefault(row.workload_id, []).append(row)
    return {key: _choose_gravest(findings) for key, findings in by_workload.items()}


def load_watch(workload: Workload) -> WatchView:
    """Load whether the radar watches a workload, and when it looked last. One query."""
    looked_at = (
        RadarWatch.objects.filter(workload=workload, attempt=workload.attempt)
        .values_list("looked_at", flat=True)
        .first()
    )
    try:
        is_on = decode_spec(workload.spec).radar.is_on
    except UnreadableSpec:
        # Nothing is known of what it asks for, and nobody watches it.
        is_on = False
    return WatchView(is_on, looked_at)


def _load_views(rows: Any, workload: Workload) -> list[FindingView]:
    rows = rows.select_related("pod").defer("pod__data")[:MOST_FINDINGS]
    return [_build_view(row, workload) for row in rows]


def _build_view(row: RadarFinding, workload: Workload) -> FindingView:
    # What runs no more has no trouble: until the radar closes its findings, it had them for as
    # long as they were seen.
    is_open = row.ended_at is None and workload.status in UP
    return FindingView(
        id=row.pk,
        kind=row.kind,
        rank=row.rank,
        pod_id=row.pod_id,
        pod_name=row.pod.name if row.pod is not None else "",
        node=row.node,
        certainty=row.certainty,
        sentence=row.sentence,
        help=row.help,
        proofs=_parse_proofs(row.proofs),
        began_at=row.began_at,
        found_at=row.found_at,
        seen_at=row.seen_at,
        ended_at=None if is_open else row.ended_at or row.seen_at,
    )


def _parse_proofs(proofs: object) -> list[ProofView]:
    if not isinstance(proofs, list):
        return []
    return [
        ProofView(str(each.get("text", "")), str(each.get("metric", "")))
        for each in proofs
        if isinstance(each, dict)
    ]


def _choose_gravest(rows: Sequence[RadarFinding]) -> GravestFinding:
    row = min(rows, key=lambda each: _rank(each.kind, each.certainty))
    return GravestFinding(row.kind, row.certainty, row.sentence, row.began_at, len(rows))


def _rank_view(view: FindingView) -> tuple[int, int]:
    return _rank(view.kind, view.certainty)


def _rank(kind: str, certainty: str) -> tuple[int, int]:
    """Return what orders findings, the gravest first."""
    return (
        _GRAVITY[Kind(kind)] if kind in _KINDS else len(_GRAVITY),
        _CERTAINTIES[Certainty(certainty)] if certainty in _CERTAINTIES else len(_CERTAINTIES),
    )

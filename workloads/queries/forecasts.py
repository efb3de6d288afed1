"""When a waiting workload will start, in words for one reader: pages, REST and command line alike.

What it waits for, and the reader may not see, is named "another project".
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from console.texts import join_words
from projects.models import User
from simulation.run_lengths import FEWEST_RUNS
from workloads.diagnosis.queue_position import QueuePosition, format_ordinal
from workloads.forecasting.played_state import LEFT_OUT
from workloads.forecasting.unplayed_devices import NOT_PLAYED, find_unplayed_device
from workloads.journal.forecast_records import UNSTARTED
from workloads.models import (
    FORECAST_AGE,
    MOST_FORECASTS,
    ClusterForecast,
    ForecastOutlook,
    ForecastRecord,
    Horizon,
    Workload,
    WorkloadForecast,
)
from workloads.pod_counts import PLACED, decode_counts
from workloads.queries.disruptions import UNNAMED
from workloads.queries.queue_positions import load_queue_positions
from workloads.specs import UnreadableSpec, decode_spec
from workloads.states import Status

WAITING_STATUSES = frozenset({Status.PENDING, Status.PREPARING})
"""Statuses whose page says when the workload is likely to start."""
WINDOW = timedelta(days=30)
"""How far back the record goes that is shown."""
LEAST_RECORD = 20
"""Decided forecasts below which no share of right ones is named."""
LONG_SECONDS = 5.0
"""Seconds of computing from which on the next forecast takes its time: the cluster rests."""


def compute_share(right: int, count: int) -> float | None:
    """Return the share of right forecasts; None where too few are decided."""
    return right / count if count >= LEAST_RECORD else None


def find_overdue_records(now: datetime) -> Q:
    """Return the condition on records whose workloads wait past the latest start that was shown.

    They were wrong, though the worker that marks them may be late, or down.
    """
    waiting = Workload.objects.filter(
        pk=OuterRef("workload"),
        attempt=OuterRef("attempt"),
        status__in=UNSTARTED,
        released_at=None,
    )
    is_unmarked = Q(is_right=None, closed_at=None, latest_at__lt=now)
    return is_unmarked & Q(Exists(waiting))


def find_decided_records(now: datetime) -> Q:
    """Return the condition on records of which is known whether they were right."""
    return Q(is_right__isnull=False) | find_overdue_records(now)


@dataclass(frozen=True, slots=True)
class Blocker:
    """Work whose end a workload waits for; `workload_id` is None where the reader sees it not."""

    name: str
    project: str
    workload_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """How often forecasts of a class were right for a project, of those that are decided."""

    project: str
    horizon: Horizon
    right: int
    count: int

    @property
    def share(self) -> float | None:
        """The share of right ones; None where there are too few."""
        return compute_share(self.right, self.count)

    @property
    def sentence(self) -> str:
        about = f"for {self.project}, {self.horizon.label} ahead"
        if self.share is None:
            return (
                f"Too few such forecasts ({about}) have been decided in the last {WINDOW.days} "
                f"days to say how often they are right (n = {self.count})."
            )
        return (
            f"In the last {WINDOW.days} days such forecasts ({about}) were right "
            f"{100 * self.share:.0f} % of the time (n = {self.count:,})."
        )


@dataclass(frozen=True, slots=True)
class ForecastView:
    """What one reader is told of the start of a waiting workload.

    The moments are there with a likely start only. `explanation` says in words what else there is
    to say, or why nothing is forecast.
    """

    outlook: ForecastOutlook
    made_at: datetime | None = None
    likely_at: datetime | None = None
    earliest_at: datetime | None = None
    latest_at: datetime | None = None
    explanation: str = ""
    position: QueuePosition | None = None
    blockers: Sequence[Blocker] = field(default=())
    record: TrackRecord | None = None
    now: datetime = field(default_factory=timezone.now)

    @property
    def may_be_sooner(self) -> bool:
        """Whether it waits for room, so that alternatives can be played."""
        return self.outlook in (
            ForecastOutlook.STARTS,
            ForecastOutlook.NO_END,
            ForecastOutlook.TOO_LATE,
            ForecastOutlook.NEVER,
        )

    @property
    def is_overdue(self) -> bool:
        """Whether it should have started by now."""
        return self.latest_at is not None and self.latest_at <= self.now

    @property
    def is_due(self) -> bool:
        """Whether its likely start is now, or was, and the latest one is to come."""
        if self.is_overdue:
            return False
        return self.likely_at is not None and self.likely_at <= self.now + timedelta(seconds=60)

    @property
    def has_begun_interval(self) -> bool:
        """Whether the earliest likely start is past, so that only the latest one says anything."""
        return self.earliest_at is not None and self.earliest_at <= self.now

    @property
    def place(self) -> str:
        """Its place in its project's queue, as "3rd in line"; "" where that is not known."""
        return f"{format_ordinal(self.position.position)} in line" if self.position else ""

    @property
    def sentence(self) -> str:
        """All of it in words, with times in UTC."""
        if self.likely_at is None:
            return self.explanation
        if self.latest_at is not None and self.is_overdue:
            latest = _format_moment(self.latest_at)
            likely = f"it should have started by {latest}, and the next forecast follows"
        elif self.is_due:
            likely = f"likely any moment ({self._describe_interval()})"
        else:
            likely = f"likely {_format_moment(self.likely_at)} ({self._describe_interval()})"
        begin = "; ".join(filter(None, (self.place, likely)))
        return " ".join(filter(None, (f"{begin[:1].upper()}{begin[1:]}.", self.explanation)))

    def _describe_interval(self) -> str:
        earliest = _format_moment(self.earliest_at) if self.earliest_at else ""
        if self.latest_at is None and self.has_begun_interval:
            return "maybe not within a day"
        if self.latest_at is None:
            return f"9 of 10 times after {earliest}, and maybe not within a day"
        latest = _format_moment(self.latest_at)
        if self.has_begun_interval:
            return f"8 of 10 times by {latest}"
        return f"8 of 10 times between {earliest} and {latest}"


def _format_moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def view_forecast(workload: Workload, user: User) -> ForecastView | None:
    """Return what is to be said of a workload's start; None where it does not wait.

    It is loaded with its project and cluster. At most five queries.
    """
    if workload.status not in WAITING_STATUSES or workload.released_at is not None:
        return None
    now = timezone.now()
    if workload.cluster.unreachable_since is not None:
        return _refuse("No forecast: its cluster does not answer.")
    if not workload.cluster.is_enabled:
        return _refuse("No forecast: its cluster is disabled.")
    row = WorkloadForecast.objects.filter(workload=workload.pk, attempt=workload.attempt).first()
    if row is None:
        return _refuse(_explain_missing(workload, now))
    if now - row.made_at > FORECAST_AGE:
        age = round((now - row.made_at).total_seconds() / 60)
        return _refuse(
            f"No forecast: the last one is {age:,} minutes old, and much may have changed since.",
            row.made_at,
        )
    outlook = ForecastOutlook(row.outlook)
    blockers = _load_blockers(row, user)
    return ForecastView(
        outlook=outlook,
        made_at=row.made_at,
        likely_at=row.likely_at,
        earliest_at=row.earliest_at,
        latest_at=row.latest_at,
        explanation=_explain(outlook, blockers, workload),
        position=load_queue_positions([workload]).get(workload.pk),
        blockers=blockers,
        record=_load_record(workload, Horizon(row.horizon), now) if row.horizon else None,
        now=now,
    )


def _refuse(explanation: str, made_at: datetime | None = None) -> ForecastView:
    return ForecastView(ForecastOutlook.UNKNOWN, made_at=made_at, explanation=explanation)


def _explain_missing(workload: Workload, now: datetime) -> str:
    """Return why a workload has no forecast in a cluster that is asked. One query."""
    forecast = ClusterForecast.objects.filter(pk=workload.cluster_id).first()
    if forecast is not None and now - forecast.computed_at <= FORECAST_AGE:
        if forecast.has_more:
            return (
                f"No forecast: only the {MOST_FORECASTS:,} workloads of a cluster that wait "
                "longest have one."
            )
        if forecast.took_seconds >= LONG_SECONDS:
            return (
                f"No forecast yet: the last one of its cluster took {forecast.took_seconds:.0f} s, "
                "and the next one follows after a pause."
            )
    return "No forecast yet: the first one usually takes up to a minute."


def _load_blockers(row: WorkloadForecast, user: User) -> Sequence[Blocker]:
    """Load what it waits for, as far as the reader may see it. One query, or none."""
    ids = [uuid.UUID(each) for each in row.blockers]
    if not ids:
        return ()
    visible = Workload.objects.visible_to(user).filter(pk__in=ids).order_by()
    rows = visible.values_list("pk", "name", "project__name")
    names: Mapping[uuid.UUID, tuple[str, str]] = {pk: (name, of) for pk, name, of in rows}
    named = [Blocker(*names[pk], pk) for pk in ids if pk in names]
    return [*named, Blocker("", UNNAMED)] if len(named) < len(ids) else named


def _name_blockers(blockers: Sequence[Blocker]) -> str:
    words = [f"{each.name} ({each.project})" for each in blockers if each.name]
    hidden = [f"work of {each.project}" for each in blockers if not each.name]
    return join_words([*words, *hidden])


def _explain(outlook: ForecastOutlook, blockers: Sequence[Blocker], workload: Workload) -> str:
    """Return what is to be said beside a likely start, or instead of it. One query, or none."""
    names = _name_blockers(blockers)
    match outlook:
        case ForecastOutlook.STARTS:
            return f"It waits for the end of {names}." if names else ""
        case ForecastOutlook.NO_END:
            verb = "end" if len(blockers) > 1 else "ends"
            return (
                f"No forecast: nobody knows when {names or 'what it waits for'} {verb}. A time "
                f"limit would tell it, or {FEWEST_RUNS} runs like it that lasted longer and ended."
            )
        case ForecastOutlook.TOO_LATE:
            return "It is not likely to start within 24 hours."
        case ForecastOutlook.NEVER:
            return (
                "It does not start by itself: whatever ends, there is no room for it on the nodes "
                "that take pods now, or it asks for more than its project may have."
            )
        case ForecastOutlook.PREPARING:
            return (
                "No forecast: its data is being prepared. Its start is forecast once it asks for "
                "GPUs."
            )
        case ForecastOutlook.HELD:
            return "No forecast: Kueue holds it, and Muster does not play Kueue's queues forward."
        case ForecastOutlook.NO_PODS:
            return _explain_pods(workload)
    forecasts = ClusterForecast.objects.filter(pk=workload.cluster_id)
    trouble = forecasts.values_list("trouble", flat=True).first() or _explain_devices(workload)
    return f"No forecast. {trouble or LEFT_OUT}"


def _explain_devices(workload: Workload) -> str:
    """Return what a workload asks for of which nobody knows what is free; "" without it."""
    try:
        device = find_unplayed_device(decode_spec(workload.spec))
    except UnreadableSpec:
        return ""
    return f"It asks for {device}, and {NOT_PLAYED}." if device else ""


def _explain_pods(workload: Workload) -> str:
    """Return what a workload that is no waiting gang waits with: its own pods tell."""
    counts = decode_counts(workload.pod_counts)
    if counts is not None and counts.attempt == workload.attempt:
        placed = sum(counts.standings.get(each, 0) for each in PLACED)
        requested = workload.requested_pods
        if 0 < placed < requested:
            have = "has" if placed == 1 else "have"
            return (
                f"{placed:,} of {requested:,} pods {have} a node; the others start as room comes: "
                "no forecast."
            )
    return "No forecast: none of its pods waits for a node yet."


def _load_record(workload: Workload, horizon: Horizon, now: datetime) -> TrackRecord:
    """Count how often such forecasts were right for the workload's project. One query."""
    decided = ForecastRecord.objects.filter(
        find_decided_records(now),
        project=workload.project_id,
        horizon=horizon.value,
        made_at__gte=now - WINDOW,
    )
    counts = decided.aggregate(count=Count("pk"), right=Count("pk", filter=Q(is_right=True)))
    return TrackRecord(workload.project.name, horizon, counts["right"], counts["count"])

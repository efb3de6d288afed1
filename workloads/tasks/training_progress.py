"""The step that reads, every few seconds, how far trainings are from what is new in their logs."""

import copy
import dataclasses
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.db import DatabaseError
from django.db.models import F, Q
from django.utils import timezone

from clusters import connections
from clusters.tasks import claim_task
from console.celery import step
from workloads import journal
from workloads.journal import ProgressUpdate
from workloads.logbook.log_files import open_logs
from workloads.models import Log, LossCurve, TrainingProgress, Workload
from workloads.specs import Setup, UnreadableSpec, VariableSource, decode_spec
from workloads.states import UP
from workloads.tasks.progress_logs import (
    MOST_BYTES,
    MOST_BYTES_OF_OTHERS,
    NewLine,
    RankLogs,
    advance_share,
    choose_ranks,
    list_unread,
    load_rank_logs,
    read_new_lines,
)
from workloads.training_progress import (
    VARIABLE,
    BadPattern,
    LineParser,
    LossHistory,
    add_point,
    decode_history,
    estimate_rest,
    find_place,
)
from workloads.training_progress.step_times import SET_BACK

logger = logging.getLogger(__name__)

MOST_RUNNING = 100
"""Workloads of one turn, those first that were read the longest ago.

Fewer than the changed rows for which a page would load its whole table anew (queries.changes).
"""
MOST_ENDED = 50
BATCH_SIZE = 25
"""Workloads that are written in one transaction."""
MOST_SECONDS = 3.0
"""How long a turn begins with further batches and logs."""
ENDED_SPAN = timedelta(minutes=10)
"""How long after its end a log is looked for, where the workload has not been settled."""
MOST_ENDED_LOGS = 2000
LATE_LOGS = timedelta(minutes=1)
"""How long after its end the share of ranks whose logs are not all there is read again."""
LEAD_SILENCE = timedelta(minutes=10)
"""After this time without a line, the rank that leads gives way to one that still writes."""
UNREADABLE = "What is new in its logs cannot be read at the moment."
_FIELDS = (
    "project_id",
    "cluster_id",
    "architecture",
    "framework",
    "status",
    "attempt",
    "spec",
    "requested_pods",
    "running_pods",
    "ended_at",
)


@step
def follow_training() -> None:
    """Read how far trainings are. May run twice or late: a log goes on where its reading ended."""
    with claim_task("training-progress", "all") as is_claimed:
        if is_claimed:
            _follow_workloads(timezone.now())


def _follow_workloads(now: datetime) -> None:
    deadline = monotonic() + MOST_SECONDS
    workloads = [*_load_ended(now), *_load_running()]
    for begin in range(0, len(workloads), BATCH_SIZE):
        if monotonic() > deadline:
            return
        _follow_batch(workloads[begin : begin + BATCH_SIZE], now, deadline)


def _load_running() -> Sequence[Workload]:
    """Load the workloads that run, those that were read the longest ago first."""
    rows = Workload.objects.filter(status__in=UP, ended_at=None, released_at=None)
    rows = rows.select_related("progress").only(*_FIELDS, "progress")
    return list(rows.order_by(F("progress__read_at").asc(nulls_first=True), "pk")[:MOST_RUNNING])


def _load_ended(now: datetime) -> Sequence[Workload]:
    """Load the workloads of which logs were completed of late, unless they are settled."""
    logs = Log.objects.filter(
        state=Log.State.COMPLETE, ended_at__gte=now - ENDED_SPAN, is_init=False
    )
    recent = logs.order_by("-ended_at").values_list("pod__workload", flat=True)
    unsettled = (
        Q(progress=None) | Q(progress__is_settled=False) | ~Q(progress__attempt=F("attempt"))
    )
    rows = Workload.objects.filter(unsettled, pk__in=set(recent[:MOST_ENDED_LOGS]))
    rows = rows.exclude(status__in=UP).select_related("progress").only(*_FIELDS, "progress")
    return list(rows.order_by(F("progress__read_at").asc(nulls_first=True), "pk")[:MOST_ENDED])


def _follow_batch(workloads: Sequence[Workload], now: datetime, deadline: float) -> None:
    """Read and write these workloads: a constant number of statements."""
    rows = {each.pk: _ensure_row(each) for each in workloads}
    wanted = {
        each.pk: choose_ranks(each, rows[each.pk], is_over=each.status not in UP)
        for each in workloads
    }
    ranks = load_rank_logs(wanted, workloads)
    curves = {
        each.workload_id: each for each in LossCurve.objects.filter(workload__in=rows).order_by()
    }
    updates = []
    for workload in workloads:
        if monotonic() > deadline:
            break
        row, before = rows[workload.pk], copy.copy(rows[workload.pk])
        try:
            update = _follow_workload(
                workload, row, ranks.get(workload.pk, ()), curves.get(workload.pk), now
            )
        except Exception:
            # Whatever the disk, the object store's client or a line raises, others are read.
            logger.exception("the progress of workload %s is unreadable", workload.pk)
            update = _build_unreadable(workload, before, now)
        updates.append(update)
    _record_updates(updates, now)


def _build_unreadable(workload: Workload, row: TrainingProgress, now: datetime) -> ProgressUpdate:
    """Build the update that leaves all as it was read before, and says so. Its turn is over."""
    is_news = row.trouble != UNREADABLE
    row.read_at, row.trouble = now, UNREADABLE
    return ProgressUpdate(workload.pk, workload.project_id, row, is_news=is_news)


def _record_updates(updates: Sequence[ProgressUpdate], now: datetime) -> None:
    """Write what was read of these workloads, one by one where the database refuses one of them."""
    try:
        journal.record_training_progress(updates)
    except DatabaseError:
        if len(updates) > 1:
            for each in updates:
                _record_updates([each], now)
            return
        [update] = updates
        logger.exception("the progress of workload %s cannot be written", update.workload_id)
        # Without a time it would be the first to be read for ever.
        row = TrainingProgress(
            workload_id=update.workload_id,
            attempt=update.row.attempt,
            read_at=now,
            trouble=UNREADABLE,
        )
        journal.record_training_progress(
            [ProgressUpdate(update.workload_id, update.project_id, row, is_news=True)]
        )


def _ensure_row(workload: Workload) -> TrainingProgress:
    """Return the row of a workload, a new one where there is none of this attempt."""
    row: TrainingProgress | None = getattr(workload, "progress", None)
    if row is not None and row.attempt == workload.attempt:
        return row
    return TrainingProgress(workload_id=workload.pk, attempt=workload.attempt)


def _follow_workload(
    workload: Workload,
    row: TrainingProgress,
    ranks: Sequence[RankLogs],
    curve: LossCurve | None,
    now: datetime,
) -> ProgressUpdate:
    before, is_new = _list_shown(row), row._state.adding
    lines: dict[int, list[NewLine]] = {}
    row.trouble = ""
    try:
        parsers = [LineParser(each) for each in _list_own_patterns(workload)]
    except BadPattern as error:
        row.trouble = f"The pattern in {VARIABLE} {error}."[:300]
    else:
        clock_lead = connections.clock_offset(workload.cluster_id)
        leading = {0, row.rank}
        lines = {
            each.row.rank: _read_rank(
                each,
                parsers[0 if each.row.rank == 0 else -1],
                clock_lead,
                MOST_BYTES if each.row.rank in leading else MOST_BYTES_OF_OTHERS,
            )
            for each in ranks
        }
    for each in ranks:
        each.row.read_at = now
    lead = _choose_lead(row, ranks)
    history = decode_history(None if curve is None or is_new else curve.history)
    history.drop_later(now.timestamp() + SET_BACK)
    new_points = 0
    if lead is not None:
        new_points = _apply_lines(row, history, lines.get(lead.row.rank, ()))
        _show_lead(row, lead)
    is_up = workload.status in UP
    _apply_estimate(row, now if is_up else None)
    row.read_at = now
    if is_up or _are_complete(ranks) or _is_long_over(workload, now):
        advance_share(workload, row, is_over=not is_up)
    row.is_settled = row.unread_ranks == 0 and _are_complete(ranks)
    has_curve = new_points > 0 or (is_new and curve is not None)
    return ProgressUpdate(
        workload.pk,
        workload.project_id,
        row,
        [each.row for each in ranks],
        LossCurve(workload_id=workload.pk, history=history.encode()) if has_curve else None,
        is_news=_list_shown(row) != before or any(lines.values()),
    )


def _is_long_over(workload: Workload, now: datetime) -> bool:
    return workload.ended_at is not None and now - workload.ended_at > LATE_LOGS


def _are_complete(ranks: Sequence[RankLogs]) -> bool:
    """Tell whether nothing more will come of these ranks: their logs are captured to the end.

    The log of one may be complete while that of another, of the same moment, is still captured.
    """
    return all(
        each.logs and all(log.state != Log.State.CAPTURING for log in each.logs) for each in ranks
    )


def _list_own_patterns(workload: Workload) -> tuple[str, str]:
    """Return the patterns of the first rank and of all others; "" where a setup has none."""
    try:
        spec = decode_spec(workload.spec)
    except UnreadableSpec:
        return "", ""
    return _find_own_pattern(spec.master_setup), _find_own_pattern(spec.setup)


def _find_own_pattern(setup: Setup) -> str:
    """Return the pattern that an environment variable gives; "" for none."""
    variables = () if setup.environment is None else setup.environment.variables
    return next(
        (
            each.value
            for each in variables
            if each.name == VARIABLE and each.source is VariableSource.CUSTOM
        ),
        "",
    )


def _read_rank(
    rank: RankLogs, parser: LineParser, clock_lead: timedelta, most_bytes: int
) -> list[NewLine]:
    """Read what is new of a rank into its row."""
    with open_logs(list_unread(rank)) as opened:
        lines = list(read_new_lines(rank, opened, parser, clock_lead, most_bytes))
    rank.row.state = dataclasses.asdict(rank.state)
    return lines


def _choose_lead(row: TrainingProgress, ranks: Sequence[RankLogs]) -> RankLogs | None:
    """Return the rank that tells how far the workload is: the first of which a line counted.

    It stays so until it is silent for long while another goes on.
    """
    candidates = [each for each in ranks if each.row.at is not None]
    if not candidates:
        return None
    present = next((each for each in candidates if each.row.rank == row.rank), None)
    newest = max(candidates, key=lambda each: (each.row.at, -each.row.rank))
    if present is None:
        return min(candidates, key=lambda each: (each.state.step is None, each.row.rank))
    assert present.row.at is not None
    assert newest.row.at is not None
    return newest if newest.row.at - present.row.at > LEAD_SILENCE else present


def _apply_lines(row: TrainingProgress, history: LossHistory, lines: Sequence[NewLine]) -> int:
    """Take the lead's lines into the pace and the loss; return how many points these got."""
    unit, points = row.pace.get("unit", ""), row.pace.get("points", [])
    count = 0
    for line in lines:
        at = line.at.timestamp()
        if line.place is not None:
            points = add_point(
                points if unit == line.place.unit else (), round(at, 3), line.place.done
            )
            unit = line.place.unit
        if line.tells_loss:
            count += history.add_point(at, line.step, line.loss)
    row.pace = {"unit": unit, "points": points}
    return count


def _show_lead(row: TrainingProgress, lead: RankLogs) -> None:
    state = lead.state
    row.rank, row.pattern, row.state = lead.row.rank, state.pattern, lead.row.state
    row.step, row.total, row.epoch, row.epochs = state.step, state.total, state.epoch, state.epochs
    row.at, row.log, row.offset = lead.row.at, lead.row.log, lead.row.offset


def _apply_estimate(row: TrainingProgress, now: datetime | None) -> None:
    """Estimate the end of a training that runs; `now` is None for one that does not."""
    row.ends_at, row.estimate = None, ""
    points = [(at, done) for at, done in row.pace.get("points", ())]
    if now is None or not points:
        return
    place = find_place(row.step, row.total, row.epoch, row.epochs)
    estimate = estimate_rest(place, points, now.timestamp())
    if estimate is not None:
        row.ends_at = now + timedelta(seconds=estimate.seconds)
        row.estimate = estimate.words[:200]


def _list_shown(row: TrainingProgress) -> tuple[Any, ...]:
    return row.rank, row.step, row.total, row.epoch, row.epochs, row.trouble, row.estimate

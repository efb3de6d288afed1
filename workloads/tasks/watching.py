"""The steps of the radar: they look, every few seconds, for trouble in running workloads."""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any

from django.db import DatabaseError
from django.db.models import F, Q
from django.utils import timezone

from clusters.models import Node
from clusters.tasks import claim_task
from console.celery import step
from console.errors import UserError
from projects.durations import describe_duration
from workloads import journal
from workloads.journal import RadarUpdate
from workloads.manifests import CannotBuild
from workloads.models import RadarFinding, RadarWatch, Workload
from workloads.radar import (
    FIGURES_PERIOD,
    Finding,
    Kind,
    Thresholds,
    decode_memory,
    inspect_workload,
)
from workloads.specs import Radar, UnreadableSpec, decode_spec
from workloads.states import RESTING, UP, Status
from workloads.tasks.launching import launch
from workloads.tasks.own_stops import stop_workload
from workloads.tasks.radar_evidence import (
    Target,
    load_evidence,
    load_figures,
    load_last_lines,
)

logger = logging.getLogger(__name__)

MOST_WORKLOADS = 500
"""Workloads of one turn, those first that were looked at the longest ago."""
BATCH_SIZE = 20
MOST_SECONDS = 5.0
"""How long a turn begins with further batches."""
ACT_AFTER = timedelta(minutes=3)
"""How long Muster itself has looked without a pause, and found a hang, before it stops anything.

After a pause the logs are not read up to now yet, and who goes on looks silent.
"""
MOST_CLOSED = 200
MOST_RUN = 20
MOST_EXCLUDED = 3
"""Nodes that Muster leaves out of a workload's runs by itself: it may be the workload's fault."""
HANG_STOP, NODE_STOP = "HangStop", "NodeStop"
"""The reasons of the events of stops."""
_FIELDS = (
    *("project_id", "cluster_id", "status", "attempt", "spec", "name", "requested_pods"),
    *("started_at", "idle_since", "gpus_allocated", "disrupted_at", "excluded_nodes"),
)


@step
def watch_workloads() -> None:
    """Look for trouble in running workloads. May run twice or late."""
    with claim_task("radar", "all") as is_claimed:
        if is_claimed:
            _watch_workloads()
            _close_findings(timezone.now())
            _run_due_workloads()


def _watch_workloads() -> None:
    deadline = monotonic() + MOST_SECONDS
    workloads = _load_workloads()
    for begin in range(0, len(workloads), BATCH_SIZE):
        if monotonic() > deadline:
            return
        _watch_batch(workloads[begin : begin + BATCH_SIZE])


def _load_workloads() -> Sequence[Workload]:
    """Load the workloads to be looked at: nothing is read of clusters that do not answer."""
    rows = Workload.objects.filter(
        status__in=UP,
        ended_at=None,
        released_at=None,
        cluster__unreachable_since=None,
        cluster__is_enabled=True,
    )
    rows = rows.select_related("radar_watch", "cluster")
    rows = rows.only(*_FIELDS, "radar_watch", "cluster__captured_until")
    order = F("radar_watch__looked_at").asc(nulls_first=True)
    return list(rows.order_by(order, "pk")[:MOST_WORKLOADS])


def _watch_batch(workloads: Sequence[Workload]) -> None:
    """Look at these workloads and write what was found."""
    now = timezone.now()
    targets = []
    for workload in workloads:
        try:
            targets.append(Target(workload, decode_spec(workload.spec)))
        except UnreadableSpec:
            continue
    watched = [each for each in targets if each.spec.radar.is_on]
    load_evidence(watched, now)
    rows = RadarFinding.objects.filter(
        workload__in=[each.workload.pk for each in targets],
        attempt=F("workload__attempt"),
        ended_at=None,
    )
    open_rows: dict[Any, dict[str, RadarFinding]] = {}
    for row in rows.order_by():
        open_rows.setdefault(row.workload_id, {})[row.key] = row
    looks = [_inspect_safely(each, open_rows.get(each.workload.pk, {}), now) for each in watched]
    unwatched = []
    for each in targets:
        if not each.spec.radar.is_on:
            over = list(open_rows.get(each.workload.pk, ()))
            watch = _get_watch(each.workload)
            unwatched.append(_build_update(each.workload, watch, now, over=over))
    _record_updates([*looks, *unwatched], now)
    for each, look in zip(watched, looks, strict=True):
        _act_safely(each, look, open_rows.get(each.workload.pk, {}), now)


def _inspect_safely(
    target: Target, open_rows: Mapping[str, RadarFinding], now: datetime
) -> RadarUpdate:
    """Look at one workload; what goes wrong with it does not stop the others."""
    watch = _get_watch(target.workload)
    if target.evidence is None:
        return _build_update(target.workload, watch, now)
    try:
        return _inspect_workload(target, watch, open_rows, now)
    except Exception:
        logger.exception("workload %s cannot be looked at", target.workload.pk)
        return _build_update(target.workload, watch, now)


def _inspect_workload(
    target: Target, watch: RadarWatch, open_rows: Mapping[str, RadarFinding], now: datetime
) -> RadarUpdate:
    radar = target.spec.radar
    memory = decode_memory(watch.memory)
    period = timedelta(seconds=FIGURES_PERIOD)
    # One that is not yet was measured by a clock that was ahead.
    is_due = watch.measured_at is None or not now - period < watch.measured_at <= now
    assert target.evidence is not None
    tracking = inspect_workload(
        target.evidence,
        memory,
        Thresholds(radar.hang_seconds, radar.straggler_percent),
        open_rows,
        are_figures_due=is_due,
        load_figures=partial(load_figures, target.workload),
        load_last_lines=load_last_lines,
    )
    watch.memory = dataclasses.asdict(memory)
    watch.measured_at = now if is_due else watch.measured_at
    return _build_update(
        target.workload, watch, now, tracking.begun, tracking.lasting, tracking.over
    )


def _get_watch(workload: Workload) -> RadarWatch:
    """Return the row of a workload, a new one where there is none of this attempt."""
    row: RadarWatch | None = getattr(workload, "radar_watch", None)
    if row is not None and row.attempt == workload.attempt:
        return row
    return RadarWatch(workload_id=workload.pk, attempt=workload.attempt)


def _build_update(
    workload: Workload,
    watch: RadarWatch,
    now: datetime,
    begun: Sequence[Finding] = (),
    lasting: Sequence[Finding] = (),
    over: Sequence[str] = (),
) -> RadarUpdate:
    watch.looked_at = now
    return RadarUpdate(workload.pk, workload.project_id, watch, begun, lasting, over)


def _record_updates(updates: Sequence[RadarUpdate], now: datetime) -> None:
    """Write what was found, one by one where the database refuses one of them."""
    try:
        journal.record_radar(updates, now)
    except DatabaseError:
        if len(updates) > 1:
            for each in updates:
                _record_updates([each], now)
            return
        logger.exception("what was found of %s cannot be written", updates[0].workload_id)


def _close_findings(now: datetime) -> None:
    """End the findings of workloads that do not run any more, or are not to be watched."""
    rows = RadarFinding.objects.filter(ended_at=None)
    over = rows.filter(~Q(workload__status__in=UP) | ~Q(attempt=F("workload__attempt")))
    over = over.select_related("workload").order_by("pk")
    journal.close_findings(list(over.defer("workload__job", "workload__spec")[:MOST_CLOSED]), now)


def _act_safely(
    target: Target, look: RadarUpdate, open_rows: Mapping[str, RadarFinding], now: datetime
) -> None:
    """Act on one workload; what goes wrong with it does not stop the others."""
    try:
        _act(target, look, open_rows, now)
    except Exception:
        logger.exception("workload %s cannot be acted on", target.workload.pk)


def _act(
    target: Target, look: RadarUpdate, open_rows: Mapping[str, RadarFinding], now: datetime
) -> None:
    """Do what the settings ask for, once for each finding that this look finds again."""
    watched_since = decode_memory(look.watch.memory).watched_since
    if now.timestamp() - watched_since < ACT_AFTER.total_seconds():
        return
    radar = target.spec.radar
    for finding in look.lasting:
        row = open_rows.get(finding.key)
        if row is None or row.acted_at is not None:
            continue
        if _act_on(target.workload, radar, row, now):
            journal.record_radar_action(row, now)
            return


def _act_on(workload: Workload, radar: Radar, row: RadarFinding, now: datetime) -> bool:
    """Stop a workload that hangs for too long, or run one again without a faulty node.

    Return whether that was requested.
    """
    if row.kind == Kind.NODE and radar.restarts_without_faulty_node:
        return _run_without_node(workload, row)
    limit = radar.stop_after_hang_seconds
    if row.kind != Kind.HANG or limit is None:
        return False
    if (now - row.began_at).total_seconds() < limit or now - row.found_at < ACT_AFTER:
        return False
    why = (
        f"it hung for {describe_duration(limit)}, after which it was to be stopped. {row.sentence}"
    )
    return stop_workload(workload, HANG_STOP, why)


def _run_without_node(workload: Workload, row: RadarFinding) -> bool:
    excluded = list(workload.excluded_nodes)
    if row.node in excluded or len(excluded) >= MOST_EXCLUDED:
        return False
    others = Node.objects.filter(cluster=workload.cluster_id, is_ready=True)
    if not others.exclude(name__in=[*excluded, row.node]).exists():
        # It would wait for ever.
        return False
    why = f"its node is faulty, and it runs again without that. {row.sentence}"
    if not stop_workload(workload, NODE_STOP, why, runs_again=True):
        return False
    journal.exclude_nodes(workload.pk, [*excluded, row.node], None)
    return True


def _run_due_workloads() -> None:
    """Run the workloads again that are to, as soon as they have stopped."""
    rows = Workload.objects.filter(is_run_due=True, status__in=RESTING).only("name", "status")
    for workload in rows.order_by("pk")[:MOST_RUN]:
        if workload.status == Status.COMPLETED:
            journal.cancel_due_run(workload.pk, "It does not run again: it had completed before.")
            continue
        try:
            journal.request_run(workload.pk, None)
        except (UserError, UnreadableSpec, CannotBuild) as error:
            journal.cancel_due_run(workload.pk, f"It does not run again by itself: {error}")
            continue
        launch.enqueue(str(workload.pk))

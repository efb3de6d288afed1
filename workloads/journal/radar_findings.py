"""What the radar found: rows and entries of the history, written for many workloads at once."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from workloads.journal.left_out_events import make_room_for_change
from workloads.journal.transactions import JournalTransaction, journal_transaction
from workloads.models import Event, RadarFinding, RadarWatch, Workload
from workloads.radar import TITLES, Finding, format_seconds

SOURCE = "Muster"
REASONS = {kind: title.replace(" ", "") for kind, title in TITLES.items()}
"""The reasons of the events, as "IdleGPUs"."""
NEWS_PERIOD = timedelta(seconds=30)
"""How often open pages are told of a finding that lasts, whose sentence says how long."""
MOST_FINDINGS = 200
"""Findings of an attempt that are kept; more are counted by nobody: they come and go."""


@dataclass(slots=True)
class RadarUpdate:
    """What one look at a workload brings. `over` are keys of findings that are over."""

    workload_id: uuid.UUID
    project_id: int
    watch: RadarWatch
    begun: Sequence[Finding] = ()
    lasting: Sequence[Finding] = ()
    over: Sequence[str] = field(default=())


def record_radar(updates: Sequence[RadarUpdate], now: datetime) -> None:
    """Write what looks at these workloads brought, save of those in another attempt by now.

    One transaction: four statements, and a few for each finding that begins, changes or ends.
    """
    if not updates:
        return
    with journal_transaction() as journal_tx:
        workloads = {
            each.pk: each
            for each in Workload.objects.filter(pk__in=[each.workload_id for each in updates])
            .only("project", "attempt", "name", "submitted_by")
            .order_by()
        }
        current = [
            each
            for each in updates
            if (workload := workloads.get(each.workload_id)) is not None
            and workload.attempt == each.watch.attempt
        ]
        RadarWatch.objects.bulk_create(
            [each.watch for each in current],
            update_conflicts=True,
            unique_fields=["workload"],
            update_fields=["attempt", "memory", "looked_at", "measured_at"],
        )
        rows = {
            (row.workload_id, row.key): row
            for row in RadarFinding.objects.filter(
                workload__in=[each.workload_id for each in current], ended_at=None
            ).order_by()
        }
        for each in current:
            if _write_findings(workloads[each.workload_id], each, rows, now):
                _tell_pages(journal_tx, workloads[each.workload_id])


def close_findings(findings: Sequence[RadarFinding], now: datetime) -> None:
    """End findings of attempts that are over, or of workloads that are not watched any more."""
    if not findings:
        return
    with journal_transaction() as journal_tx:
        for row in findings:
            if _end_finding(row, now, has_recovered=False):
                _tell_pages(journal_tx, row.workload)


def record_radar_action(row: RadarFinding, now: datetime) -> None:
    """Keep that Muster did what the workload's settings ask for when it has this trouble."""
    RadarFinding.objects.filter(pk=row.pk).update(acted_at=now)


def _tell_pages(journal_tx: JournalTransaction, workload: Workload) -> None:
    Workload.objects.filter(pk=workload.pk).update(changed=journal_tx.position)
    journal_tx.mark_changed(workload.project_id)


def _write_findings(
    workload: Workload,
    update: RadarUpdate,
    rows: dict[tuple[uuid.UUID, str], RadarFinding],
    now: datetime,
) -> bool:
    """Write the findings of one workload. Return whether pages show something else now."""
    is_news = False
    for finding in update.begun:
        if (workload.pk, finding.key) not in rows:
            is_news |= _begin_finding(workload, finding, now)
    for finding in update.lasting:
        row = rows.get((workload.pk, finding.key))
        if row is not None:
            is_news |= _continue_finding(row, finding, now)
    for key in update.over:
        row = rows.get((workload.pk, key))
        if row is not None:
            is_news |= _end_finding(row, now, has_recovered=True)
    return is_news


def _begin_finding(workload: Workload, finding: Finding, now: datetime) -> bool:
    rows = RadarFinding.objects.filter(workload=workload, attempt=workload.attempt)
    if rows[MOST_FINDINGS - 1 : MOST_FINDINGS].exists():
        return False
    row = RadarFinding(workload=workload, attempt=workload.attempt, key=finding.key[:280])
    _fill_row(row, finding, now)
    row.began_at = min(now, datetime.fromtimestamp(finding.since, UTC))
    row.found_at = now
    row.save()
    make_room_for_change(workload)
    Event.objects.create(
        workload=workload,
        attempt=workload.attempt,
        at=now,
        kind=Event.Kind.FINDING,
        is_warning=True,
        reason=REASONS[finding.kind],
        text=row.sentence,
        source=SOURCE,
        uid=_build_uid(row),
    )
    return True


def _continue_finding(row: RadarFinding, finding: Finding, now: datetime) -> bool:
    """Bring a row up to date. Return whether pages are to be told: now and then of what goes on."""
    before = row.sentence, row.rank, row.certainty
    _fill_row(row, finding, now)
    has_changed = (row.sentence, row.rank, row.certainty) != before
    is_news = has_changed and (now - row.told_at >= NEWS_PERIOD or row.rank != before[1])
    if is_news:
        row.told_at = now
    row.save()
    return is_news


def _fill_row(row: RadarFinding, finding: Finding, now: datetime) -> None:
    row.kind, row.rank, row.certainty = finding.kind.value, finding.rank, finding.certainty.value
    row.pod_id, row.node = finding.pod, finding.node[:253]
    row.sentence, row.help = finding.sentence[:1000], finding.help[:1000]
    row.proofs = [{"text": each.text[:500], "metric": each.metric} for each in finding.proofs[:8]]
    row.seen_at = now


def _end_finding(row: RadarFinding, now: datetime, *, has_recovered: bool) -> bool:
    """End a finding, and say so in its entry of the history."""
    row.ended_at = now
    updated = RadarFinding.objects.filter(pk=row.pk, ended_at=None).update(ended_at=now)
    if not updated:
        return False
    lasted = format_seconds((now - row.began_at).total_seconds())
    how = "It was over" if has_recovered else "It lasted to the end of the run"
    text = f"{row.sentence} {how} at {now:%H:%M} UTC, after {lasted}."
    Event.objects.filter(workload=row.workload_id, uid=_build_uid(row)).update(text=text)
    return True


def _build_uid(row: RadarFinding) -> str:
    return f"finding-{row.pk}"

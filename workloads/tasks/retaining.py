"""Deletion of data whose retention is over: deleted workloads, events, abandoned drafts and
sessions, logs, entries of the ledger, forecasts, past states, quota trials.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models, transaction
from django.utils import timezone

from console.celery import step
from workloads import logbook
from workloads.models import (
    TRIAL_AGE,
    Desired,
    Draft,
    Event,
    ForecastRecord,
    LedgerEntry,
    LedgerLoss,
    QuotaTrial,
    StateBlock,
    StateBookmark,
    StateDelta,
    Workload,
)
from workloads.states import RESTING, Status

log = logging.getLogger(__name__)

DRAFT_AGE = timedelta(days=7)
BATCH_SIZE = 500
"""Rows of one transaction.

Writers wait as long as it takes to delete these and their dependents.
"""
MAX_BATCHES = 100
"""Batches of each sort in one run; the rest is for the next hour."""


@step
def retain() -> None:
    """Delete everything that was kept as long as the settings say."""
    now, options = timezone.now(), settings.OPTIONS
    # Their files first: a row that is gone cannot say where its log lies.
    try:
        logbook.remove_old_logs()
    except Exception:
        # Rows that are not of logs are deleted all the same.
        log.exception("old logs cannot be removed")
    _delete_in_batches(
        Workload.objects.filter(released_at__lt=now - timedelta(days=options.deleted_days))
    )
    at_rest = [*RESTING, Status.DELETING]
    old_events = Event.objects.filter(
        at__lt=now - timedelta(days=options.history_days), workload__status__in=at_rest
    )
    # Once others resume a job that they suspended, its running time is measured by its events.
    _delete_in_batches(
        old_events.exclude(workload__status=Status.STOPPED, workload__desired=Desired.RUNNING)
    )
    oldest = now - timedelta(days=options.ledger_days)
    _delete_in_batches(LedgerEntry.objects.filter(day__lt=oldest.date()))
    _delete_in_batches(LedgerLoss.objects.filter(at__lt=oldest))
    oldest_forecast = now - timedelta(days=options.forecast_days)
    _delete_in_batches(ForecastRecord.objects.filter(made_at__lt=oldest_forecast))
    _delete_past_states(now)
    _delete_in_batches(QuotaTrial.objects.filter(created_at__lt=now - TRIAL_AGE))
    _delete_in_batches(Draft.objects.filter(updated_at__lt=now - DRAFT_AGE))
    _delete_in_batches(Session.objects.filter(expire_date__lt=now))


def _delete_past_states(now: datetime) -> None:
    """Delete blocks that ended before the days of the time machine; all of them where it is off."""
    days = settings.OPTIONS.time_machine_days
    if days:
        _delete_in_batches(StateBlock.objects.filter(until__lt=now - timedelta(days=days)))
        return
    with transaction.atomic():
        for model in (StateBookmark, StateDelta, StateBlock):
            model.objects.all().delete()


def _delete_in_batches(rows: models.QuerySet[Any]) -> None:
    for _ in range(MAX_BATCHES):
        ids: Iterable[Any] = list(rows.order_by().values_list("pk", flat=True)[:BATCH_SIZE])
        if not ids:
            return
        rows.model._default_manager.filter(pk__in=ids).delete()

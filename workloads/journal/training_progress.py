"""How far trainings are, written for many workloads at once; open pages are told."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db import models

from workloads.journal.transactions import journal_transaction
from workloads.models import LossCurve, RankProgress, TrainingProgress, Workload

Row = TypeVar("Row", bound=models.Model)


@dataclass(slots=True)
class ProgressUpdate:
    """What a turn read of one workload. `is_news` says that pages show something else now."""

    workload_id: uuid.UUID
    project_id: int
    row: TrainingProgress
    ranks: Sequence[RankProgress] = ()
    curve: LossCurve | None = None
    is_news: bool = False


def record_training_progress(updates: Sequence[ProgressUpdate]) -> None:
    """Write what was read of these workloads, save of those that are in another attempt by now.

    One transaction of at most seven statements, however many workloads there are.
    """
    if not updates:
        return
    with journal_transaction() as journal_tx:
        attempts = dict(
            Workload.objects.filter(pk__in=[each.workload_id for each in updates])
            .order_by()
            .values_list("pk", "attempt")
        )
        current = [each for each in updates if attempts.get(each.workload_id) == each.row.attempt]
        _put_rows(TrainingProgress, [each.row for each in current], ["workload"])
        _put_rows(LossCurve, [each.curve for each in current if each.curve], ["workload"])
        _put_rows(
            RankProgress, [rank for each in current for rank in each.ranks], ["workload", "rank"]
        )
        news = [each for each in current if each.is_news]
        if news:
            Workload.objects.filter(pk__in=[each.workload_id for each in news]).update(
                changed=journal_tx.position
            )
        for each in news:
            journal_tx.mark_changed(each.project_id)


def _put_rows(model: type[Row], rows: Sequence[Row], unique: Sequence[str]) -> None:
    """Insert these rows, or replace those that have the same values of `unique`."""
    fields = [
        each.name
        for each in model._meta.concrete_fields
        if each.name not in unique and not each.primary_key
    ]
    if model._meta.pk.name not in unique:
        # They are found by `unique`: those with a key of their own would be another statement.
        for row in rows:
            row.pk = None
    if rows:
        model._default_manager.bulk_create(
            rows,
            batch_size=200,
            update_conflicts=True,
            unique_fields=list(unique),
            update_fields=fields,
        )

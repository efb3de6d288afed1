"""How much workloads use their GPUs, written for all of them at once; open pages are told."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from console.chunks import split_chunks
from workloads.journal.bulk_sql import RowChange, update_rows
from workloads.journal.transactions import journal_transaction
from workloads.models import MetricSeries, Workload

NEWS_POINTS: Final = 5.0
"""Percentage points of a step: open pages are told when the use comes to another one. So a slow
change is told as well as a quick one.
"""
MOST_NEWS: Final = 500
"""Workloads that one transaction tells pages of; the others show it with their next change."""


def record_gpu_use(
    use: Mapping[int, float], at: datetime, changed: Iterable[uuid.UUID] = ()
) -> None:
    """Write the use by series, in percent.

    Pages are told of workloads whose use changed much, and of those that are given as `changed`.
    """
    news = set(changed)
    if not use and not news:
        return
    with journal_transaction() as journal_tx:
        updates = []
        for chunk in split_chunks(sorted(use)):
            rows = MetricSeries.objects.filter(workload__isnull=False, pk__in=chunk)
            for pk, workload, before in rows.values_list("pk", "workload_id", "gpu_use"):
                updates.append(RowChange(pk, new_values={"gpu_use": use[pk], "gpu_use_at": at}))
                if before is None or use[pk] // NEWS_POINTS != before // NEWS_POINTS:
                    news.add(workload)
        update_rows(MetricSeries, "id", updates)
        workload_ids = sorted(news)[:MOST_NEWS]
        rows = Workload.objects.filter(pk__in=workload_ids)
        for project in set(rows.values_list("project_id", flat=True)):
            journal_tx.mark_changed(project)
        rows.update(changed=journal_tx.position)

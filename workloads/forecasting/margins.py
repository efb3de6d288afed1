"""By how much intervals are widened, by what became of the forecasts before."""

import math
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q

from simulation import compute_margin
from simulation.calibration import PastInterval, compute_aim
from simulation.forecasting import HORIZON
from workloads.models import ForecastRecord, Horizon

WINDOW = timedelta(days=30)
MOST_RECORDS = 2_000
"""Past forecasts of one cluster and class that are learned from, the newest."""
MOST_SHOWN = 200
"""Intervals of one cluster by which it is judged whether enough of them are right, the newest."""
_FIELDS = ("workload", "made_at", "drawn_earliest_at", "drawn_latest_at", "started_at", "closed_at")


def load_margins(cluster_id: uuid.UUID, now: datetime) -> Mapping[Horizon, float]:
    """Return the margin of each class of forecasts of a cluster. A query for each class, and one.

    An outcome counts when its interval is over, come what may: would those count that have
    started, the early ones alone would count at first.
    """
    aim = compute_aim(_load_shown(cluster_id, now))
    return {each: compute_margin(_load_past(cluster_id, each, now), aim) for each in Horizon}


def _load_shown(cluster_id: uuid.UUID, now: datetime) -> list[bool]:
    """Load whether intervals were right as they were shown."""
    records = ForecastRecord.objects.filter(
        _is_over("latest_at", now),
        cluster=cluster_id,
        is_right__isnull=False,
        made_at__gte=now - WINDOW,
    ).order_by("-made_at")
    return list(records.values_list("is_right", flat=True)[:MOST_SHOWN])


def _load_past(cluster_id: uuid.UUID, horizon: Horizon, now: datetime) -> list[PastInterval]:
    """Load what became of forecasts; what waited in vain counts as late as it waited."""
    records = ForecastRecord.objects.filter(
        ForecastRecord.find_known_outcomes(now),
        _is_over("drawn_latest_at", now),
        cluster=cluster_id,
        horizon=horizon.value,
        made_at__gte=now - WINDOW,
    ).order_by("-made_at")
    rows = records.values_list(*_FIELDS)[:MOST_RECORDS]
    return [
        PastInterval(
            str(workload),
            (earliest_at - made_at).total_seconds(),
            math.inf if latest_at is None else (latest_at - made_at).total_seconds(),
            ((started_at or closed_at or now) - made_at).total_seconds(),
        )
        for workload, made_at, earliest_at, latest_at, started_at, closed_at in rows
    ]


def _is_over(end: str, now: datetime) -> Q:
    """Return the condition on records whose interval is over; an open one ends with the horizon."""
    return Q(**{f"{end}__lt": now}) | Q(**{end: None}, made_at__lt=now - timedelta(seconds=HORIZON))

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
"""Intervals of one cluster and class by which it is judged whether enough are right, the newest."""
_FIELDS = ("workload", "made_at", "drawn_earliest_at", "drawn_latest_at", "started_at", "closed_at")


def load_margins(cluster_id: uuid.UUID, now: datetime) -> Mapping[Horizon, float]:
    """Return the margin of each class of forecasts of a cluster. Two queries for each class.

    An outcome counts when its interval is over. Before, only those are known that started early.
    """
    return {
        each: compute_margin(
            _load_past(cluster_id, each, now), compute_aim(_load_outcomes(cluster_id, each, now))
        )
        for each in Horizon
    }


def _load_outcomes(
    cluster_id: uuid.UUID, horizon: Horizon, now: datetime
) -> list[tuple[str, bool]]:
    """Load whose intervals were shown, and whether each was right."""
    records = ForecastRecord.objects.filter(
        _is_over("latest_at", now),
        cluster=cluster_id,
        horizon=horizon.value,
        is_right__isnull=False,
        made_at__gte=now - WINDOW,
    ).order_by("-made_at", "-pk")
    rows = records.values_list("workload", "is_right")[:MOST_SHOWN]
    return [(str(workload), bool(is_right)) for workload, is_right in rows]


def _load_past(cluster_id: uuid.UUID, horizon: Horizon, now: datetime) -> list[PastInterval]:
    """Load what became of forecasts; what waited in vain counts as late as it waited."""
    records = ForecastRecord.objects.filter(
        ForecastRecord.find_known_outcomes(now),
        _is_over("drawn_latest_at", now),
        cluster=cluster_id,
        horizon=horizon.value,
        made_at__gte=now - WINDOW,
    ).order_by("-made_at", "-pk")
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

"""By how much intervals are widened, by what became of the forecasts before."""

import math
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta

from simulation import compute_margin
from simulation.calibration import PastInterval
from workloads.models import ForecastRecord, Horizon

WINDOW = timedelta(days=30)
MOST_RECORDS = 2_000
"""Past forecasts of one cluster and class that are learned from, the newest."""
_FIELDS = ("workload", "made_at", "drawn_earliest_at", "drawn_latest_at", "started_at", "closed_at")


def load_margins(cluster_id: uuid.UUID, now: datetime) -> Mapping[Horizon, float]:
    """Return the margin of each class of forecasts of a cluster. A query for each class."""
    return {each: compute_margin(_load_past(cluster_id, each, now)) for each in Horizon}


def _load_past(cluster_id: uuid.UUID, horizon: Horizon, now: datetime) -> list[PastInterval]:
    """Load what became of forecasts; what waited in vain counts as late as it waited."""
    records = ForecastRecord.objects.filter(
        ForecastRecord.find_known_outcomes(now),
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

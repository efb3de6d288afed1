"""By how much intervals are widened, by what became of the forecasts before."""

import math
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q

from simulation import compute_margin
from simulation.calibration import PastInterval
from workloads.models import ForecastRecord, Horizon

WINDOW = timedelta(days=30)
MOST_RECORDS = 2_000
"""Past forecasts of one cluster and class that are learned from, the newest."""


def load_margins(cluster_id: uuid.UUID, now: datetime) -> Mapping[Horizon, float]:
    """Return the margin of each class of forecasts of a cluster. A query for each class."""
    return {each: compute_margin(_load_past(cluster_id, each, now)) for each in Horizon}


def _load_past(cluster_id: uuid.UUID, horizon: Horizon, now: datetime) -> list[PastInterval]:
    """Load what became of forecasts; what is overdue counts as late as it is by now.

    Without it only those would count that came early enough to be known.
    """
    known = Q(started_at__isnull=False) | Q(closed_at=None, is_right=False)
    records = ForecastRecord.objects.filter(
        known, cluster=cluster_id, horizon=horizon.value, made_at__gte=now - WINDOW
    ).order_by("-made_at")
    rows = records.values_list("made_at", "drawn_earliest", "drawn_latest", "started_at")
    return [
        PastInterval(
            earliest,
            math.inf if latest is None else latest,
            ((started_at or now) - made_at).total_seconds(),
        )
        for made_at, earliest, latest, started_at in rows[:MOST_RECORDS]
    ]

"""What is forecast for what waits in a busy console, and what became of a month of forecasts."""

import math
import random
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import NormalDist

from projects.models import Project
from simulation.forecasts import DECILES
from workloads.forecasting.horizons import find_horizon
from workloads.models import ClusterForecast, ForecastRecord, Workload, WorkloadForecast

RECORDS = 420


def create_forecasts(
    projects: Sequence[Project], waiting: Workload, running: Workload, now: datetime
) -> None:
    """Create the forecast of what waits, and the record of both projects."""
    likely = now + timedelta(minutes=95)
    WorkloadForecast.objects.create(
        workload=waiting,
        attempt=waiting.attempt,
        made_at=now - timedelta(seconds=40),
        outlook="starts",
        horizon="6h",
        likely_at=likely,
        earliest_at=likely - timedelta(minutes=32),
        latest_at=likely + timedelta(minutes=51),
        blockers=[str(running.pk)],
    )
    Workload.objects.filter(pk=waiting.pk).update(likely_start_at=likely)
    ClusterForecast.objects.create(
        cluster_id=waiting.cluster_id,
        computed_at=now - timedelta(seconds=40),
        took_seconds=0.4,
        fingerprint="0" * 64,
    )
    drawn = random.Random(7)
    records = [_draw_record(drawn, drawn.choice(projects), now) for _ in range(RECORDS)]
    ForecastRecord.objects.bulk_create(records)


def _draw_record(drawn: random.Random, project: Project, now: datetime) -> ForecastRecord:
    """Draw a forecast that was a little too sure of itself, and widened for that."""
    made_at = now - timedelta(hours=drawn.uniform(30, 29 * 24))
    likely = 60 * math.exp(drawn.uniform(1.2, 7))
    spread = drawn.uniform(1.3, 2.2)
    start = likely * math.exp(drawn.gauss(0.05, 0.62))
    earliest, latest = likely / spread, likely * spread
    bounds = (
        made_at + timedelta(seconds=earliest / 1.35),
        made_at + timedelta(seconds=latest * 1.35),
    )
    is_started = drawn.random() < 0.94
    started_at = made_at + timedelta(seconds=start) if is_started else None
    return ForecastRecord(
        workload=uuid.UUID(int=drawn.getrandbits(128)),
        attempt=1,
        project=project,
        cluster_id=project.cluster_id,
        made_at=made_at,
        horizon=find_horizon(likely).value,
        drawn_earliest_at=made_at + timedelta(seconds=earliest),
        drawn_latest_at=made_at + timedelta(seconds=latest),
        quantiles=[
            (share, likely * spread ** (NormalDist().inv_cdf(share) / NormalDist().inv_cdf(0.9)))
            for share in DECILES
        ],
        likely_at=made_at + timedelta(seconds=likely),
        earliest_at=bounds[0],
        latest_at=bounds[1],
        closed_at=started_at or made_at + timedelta(hours=1),
        started_at=started_at,
        is_right=None if started_at is None else bounds[0] <= started_at <= bounds[1],
    )

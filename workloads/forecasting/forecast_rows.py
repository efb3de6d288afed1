"""What the simulator answers as rows: what is shown now, and what is kept of it."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from simulation import Outlook, StartForecast, widen_interval
from simulation.forecasts import DECILES
from workloads.forecasting.horizons import find_horizon
from workloads.journal import ForecastUpdate
from workloads.models import ForecastOutlook, ForecastRecord, Horizon, Workload, WorkloadForecast

MOST_BLOCKERS = 5
MOST_RECORDS = 24
"""Forecasts of one attempt that are kept."""
RECORD_PERIOD = timedelta(hours=1)
"""After so long a forecast is kept again, though it says the same."""
RECORD_PAUSE = timedelta(minutes=5)
"""For so long none is kept, though it moves: a wait of some minutes is one forecast."""
SHIFT = 0.1
"""By which share of its distance a likely start moves before the forecast is kept again."""
NEWS_SHIFT = 0.05
"""By which share of its distance it moves before open pages are told."""
_MINUTE = timedelta(minutes=1)


def build_forecast_row(
    workload: Workload, forecast: StartForecast, now: datetime, margins: Mapping[Horizon, float]
) -> WorkloadForecast:
    """Build the row of what is shown: the interval widened, its bounds at whole minutes."""
    row = WorkloadForecast(
        workload=workload,
        attempt=workload.attempt,
        made_at=now,
        outlook=ForecastOutlook(forecast.outlook.value).value,
        blockers=list_blockers(forecast),
    )
    if forecast.outlook is Outlook.STARTS:
        assert forecast.likely is not None
        horizon = find_horizon(forecast.likely)
        earliest, latest = _widen(forecast, forecast.likely, margins.get(horizon, 0.0))
        row.horizon = horizon.value
        row.likely_at = now + timedelta(seconds=forecast.likely)
        row.earliest_at = _floor_minute(now + timedelta(seconds=earliest))
        if latest is not None:
            row.latest_at = _ceil_minute(now + timedelta(seconds=latest))
    return row


def _widen(forecast: StartForecast, likely: float, margin: float) -> tuple[float, float | None]:
    """Return the interval with its margin; an open end stays open."""
    assert forecast.earliest is not None
    latest = likely if forecast.latest is None else forecast.latest
    low, high = widen_interval(forecast.earliest, likely, latest, margin)
    return low, None if forecast.latest is None else min(high, MOST_SECONDS)


MOST_SECONDS = 366 * 86_400.0
"""No margin makes a moment that is no date."""


def _floor_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _ceil_minute(moment: datetime) -> datetime:
    floor = _floor_minute(moment)
    return floor if floor == moment else floor + _MINUTE


def list_blockers(forecast: StartForecast) -> list[str]:
    """Return the ids of the workloads that a gang waits for, of each once."""
    ids: dict[str, None] = {}
    for key in forecast.blockers:
        try:
            # The gang of a workload's data workers has its id and a suffix.
            ids[str(uuid.UUID(key[:36]))] = None
        except ValueError:
            continue
    return list(ids)[:MOST_BLOCKERS]


def build_record(
    row: WorkloadForecast, workload: Workload, forecast: StartForecast
) -> ForecastRecord:
    """Build the row that is kept of a likely start."""
    assert row.likely_at is not None
    assert row.earliest_at is not None
    assert forecast.earliest is not None
    latest = forecast.latest
    return ForecastRecord(
        workload=workload.pk,
        attempt=workload.attempt,
        project_id=workload.project_id,
        cluster_id=workload.cluster_id,
        made_at=row.made_at,
        horizon=row.horizon,
        drawn_earliest_at=row.made_at + timedelta(seconds=forecast.earliest),
        drawn_latest_at=None if latest is None else row.made_at + timedelta(seconds=latest),
        quantiles=list_quantiles(forecast),
        likely_at=row.likely_at,
        earliest_at=row.earliest_at,
        latest_at=row.latest_at,
    )


def list_quantiles(forecast: StartForecast) -> list[tuple[float, float | None]]:
    """Return by which second which share of the draws had started; None is beyond the horizon."""
    return list(zip(DECILES, forecast.quantiles, strict=False))


def is_record_due(row: WorkloadForecast, records: Sequence[ForecastRecord]) -> bool:
    """Return whether a forecast is kept, after those of the same attempt, the newest last."""
    if row.likely_at is None or len(records) >= MOST_RECORDS:
        return False
    if not records:
        return True
    last = records[-1]
    age = row.made_at - last.made_at
    if age < RECORD_PAUSE:
        return False
    is_old = age >= RECORD_PERIOD
    return is_old or row.horizon != last.horizon or _has_moved(last, row, SHIFT)


def is_news(row: WorkloadForecast, before: WorkloadForecast | None) -> bool:
    """Return whether pages show something else by a forecast than by the one before."""
    if before is None or row.attempt != before.attempt or row.outlook != before.outlook:
        return True
    return row.blockers != before.blockers or _has_moved(before, row, NEWS_SHIFT)


def _has_moved(
    before: WorkloadForecast | ForecastRecord, row: WorkloadForecast, share: float
) -> bool:
    if before.likely_at is None or row.likely_at is None:
        return before.likely_at != row.likely_at
    distance = max(timedelta(), before.likely_at - before.made_at)
    return abs(row.likely_at - before.likely_at) > max(_MINUTE, distance * share)


def build_update(
    row: WorkloadForecast, before: WorkloadForecast | None, record: ForecastRecord | None
) -> ForecastUpdate:
    """Build what the journal writes of one workload."""
    return ForecastUpdate(row, record, is_news(row, before))

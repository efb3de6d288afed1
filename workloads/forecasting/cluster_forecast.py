"""One cluster played forward: what is known of it is loaded, and the answers are kept."""

import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from clusters.models import Cluster
from scheduling import ClusterState
from simulation import Past, RunLengths, StartForecast
from simulation.forecasting import HORIZON
from workloads import journal
from workloads.elastic import cluster_state
from workloads.elastic.cluster_state import LoadedState
from workloads.forecasting import forecast_rows
from workloads.forecasting.evidence import load_run_lengths
from workloads.forecasting.fingerprint import compute_fingerprint
from workloads.forecasting.margins import load_margins
from workloads.forecasting.played_state import load_played_state
from workloads.forecasting.simulator_process import SimulatorFailed, simulate_apart
from workloads.forecasting.submissions import load_past_submissions
from workloads.forecasting.unplayed_devices import load_ids_with_unplayed_devices
from workloads.models import (
    MOST_FORECASTS,
    ClusterForecast,
    ForecastOutlook,
    ForecastRecord,
    Workload,
    WorkloadForecast,
)
from workloads.states import HELD_BY_KUEUE, Status

MOST_AGE = timedelta(minutes=3)
"""After so long a cluster is played forward anew, though nothing changed but the time."""
STALE_AFTER = timedelta(minutes=3)
"""For how long a cluster's last answer tells what it has."""
MOST_SKEW = timedelta(minutes=1)
"""How far the clocks of two machines may differ; one that is further ahead was set back since."""
LONGEST_CLAIM = timedelta(seconds=150)
"""For how long a cluster is one process's to play forward: longer than the simulator runs."""
TOO_LARGE = (
    f"The cluster has more than {cluster_state.MOST_NODES:,} nodes or "
    f"{cluster_state.MOST_PODS:,} pods with a node: Muster does not play so many forward."
)
WAITING = (Status.PENDING.value, Status.PREPARING.value)
"""Statuses whose workloads have a forecast, or a word why there is none."""


class Simulator(Protocol):
    """Plays a cluster forward, as `simulation.forecast_starts` does."""

    def __call__(
        self,
        state: ClusterState,
        lengths: Mapping[str, RunLengths],
        *,
        seed: int,
        horizon: float,
        past: Past,
    ) -> Mapping[str, StartForecast]: ...


def forecast_cluster(cluster: Cluster, now: datetime, simulate: Simulator = simulate_apart) -> bool:
    """Forecast the starts of all that waits in a cluster, where anything changed for them.

    Return whether it was played forward, which one process does at a time. May run twice, late or
    beside another: what is written rests on what was read.
    """
    journal.settle_forecast_records(cluster.pk, now)
    before = ClusterForecast.objects.filter(pk=cluster.pk).first()
    waiting_workloads = _load_waiting(cluster)
    workloads = waiting_workloads[:MOST_FORECASTS]
    if not workloads:
        journal.clear_forecasts(cluster.pk)
        return False
    fingerprint = compute_fingerprint(cluster)
    is_of_now = before is not None and before.fingerprint == fingerprint
    # One of a time to come was made before the clock was set back.
    if before is not None and is_of_now and -MOST_SKEW <= now - before.computed_at < MOST_AGE:
        return False
    if not journal.claim_forecast(cluster.pk, now, now + LONGEST_CLAIM):
        return False
    began_at = time.monotonic()
    computed = ClusterForecast(
        cluster=cluster,
        computed_at=now,
        fingerprint=fingerprint,
        has_more=len(waiting_workloads) > MOST_FORECASTS,
    )
    forecasts: Mapping[str, StartForecast] = {}
    unplayed_ids: Collection[uuid.UUID] = ()
    try:
        loaded = load_played_state(cluster, now)
        unplayed_ids = _find_unplayed_ids(workloads, loaded)
        lengths = load_run_lengths(cluster.pk, now)
        before_now = load_past_submissions(cluster, lengths, now)
        forecasts = simulate(
            loaded.state,
            {**lengths, **before_now.lengths},
            # The same state gives the same answer, whoever plays it forward.
            seed=int(fingerprint[:8], 16),
            horizon=HORIZON,
            past=before_now.past,
        )
    except cluster_state.TooLarge:
        computed.trouble = TOO_LARGE
    except SimulatorFailed as error:
        computed.trouble = str(error)
    updates = _build_updates(cluster, workloads, forecasts, computed, unplayed_ids)
    computed.took_seconds = time.monotonic() - began_at
    journal.record_forecasts(computed, before, updates)
    return True


def _load_waiting(cluster: Cluster) -> Sequence[Workload]:
    """Load what waits, one more than is forecast."""
    rows = Workload.objects.filter(
        cluster=cluster, status__in=WAITING, ended_at=None, released_at=None
    )
    fields = ("attempt", "status", "reason", "project", "cluster", "likely_start_at")
    return list(rows.order_by("created_at", "pk").only(*fields)[: MOST_FORECASTS + 1])


def _find_unplayed_ids(workloads: Sequence[Workload], loaded: LoadedState) -> Collection[uuid.UUID]:
    """Return the ids of the workloads that are left out: too many of their projects wait."""
    played = {gang.key for gang in loaded.state.gangs}
    return {
        each.pk
        for each in workloads
        if each.project_id in loaded.cut_projects and str(each.pk) not in played
    }


def _build_updates(
    cluster: Cluster,
    workloads: Sequence[Workload],
    forecasts: Mapping[str, StartForecast],
    computed: ClusterForecast,
    unplayed_ids: Collection[uuid.UUID],
) -> Sequence[journal.ForecastUpdate]:
    """Build what is written of each waiting workload. Some queries, whatever waits."""
    now = computed.computed_at
    margins = load_margins(cluster.pk, now)
    old_rows = WorkloadForecast.objects.filter(workload__cluster=cluster).in_bulk()
    open_records = _load_kept_records(cluster)
    ids_with_unplayed_devices = load_ids_with_unplayed_devices(workloads)
    updates = []
    for workload in workloads:
        has_unplayed_device = workload.pk in ids_with_unplayed_devices
        forecast = None if has_unplayed_device else forecasts.get(str(workload.pk))
        record = None
        if forecast is None:
            row = _build_row_without_forecast(
                workload,
                computed,
                has_unplayed_device=has_unplayed_device,
                is_unplayed=workload.pk in unplayed_ids,
            )
        else:
            row = forecast_rows.build_forecast_row(workload, forecast, now, margins)
            if forecast_rows.is_record_due(
                row, open_records.get((workload.pk, workload.attempt), ())
            ):
                record = forecast_rows.build_record(row, workload, forecast)
        updates.append(forecast_rows.build_update(row, old_rows.get(workload.pk), record))
    return updates


def _load_kept_records(cluster: Cluster) -> Mapping[tuple[object, int], list[ForecastRecord]]:
    """Load the open records of a cluster, the newest last, by workload and attempt."""
    records = ForecastRecord.objects.filter(cluster=cluster, closed_at=None).order_by("pk")
    records_by_attempt: dict[tuple[object, int], list[ForecastRecord]] = defaultdict(list)
    fields = ("workload", "attempt", "made_at", "likely_at", "horizon")
    for record in records.only(*fields)[: MOST_FORECASTS * forecast_rows.MOST_RECORDS]:
        records_by_attempt[record.workload, record.attempt].append(record)
    return records_by_attempt


def _build_row_without_forecast(
    workload: Workload, computed: ClusterForecast, *, has_unplayed_device: bool, is_unplayed: bool
) -> WorkloadForecast:
    """Build the row that says why nothing is forecast."""
    if computed.trouble or has_unplayed_device:
        outlook = ForecastOutlook.UNKNOWN
    elif workload.status == Status.PREPARING:
        outlook = ForecastOutlook.PREPARING
    elif workload.reason == HELD_BY_KUEUE:
        outlook = ForecastOutlook.HELD
    elif is_unplayed:
        outlook = ForecastOutlook.UNKNOWN
    else:
        outlook = ForecastOutlook.NO_PODS
    return WorkloadForecast(
        workload=workload,
        attempt=workload.attempt,
        made_at=computed.computed_at,
        outlook=outlook.value,
    )

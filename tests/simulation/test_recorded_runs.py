"""Forecasts beside thirty real runs of known length, recorded on an embedded cluster."""

from pathlib import Path

import pytest

from simulation import forecast_starts
from tests.simulation.recorder import RUNS, record_runs
from tests.simulation.recording import (
    Recording,
    build_lengths,
    build_state,
    compare_orders,
    find_median_error,
    list_starts,
    load_recording,
)

LEAST_ORDER = 0.95
MOST_ERROR = 2.0
"""Seconds."""
NEVER = 1e6


def check_forecasts(recording: Recording) -> None:
    """Forecast from the moment when all had been submitted, and compare with what came."""
    forecasts = forecast_starts(
        build_state(recording), build_lengths(recording), seed=recording.seed
    )
    true = list_starts(recording)
    likely = {key: NEVER if each.likely is None else each.likely for key, each in forecasts.items()}
    assert len(true) >= RUNS / 2
    assert set(true) <= set(likely)
    order, error = compare_orders(true, likely), find_median_error(true, likely)
    print(f"{len(true)} starts, {order:.1%} of pairs in order, median error {error:.2f} s")
    assert order >= LEAST_ORDER
    assert error <= MOST_ERROR


def test_recorded_runs_start_in_the_order_and_at_the_times_that_were_forecast() -> None:
    check_forecasts(load_recording())


@pytest.mark.long
@pytest.mark.pods
def test_runs_recorded_now_do_so_too(tmp_path: Path) -> None:
    check_forecasts(record_runs(2, tmp_path))

"""When waiting work will start: a cluster played forward by the scheduler's own rules.

A state of the cluster and how long its work runs come in, start times with their spread come out.
Nothing here knows Kubernetes, a network or a database, nor a clock but to end in time. It needs the
standard library and `scheduling` alone.
"""

from simulation.arrivals import Past
from simulation.calibration import (
    ReliabilityPoint,
    compute_margin,
    compute_reliability,
    widen_interval,
)
from simulation.forecasting import forecast_starts
from simulation.forecasts import Outlook, StartForecast
from simulation.run_lengths import LengthSource, RunLengths

__all__ = [
    "LengthSource",
    "Outlook",
    "Past",
    "ReliabilityPoint",
    "RunLengths",
    "StartForecast",
    "compute_margin",
    "compute_reliability",
    "forecast_starts",
    "widen_interval",
]

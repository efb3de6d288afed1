"""How far ahead forecasts look: those of one class are judged, and widened, together."""

from datetime import timedelta

from workloads.models import Horizon

BOUNDS = {
    Horizon.QUARTER: timedelta(minutes=15),
    Horizon.HOUR: timedelta(hours=1),
    Horizon.SIX_HOURS: timedelta(hours=6),
    Horizon.DAY: timedelta(hours=24),
}
"""The longest time to a likely start in each class, the shortest class first."""


def find_horizon(seconds: float) -> Horizon:
    """Return the class of a likely start so many seconds ahead."""
    return next(
        (each for each, bound in BOUNDS.items() if seconds <= bound.total_seconds()), Horizon.DAY
    )

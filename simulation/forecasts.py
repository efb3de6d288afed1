"""What is forecast for one waiting gang, and how it is summed up from many draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

INTERVAL = (0.1, 0.9)
"""The quantiles between which 8 of 10 starts lie."""

DECILES = tuple(count / 10 for count in range(1, 10))

LEAST_STARTS = 0.5
"""In which share of the draws it has to start for a likely start to be named."""


class Outlook(Enum):
    """What can be said of a start."""

    STARTS = "starts"
    NO_END = "no-end"
    """It waits for work of which nobody knows when it ends."""
    TOO_LATE = "too-late"
    """It does not start within the horizon."""
    NEVER = "never"
    """Whatever ends, there is no room for it, or its queue's limit is less than it wants."""


@dataclass(frozen=True, slots=True)
class StartForecast:
    """When a gang starts, in seconds from the state's `now`.

    `likely` is the median, 8 of 10 draws lie between `earliest` and `latest`. A bound that lies
    beyond the horizon is None, as all are unless it `STARTS`.
    """

    outlook: Outlook
    position: int
    """Its place among those that wait in its queue, 1 is the next."""
    draws: int
    likely: float | None = None
    earliest: float | None = None
    latest: float | None = None
    quantiles: Sequence[float | None] = ()
    """The starts at each of `DECILES`."""
    blockers: Sequence[str] = ()
    """Keys of the running gangs whose ends it waits for, the most frequent first; with `NO_END`
    those whose end nobody knows."""


def find_quantile(values: Sequence[float | None], share: float) -> float | None:
    """Return a quantile of starts; None sorts last, for what did not start within the horizon."""
    ordered = sorted(values, key=lambda value: float("inf") if value is None else value)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = int(place)
    first, second = ordered[low], ordered[min(low + 1, len(ordered) - 1)]
    if first is None or place == low:
        return first
    if second is None:
        return None
    return first + (second - first) * (place - low)

"""How long ranks waited for data, and how many data workers would have covered that."""

import math

MOST_WORKERS = 8
LEAST_SHARE = 0.05
"""The share of waiting from which on more data workers are worth their machines."""
LEAST_SECONDS = 20.0
"""Seconds of counters below which nothing is concluded: a first batch is always waited for."""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def suggest_workers(workers: int, waited: float, computed: float) -> int | None:
    """Return how many data workers would have covered the waiting; None where nothing is to do.

    In the seconds that ranks waited and computed, so many workers delivered what the ranks took
    while they computed. Without a wait they would take as much in the computing seconds alone: the
    workers have to deliver (waited + computed) / computed times as fast. Each computes one batch at
    a time and by itself, so that rate grows with their number. At most MOST_WORKERS.
    """
    total = waited + computed
    if not workers or total < LEAST_SECONDS or waited < LEAST_SHARE * total:
        return None
    suggested = min(MOST_WORKERS, math.ceil(_calculate_needed(workers, waited, computed)))
    return suggested if suggested > workers else None


def describe_starvation(workers: int, waited: float, computed: float, span: float) -> str:
    """Describe how much of the time GPUs waited for data, and what would have covered it.

    "" where too little is known. `span` is how many seconds the counters are of.
    """
    total = waited + computed
    if total < LEAST_SECONDS:
        return ""
    text = (
        f"GPUs waited {round(100 * waited / total)} % of the last {_describe_span(span)} for data"
    )
    if waited < LEAST_SHARE * total:
        return f"{text}."
    suggested = suggest_workers(workers, waited, computed)
    if suggested is None:
        return f"{text}; it has as many data workers as there may be."
    would = f"{_NUMBERS[suggested]} data workers"
    if suggested >= _calculate_needed(workers, waited, computed):
        return f"{text}; {would} would have covered it."
    return f"{text}; {would}, the most there may be, would have covered a part of it."


def _calculate_needed(workers: int, waited: float, computed: float) -> float:
    # A little less: where three covered all but a rounding, three are enough. Hardly any computing
    # would need more than any number.
    ratio = min(1000.0, (waited + computed) / max(computed, (waited + computed) / 1000))
    return workers * ratio - 0.05


def _describe_span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{min(10, round(seconds / 60))} min"

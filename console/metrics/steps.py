"""Counting the steps that a worker runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from console.metrics.instruments import STEP_SECONDS, STEPS, STEPS_RUNNING
from console.metrics.step_times import record_step


@contextmanager
def measure_step(step: str) -> Iterator[None]:
    """Count a step, and how long the context lasts; it has failed where that raises."""
    began = time.perf_counter()
    outcome = "failed"
    STEPS_RUNNING.inc()
    try:
        yield
        outcome = "done"
        record_step(step)
    finally:
        STEPS_RUNNING.dec()
        STEP_SECONDS.labels(step).observe(time.perf_counter() - began)
        STEPS.labels(step, outcome).inc()

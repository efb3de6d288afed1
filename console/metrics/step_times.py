"""When each step was last done in this process: the age of the last sweep, poll and beat."""

import time

BEAT = "beat"
"""The name under which beat notes that it goes on; no step has it."""

_finished_at: dict[str, float] = {}
"""Seconds since 1970, by the name of a step."""


def record_step(name: str) -> None:
    """Note that a step was done just now."""
    _finished_at[name] = time.time()


def copy_step_times() -> dict[str, float]:
    """Return when each step was last done, as seconds since 1970."""
    return dict(_finished_at)

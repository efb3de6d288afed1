"""Lines on standard error: compact JSON that Muster reads, and sentences for people."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Mapping

PREFIX = "muster-delivery: "
MAX_LINE = 1000
PROGRESS_SECONDS = 2.0
"""The least time between two lines of progress."""


def write_event(fields: Mapping[str, object]) -> None:
    """Write one line for Muster."""
    _write(PREFIX + json.dumps(fields, separators=(",", ":")))


def write_text(sentence: str) -> None:
    """Write one line for people; it never looks like an event."""
    _write(PREFIX + sentence.replace("\n", " ").lstrip("{")[:MAX_LINE])


def _write(line: str) -> None:
    # One write for the line and its end: lines of several threads never mix.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class ProgressLines:
    """How far the preparation of one data worker is, at most one line in two seconds."""

    def __init__(self, worker: int, units: int) -> None:
        self._worker = worker
        self._units = units
        self._started = self._written = time.monotonic()

    def write_progress(self, prepared: int) -> None:
        """Write how many elements are prepared, unless the last line is too young."""
        now = time.monotonic()
        if now - self._written >= PROGRESS_SECONDS:
            self._written = now
            rate = round(prepared / max(now - self._started, 1e-3), 2)
            self._write("preparing", prepared, rate=rate)

    def write_ready(self, prepared: int, *, ended: bool) -> None:
        """Write that this worker's part is prepared, or that the dataset has no more."""
        self._write("ready", prepared, **({"ended": True} if ended else {}))

    def _write(self, event: str, prepared: int, **more: object) -> None:
        counts = {"event": event, "worker": self._worker, "units": min(prepared, self._units)}
        write_event({**counts, "of": self._units, **more})


def write_failure(worker: int, error: BaseException) -> None:
    """Write the line of a loader that raised, then its traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "muster_delivery" not in frame.filename]
    last = (own or frames)[-1] if frames else None
    where = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}" if last else ""
    text = f"{type(error).__name__}: {error}".replace("\n", " ")
    # JSON writes a letter beyond ASCII as six: what is too long then is cut again.
    size = 400
    while len(json.dumps([text[:size], where[:100]])) > MAX_LINE - 100 and size > 10:
        size //= 2
    fields = {"error": text[:size], "where": where[:100]}
    write_event({"event": "failed", "worker": worker, **fields})
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    sys.stderr.flush()

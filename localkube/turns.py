"""The watchdog of the event loop: measures each turn on it, and says which one held it too long.

Everything that touches objects runs on one thread, so whoever takes long makes everybody wait.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_TURN_SECONDS = 0.050
"""The longest that one turn may hold the loop."""

LOG_EVERY_SECONDS = 10.0
"""The least seconds between two lines about the same worker."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TurnFigures:
    """What the turns of one worker took."""

    turns: int = 0
    seconds: float = 0.0
    late_turns: int = 0
    longest_seconds: float = 0.0
    longest_subject: str = ""
    logged_at: float | None = None


class TurnWatch:
    """Measures the turns of all workers by name.

    `elapsed` is a monotonic clock in seconds.
    """

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self.figures: dict[str, TurnFigures] = {}

    @contextlib.contextmanager
    def measure(self, worker: str, subject: str) -> Iterator[None]:
        """Measure what runs inside as one turn; `subject` is the object that it is about."""
        started, work_started = self._elapsed(), time.thread_time()
        try:
            yield
        finally:
            work = time.thread_time() - work_started
            self._count_turn(worker, subject, self._elapsed() - started, work)

    def _count_turn(self, worker: str, subject: str, seconds: float, work: float) -> None:
        figures = self.figures.setdefault(worker, TurnFigures())
        figures.turns += 1
        figures.seconds += seconds
        if seconds > figures.longest_seconds:
            figures.longest_seconds, figures.longest_subject = seconds, subject
        if seconds <= MAX_TURN_SECONDS:
            return
        figures.late_turns += 1
        now = self._elapsed()
        if figures.logged_at is None or now - figures.logged_at >= LOG_EVERY_SECONDS:
            figures.logged_at = now
            log.warning(
                "%s held the loop for %.0f ms over %s, %.0f ms of them on a processor (%d of its "
                "%d turns took more than %.0f ms)",
                worker,
                seconds * 1000,
                subject,
                work * 1000,
                figures.late_turns,
                figures.turns,
                MAX_TURN_SECONDS * 1000,
            )

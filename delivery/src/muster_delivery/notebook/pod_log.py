"""The log of one pod: each line once, over any number of connections and runs of its container."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

from muster_delivery.notebook.connection import (
    RefusedByServer,
    RestConnection,
    SilentAnswer,
    Unreachable,
)

ASK_SECONDS = 1.0
LONGEST_PAUSE = 10.0
"""How long at most a server that cannot answer is left alone before it is asked again."""
MOST_FAILURES = 60
"""Requests in a row that a server may leave unanswered, some ten minutes; then following ends."""
LONGEST_RUN_PAUSE = 3.0
"""How long at most until the next look for a further run of a container."""
LATE_SECONDS = 5.0
"""How long after the end of its pod a log may begin to be captured."""
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d) ?")


def choose_pause(failures: int) -> float:
    """Return how long to wait before the next request, after so many without an answer."""
    return min(LONGEST_PAUSE, ASK_SECONDS * (1 + failures))


class _Position:
    """How far the log of one run was read: a second, and how many lines from it on."""

    def __init__(self) -> None:
        self._second = ""
        self.count = 0

    def add_line(self, line: str) -> str:
        """Count a line that was taken; return it without its moment."""
        stamp = _STAMP.match(line)
        if stamp and stamp[2] == "Z" and stamp[1] > self._second:
            self._second, self.count = stamp[1], 0
        self.count += 1
        return line[stamp.end() :] if stamp else line

    def build_query(self) -> dict[str, str]:
        """Return what asks for the lines from the second on."""
        return {"sinceTime": f"{self._second}Z"} if self._second else {}


class PodLog:
    """Follows the log of a pod until it will write no more, or `closed` is set.

    `has_ended` tells whether the pod has ended. `on_line` is called with each line.
    """

    def __init__(
        self,
        connection: RestConnection,
        path: str,
        attempt: int | None,
        *,
        on_line: Callable[[str], None],
        has_ended: Callable[[], bool],
        closed: threading.Event,
    ) -> None:
        self._connection = connection
        self._path = path
        self._attempt = {} if attempt is None else {"attempt": str(attempt)}
        self._on_line = on_line
        self._has_ended = has_ended
        self._closed = closed
        self._run: int | None = None
        """The run of the container that is read; None where the server does not say."""

    def follow(self) -> None:
        """Hand over the lines of all runs."""
        while self._follow_run() and self._run is not None:
            following = self._wait_for_run_after(self._run)
            if following is None:
                return
            self._run = following
            self._on_line("The container was started anew.")

    def _follow_run(self) -> bool:
        """Hand over the lines of one run; tell whether they are whole."""
        position, failures = _Position(), 0
        missing_since: float | None = None
        while not self._closed.is_set():
            has_ended = self._has_ended()
            # What was taken is not sent anew: a log that is quiet for long is asked for often.
            query = self._build_query() | {"follow": "true", "timestamps": "true"}
            lines = self._connection.stream_lines(
                self._path, query | position.build_query(), self._note_run
            )
            read_count, has_news = position.count, False
            try:
                for number, line in enumerate(lines, 1):
                    if self._closed.is_set():
                        return False
                    if number > read_count:
                        failures, has_news = 0, True
                        self._on_line(position.add_line(line))
            except SilentAnswer:
                # The container has written nothing for long: the answer may be a lost connection.
                continue
            except Unreachable as error:
                failures += 1
                if failures >= MOST_FAILURES:
                    self._on_line(f"The log is followed no longer: {error}")
                    return False
                self._closed.wait(choose_pause(failures))
            except RefusedByServer as refusal:
                if refusal.status != 404:
                    self._on_line(f"The log is followed no longer: {refusal}")
                    return False
                # The log is not there before the container has written something.
                missing_since = missing_since or time.monotonic()
                if has_ended and time.monotonic() - missing_since > LATE_SECONDS:
                    return False
                self._closed.wait(ASK_SECONDS / 4)
            else:
                # The answer may have ended because the server did: only one without news says that
                # the run is over.
                if not has_news:
                    return True
        return False

    def _build_query(self) -> dict[str, str]:
        return self._attempt | _build_run_query(self._run)

    def _note_run(self, run: int | None) -> None:
        self._run = run

    def _wait_for_run_after(self, run: int) -> int | None:
        """Return the next run of the container; None where its pod has ended without one."""
        tries = 0
        while not self._closed.is_set():
            # Asked first: a run that began before the end of the pod is not missed.
            has_ended = self._has_ended()
            newest = self._find_run(None)
            if newest is not None and newest > run:
                is_there = newest == run + 1 or self._find_run(run + 1) is not None
                return run + 1 if is_there else newest
            if has_ended:
                return None
            tries += 1
            self._closed.wait(min(LONGEST_RUN_PAUSE, choose_pause(tries)))
        return None

    def _find_run(self, run: int | None) -> int | None:
        """Return the number of a run that has a log, the newest for None; None without one."""
        query = {"tailLines": "0"} | self._attempt | _build_run_query(run)
        runs: list[int | None] = []
        try:
            for _ in self._connection.stream_lines(self._path, query, runs.append):
                pass
        except (Unreachable, RefusedByServer):
            return None
        return runs[0]


def _build_run_query(run: int | None) -> dict[str, str]:
    return {} if run is None else {"run": str(run)}

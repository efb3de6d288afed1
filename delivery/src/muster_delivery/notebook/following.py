"""A workload from its submission to its end: status, progress of its data, and its logs."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster_delivery.notebook.connection import RefusedByServer, RestConnection, Unreachable

OVER = frozenset({"Completed", "Failed", "Stopped", "Deleted"})
ASK_SECONDS = 1.0
LONGEST_PAUSE = 10.0
"""How long at most a server that cannot answer is left alone before it is asked again."""
MOST_FAILURES = 60
"""Requests in a row that a server may leave unanswered, some ten minutes; then following ends."""
MOST_LOGS = 8
"""Pods whose logs are shown, those of the lowest ranks: the server bounds streams, too."""
LATE_SECONDS = 20.0
"""How long after the end the rest of the logs is waited for."""
COUNTERS = "muster-delivery: {"
"""Lines of the library for Muster, not for people."""
WAITING_LINES = 10_000


@dataclass(frozen=True)
class WorkloadStatus:
    """What is known of a workload at one time."""

    phase: str
    message: str
    prepared: int = 0
    units: int = 0

    @property
    def is_over(self) -> bool:
        return self.phase in OVER


def parse_status(workload: dict[str, Any]) -> WorkloadStatus:
    """Return the status out of what REST says of a workload."""
    data = workload.get("dataDelivery")
    data = data if isinstance(data, dict) else {}
    return WorkloadStatus(
        str(workload.get("phase") or ""),
        str(workload.get("phaseMessage") or ""),
        int(data.get("preparedUnits") or 0),
        int(data.get("units") or 0),
    )


class WorkloadFollower:
    """Follows a workload until it has ended. `show_status` and `show_line` tell the person."""

    def __init__(
        self,
        connection: RestConnection,
        workload_id: str,
        *,
        show_status: Callable[[WorkloadStatus], None],
        show_line: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._path = f"/workloads/{workload_id}"
        self._show_status = show_status
        self._show_line = show_line
        self._lines: queue.Queue[str] = queue.Queue(WAITING_LINES)
        self._streams: dict[str, threading.Thread] = {}
        self._failures = 0
        """Requests for the status in a row that had no answer."""
        self._is_closed = False

    def follow(self) -> WorkloadStatus:
        """Show what happens until the workload has ended; return how.

        Raises RefusedByServer, and Unreachable where the server is gone for long.
        """
        try:
            while True:
                status = self._load_status()
                if status is not None:
                    self._show_status(status)
                    self._open_streams()
                    if status.is_over:
                        self._show_rest()
                        return status
                self._show_lines(_choose_pause(self._failures))
        finally:
            self._is_closed = True

    def _load_status(self) -> WorkloadStatus | None:
        """Return the status; None while the server does not answer: the workload goes on."""
        try:
            status = parse_status(self._connection.call("GET", self._path))
        except Unreachable as error:
            self._failures += 1
            if self._failures < MOST_FAILURES:
                return None
            raise Unreachable(
                f"{error} The workload is followed no longer; it goes on, and its page and "
                "`muster describe` show it."
            ) from None
        self._failures = 0
        return status

    def _open_streams(self) -> None:
        if len(self._streams) >= MOST_LOGS:
            return
        try:
            pods = self._connection.call("GET", f"{self._path}/pods")["pods"]
        except (Unreachable, RefusedByServer):
            return
        ranked = [each for each in pods if isinstance(each.get("rank"), int)]
        for pod in sorted(ranked, key=lambda each: int(each["rank"]))[:MOST_LOGS]:
            name = str(pod["name"])
            if name not in self._streams:
                prefix = f"[{pod['rank']}] " if len(ranked) > 1 else ""
                thread = threading.Thread(target=self._stream, args=(name, prefix), daemon=True)
                self._streams[name] = thread
                thread.start()

    def _stream(self, pod: str, prefix: str) -> None:
        """Hand over the lines of a pod, each once, over any number of connections."""
        taken = failures = 0
        path, query = f"{self._path}/pods/{pod}/logs", {"follow": "true"}
        while not self._is_closed:
            try:
                for number, line in enumerate(self._connection.stream_lines(path, query), 1):
                    if number > taken:
                        taken, failures = number, 0
                        if not line.startswith(COUNTERS):
                            self._lines.put(prefix + line)
                    if self._is_closed:
                        return
            except Unreachable as error:
                failures += 1
                if failures >= MOST_FAILURES:
                    self._lines.put(f"{prefix}The log is followed no longer: {error}")
                    return
                time.sleep(_choose_pause(failures))
            except RefusedByServer as refusal:
                # The log is not there before the container has written something.
                if refusal.status != 404:
                    return
                time.sleep(ASK_SECONDS / 4)
            else:
                return

    def _show_lines(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                self._show_line(self._lines.get(timeout=left))
            except queue.Empty:
                return

    def _show_rest(self) -> None:
        """Show what the logs still have."""
        deadline = time.monotonic() + LATE_SECONDS
        while time.monotonic() < deadline:
            is_open = any(thread.is_alive() for thread in self._streams.values())
            self._show_lines(ASK_SECONDS / 4)
            if not is_open and self._lines.empty():
                return


def _choose_pause(failures: int) -> float:
    """Return how long to wait before the next request, after so many without an answer."""
    return min(LONGEST_PAUSE, ASK_SECONDS * (1 + failures))

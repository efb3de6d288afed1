"""A workload from its submission to its end: status, progress of its data, and its logs."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster_delivery.notebook.connection import RefusedByServer, RestConnection, Unreachable
from muster_delivery.notebook.pod_log import ASK_SECONDS, MOST_FAILURES, PodLog, choose_pause
from muster_delivery.notebook.shown_lines import MOST_CHARACTERS, ShownLines

OVER = frozenset({"Completed", "Failed", "Stopped", "Deleting"})
"""A workload that is deleted stays Deleting, also when nothing of it is left."""
MOST_LOGS = 8
"""Ranks whose logs are shown, the lowest ones: the server bounds streams, too."""
MOST_PODS = 100
"""Pods that are listed at once, those of the lowest ranks."""
LATE_SECONDS = 20.0
"""How long after the end, and after each line since, to wait for the rest of the logs."""
COUNTERS = "muster-delivery: {"
"""Lines of the library for Muster, not for people."""
WAITING_LINES = 10_000
PUT_SECONDS = 0.5
"""How long a line waits for a place before it is seen that nobody takes lines any more."""
FORBIDDING = (401, 403)
"""The statuses of a token that has ended, or may not see the workload any more."""


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
        late_seconds: float = LATE_SECONDS,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self._connection = connection
        self._path = f"/workloads/{workload_id}"
        self._show_status = show_status
        self._late_seconds = late_seconds
        place = f"{connection.server}{self._path}"
        self._shown_lines = ShownLines(show_line, place, most_characters=most_characters)
        self._lines: queue.Queue[str] = queue.Queue(WAITING_LINES)
        self._streams: dict[str, threading.Thread] = {}
        self._writing: frozenset[str] = frozenset()
        """The pods that had not ended when they were listed last."""
        self._failures = 0
        """Requests for the status in a row that had no answer."""
        self._closed = threading.Event()

    def follow(self) -> WorkloadStatus:
        """Show what happens until the workload has ended; return how.

        Raises RefusedByServer, and Unreachable where the server is gone for long.
        """
        try:
            while True:
                status = self._load_status()
                if status is not None:
                    self._show_status(status)
                    self._open_streams(is_over=status.is_over)
                    if status.is_over:
                        self._show_rest()
                        return status
                self._show_lines(choose_pause(self._failures))
        finally:
            self._closed.set()

    def _load_status(self) -> WorkloadStatus | None:
        """Return the status; None while the server does not answer: the workload goes on."""
        goes_on = (
            "The workload is followed no longer; it goes on, and its page and `muster describe` "
            "show it."
        )
        try:
            status = parse_status(self._connection.call("GET", self._path))
        except Unreachable as error:
            self._failures += 1
            if self._failures < MOST_FAILURES:
                return None
            raise Unreachable(f"{error} {goes_on}") from None
        except RefusedByServer as refusal:
            if refusal.status not in FORBIDDING:
                raise
            raise RefusedByServer(refusal.status, f"{refusal}\n{goes_on}") from None
        self._failures = 0
        return status

    def _open_streams(self, *, is_over: bool) -> None:
        """Follow the pods of the lowest ranks, also those that a later attempt brings."""
        try:
            query = {"limit": str(MOST_PODS)}
            pods = self._connection.call("GET", f"{self._path}/pods", query=query)["pods"]
        except (Unreachable, RefusedByServer):
            if is_over:
                self._writing = frozenset()
            return
        ranked = [each for each in pods if isinstance(each.get("rank"), int)]
        ranks = sorted({int(each["rank"]) for each in ranked})
        for pod in ranked:
            if pod["rank"] in ranks[:MOST_LOGS] and _get_key(pod) not in self._streams:
                self._open_stream(pod, f"[{pod['rank']}] " if len(ranks) > 1 else "")
        self._writing = frozenset(
            _get_key(each)
            for each in ranked
            if not (is_over or each.get("completedAt") or each.get("deletedAt"))
        )

    def _open_stream(self, pod: dict[str, Any], prefix: str) -> None:
        key = _get_key(pod)
        attempt = pod.get("attempt")
        log = PodLog(
            self._connection,
            f"{self._path}/pods/{key}/logs",
            attempt if isinstance(attempt, int) else None,
            on_line=lambda line: self._put_line(prefix, line),
            has_ended=lambda: key not in self._writing,
            closed=self._closed,
        )
        thread = threading.Thread(target=log.follow, daemon=True)
        self._writing |= {key}
        self._streams[key] = thread
        thread.start()

    def _put_line(self, prefix: str, line: str) -> None:
        """Hand over a line; it is lost where nobody follows any more."""
        while not (self._closed.is_set() or line.startswith(COUNTERS)):
            with contextlib.suppress(queue.Full):
                self._lines.put(prefix + line, timeout=PUT_SECONDS)
                return

    def _show_lines(self, seconds: float) -> int:
        """Show the lines that come within some seconds; return how many."""
        deadline, count = time.monotonic() + seconds, 0
        while (seconds_left := deadline - time.monotonic()) > 0:
            try:
                self._shown_lines.add(self._lines.get(timeout=seconds_left))
            except queue.Empty:
                break
            count += 1
        return count

    def _show_rest(self) -> None:
        """Show what the logs still have."""
        deadline = time.monotonic() + self._late_seconds
        while is_open := any(thread.is_alive() for thread in self._streams.values()):
            if self._show_lines(ASK_SECONDS / 4):
                deadline = time.monotonic() + self._late_seconds
            if time.monotonic() > deadline:
                break
        while not self._lines.empty():
            self._shown_lines.add(self._lines.get())
        if is_open:
            self._shown_lines.add("The end of a log did not come: its page may show more of it.")
        self._shown_lines.finish()


def _get_key(pod: dict[str, Any]) -> str:
    """Return what tells a pod from others: one that is made anew has the name of the one before."""
    return str(pod.get("id") or pod["name"])

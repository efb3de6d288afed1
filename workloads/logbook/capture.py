"""Reading the log of one run of a container to its end, whatever happens in between. Runs in a
thread; knows no database.
"""

import errno
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import ContainerNotStarted, Gone, KubeError, Rejected
from clusters.kube.resources import PODS
from clusters.kube.sockets import Cancellation
from workloads.logbook import stamps
from workloads.logbook.container_runs import RunState, parse_run_state
from workloads.logbook.line_reading import LineSplitter
from workloads.logbook.log_files import LogFile
from workloads.logbook.log_writer import Busy, LogWriter
from workloads.logbook.overlap import Overlap

SOON_SECONDS = 0.3
LATER_SECONDS = 5.0
SILENCE_SECONDS = 120.0
MOST_GAPS = 100
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL = "The disk for logs is full: capture pauses until there is room."


@dataclass(frozen=True, slots=True)
class CaptureTarget:
    """Which log, and where it goes. `bound` is how many bytes of it are kept."""

    namespace: str
    pod: str
    uid: str
    container: str
    run: int
    path: Path
    max_bytes: int


class TurnEnd(Enum):
    """How a turn of reading ended."""

    COMPLETE = "complete"
    LOST = "lost"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """`note` says in a sentence why the log is not read on, or is lost; `wait` is in seconds,
    before the next turn.
    """

    end: TurnEnd
    note: str = ""
    wait: float = 0.0


@dataclass(slots=True)
class CaptureProgress:
    """What is captured so far, for whoever writes it into the database. Replaced field by field,
    read without a lock.
    """

    size: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    gaps: list[dict[str, Any]] = field(default_factory=list)


class _CaptureStopped(Exception):
    """The reading was ended from outside."""


class _OtherRun(Exception):
    """The log that came is that of another run, or cannot be told to be of ours."""

    def __init__(self, state: RunState) -> None:
        super().__init__(state.value)
        self.state = state


class LogCapture:
    """One log. `turn` reads until the end, a failure, or `cut`; call it again, in one thread at a
    time, after AGAIN.
    """

    def __init__(
        self,
        target: CaptureTarget,
        state: RunState,
        gaps: Sequence[dict[str, Any]] = (),
        writer: Callable[[Path], LogWriter] = LogWriter,
    ) -> None:
        self.target = target
        self.progress = CaptureProgress(gaps=list(gaps))
        self._state = state
        self._writer = writer
        self._wire = Cancellation()
        self._lock = threading.Lock()
        self._is_read_cleanly = False
        """The last reading came to an end by itself, and there was no trouble since: nothing was
        missed. A status may lag behind it.
        """
        self._trouble = ""
        """What kept it from being read, the last time; "" once it was read again."""

    def interrupt(self) -> None:
        """End the turn that runs, from any thread."""
        with self._lock:
            self._wire.cancel()

    def update_state(self, state: RunState) -> None:
        """What the pod's row says now. A stream that may be of a later run, and silent, is
        ended.
        """
        if state in (RunState.PREVIOUS, RunState.OVER) and self._state is RunState.RUNNING:
            self._state = state
            self.interrupt()

    def read_turn(self, client: Client) -> TurnOutcome:
        """Read on. What the disk and the cluster raise becomes an outcome."""
        with self._lock:
            self._wire = Cancellation()
        try:
            with self._writer(self.target.path) as writer:
                try:
                    return self._read_all(client, writer)
                finally:
                    self._update_progress(writer)
        except _CaptureStopped:
            return TurnOutcome(TurnEnd.AGAIN)
        except Busy:
            return TurnOutcome(TurnEnd.AGAIN, "Another process captures it.", LATER_SECONDS)
        except OSError as error:
            return self._retry_later(
                DISK_FULL
                if error.errno in _DISK_FULL_ERRORS
                else f"The log's file cannot be written: {error.strerror}.",
                LATER_SECONDS,
            )
        except KubeError as error:
            return self._retry_later(
                f"The cluster does not give it: {error.message}.", SOON_SECONDS
            )

    def _retry_later(self, trouble: str, wait: float) -> TurnOutcome:
        self._trouble, self._is_read_cleanly = trouble, False
        return TurnOutcome(TurnEnd.AGAIN, trouble, wait)

    def finish_without_pod(self) -> TurnOutcome:
        """The pod is not there any more: whether that leaves the log whole."""
        if self._is_read_cleanly:
            return TurnOutcome(TurnEnd.COMPLETE)
        if not self.progress.size:
            return TurnOutcome(
                TurnEnd.LOST, f"The pod was gone before its log was read.{self._describe_trouble()}"
            )
        self._add_gap(
            f"The pod was gone before the rest of its log was read.{self._describe_trouble()}"
        )
        return TurnOutcome(TurnEnd.COMPLETE)

    def _read_all(self, client: Client, writer: LogWriter) -> TurnOutcome:
        self._update_progress(writer)
        # What the pod's row said may be old: whose log comes is known only of a pod that was there
        # just before it was asked for.
        sight = self._fetch_state(client)
        while True:
            self._state = known = sight
            if known in (RunState.GONE, RunState.REPLACED):
                return self.finish_without_pod()
            if known is RunState.OVER:
                return self._finish_dropped()
            if known is RunState.NOT_STARTED:
                return TurnOutcome(TurnEnd.AGAIN, "", 2 * SOON_SECONDS)
            try:
                if not self._read_answer(client, writer, known):
                    return TurnOutcome(TurnEnd.COMPLETE)
                self._is_read_cleanly = True
                # An end that came when the run had ended is the end; before that, the server may
                # just have gone away.
                if known in (RunState.ENDED, RunState.PREVIOUS):
                    return TurnOutcome(TurnEnd.COMPLETE)
                sight = self._fetch_state(client)
            except _OtherRun as other:
                sight = other.state
            except Gone:
                return self.finish_without_pod()
            except ContainerNotStarted:
                return TurnOutcome(TurnEnd.AGAIN, "", SOON_SECONDS)
            except Rejected as refusal:
                return self._handle_refusal(client, refusal)
            if sight in (RunState.RUNNING, RunState.NOT_STARTED):
                return TurnOutcome(TurnEnd.AGAIN, "", SOON_SECONDS)

    def _read_answer(self, client: Client, writer: LogWriter, state: RunState) -> bool:
        """One answer of the cluster to its end; False when the file has reached its bound."""
        target = self.target
        overlap, splitter, sure = (
            Overlap(LogFile(writer.handle), writer.size),
            LineSplitter(),
            False,
        )
        stream = calls.open_log(
            client,
            target.namespace,
            target.pod,
            container=target.container,
            follow=state is RunState.RUNNING,
            previous=state is RunState.PREVIOUS,
            since_time=overlap.since,
            timestamps=True,
            silence_timeout=SILENCE_SECONDS,
            cancellation=self._wire,
        )
        with stream:
            for chunk in stream:
                if not sure:
                    self._check_run(client, state)
                    sure, self._is_read_cleanly = True, False
                if not self._append_new_lines(writer, overlap, splitter.feed(chunk)):
                    return False
        if self._wire.is_cancelled:
            raise _CaptureStopped
        if not sure:
            self._check_run(client, state)
        rest = splitter.take_rest()
        # A line without its end is told again, and whole, as long as the run goes on.
        return (
            rest is None
            or state is RunState.RUNNING
            or self._append_new_lines(writer, overlap, [rest])
        )

    def _append_new_lines(
        self, writer: LogWriter, overlap: Overlap, lines: Sequence[bytes]
    ) -> bool:
        fresh = [line for line in lines if overlap.is_new(line)]
        if overlap.has_missing_lines:
            overlap.has_missing_lines = False
            self._add_gap(
                "The cluster had dropped older lines of this log before they were read.",
                offset=writer.size,
            )
        room = self.target.max_bytes - writer.size
        kept: list[bytes] = []
        for line in fresh:
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        writer.append(kept)
        self._trouble = ""
        self._update_progress(writer)
        if len(kept) < len(fresh):
            self._add_gap(
                f"The log is longer than the {self.target.max_bytes >> 20} MiB that are kept of "
                "one: the rest is not here."
            )
            return False
        return True

    def _check_run(self, client: Client, expected: RunState) -> None:
        """The answer has begun: it is of this run if the run was the newest before it and still is,
        or the one before, likewise.

        So is that of a pod that was there just before, and whose name nobody has now: operators
        remove the last pods of a job as they end.
        """
        sight = self._fetch_state(client)
        if sight in (expected, RunState.GONE) or (
            expected is RunState.RUNNING and sight is RunState.ENDED
        ):
            return
        raise _OtherRun(sight)

    def _fetch_state(self, client: Client) -> RunState:
        target = self.target
        try:
            pod = calls.get(client, PODS, target.pod, namespace=target.namespace)
        except Gone:
            return RunState.GONE
        return parse_run_state(pod, target.uid, target.container, target.run)

    def _handle_refusal(self, client: Client, refusal: Rejected) -> TurnOutcome:
        self._state = self._fetch_state(client)
        if self._state in (RunState.GONE, RunState.REPLACED):
            return self.finish_without_pod()
        if self._state is RunState.OVER or (
            self._state is RunState.PREVIOUS and refusal.status == 400
        ):
            return self._finish_dropped()
        return self._retry_later(f"The cluster refuses it: {refusal.message}.", LATER_SECONDS)

    def _finish_dropped(self) -> TurnOutcome:
        if not self.progress.size:
            return TurnOutcome(
                TurnEnd.LOST,
                (
                    "The container was started again, and its log dropped, before it was "
                    f"read.{self._describe_trouble()}"
                ),
            )
        if not self._is_read_cleanly:
            self._add_gap(
                "The container was started again before the rest of this log was "
                f"read.{self._describe_trouble()}"
            )
        return TurnOutcome(TurnEnd.COMPLETE)

    def _describe_trouble(self) -> str:
        return f" Before that: {self._trouble}" if self._trouble else ""

    def _update_progress(self, writer: LogWriter) -> None:
        self.progress.first_ns, self.progress.last_ns, self.progress.size = (
            writer.first_ns,
            writer.last_ns,
            writer.size,
        )

    def _add_gap(self, cause: str, offset: int | None = None) -> None:
        at = self.progress.size if offset is None else offset
        if len(self.progress.gaps) < MOST_GAPS:
            self.progress.gaps = [
                *self.progress.gaps,
                {"at": stamps.format_time(time.time_ns()), "cause": cause, "offset": at},
            ]

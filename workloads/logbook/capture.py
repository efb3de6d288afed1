"""Reading the log of one run of a container to its end, whatever happens in between.

Runs in a thread, without database access.
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
from console.metrics.instruments import LOG_BYTES, LOG_GAPS, LOG_LAG
from workloads.logbook import stamps
from workloads.logbook.container_runs import RunState, parse_run_state
from workloads.logbook.line_reading import LineSplitter
from workloads.logbook.log_files import LogFile
from workloads.logbook.log_room import LogRoom
from workloads.logbook.log_writer import Busy, LogWriter
from workloads.logbook.overlap import Overlap

SOON_SECONDS = 0.3
LATER_SECONDS = 5.0
SILENCE_SECONDS = 120.0
MOST_GAPS = 100
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL = "The disk for logs is full: capture pauses until there is room."

ENDED_WITHOUT_ROOM = "The run ended meanwhile, so the rest is not here. {}"


@dataclass(frozen=True, slots=True)
class CaptureTarget:
    """Which log to capture, and where to. At most `max_bytes` of it are kept."""

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
    """The result of a turn.

    `note` says in a sentence why the log is not read on, or is lost; `wait` is the seconds before
    the next turn.
    """

    end: TurnEnd
    note: str = ""
    wait: float = 0.0


@dataclass(slots=True)
class CaptureProgress:
    """What is captured so far, for the database. Fields are replaced one by one, read without a
    lock.
    """

    size: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    gaps: list[dict[str, Any]] = field(default_factory=list)


class _CaptureStopped(Exception):
    """The reading was ended from outside."""


class _NoRoom(Exception):
    """All logs together are too large, and this one has its share."""


class _OtherRun(Exception):
    """The log that came is that of another run, or cannot be verified to be ours."""

    def __init__(self, state: RunState) -> None:
        super().__init__(state.value)
        self.state = state


class LogCapture:
    """Captures one log.

    `read_turn` reads until the end, a failure, or `interrupt`. After AGAIN call it once more, in
    one thread at a time.
    """

    def __init__(
        self,
        target: CaptureTarget,
        state: RunState,
        gaps: Sequence[dict[str, Any]] = (),
        writer: Callable[[Path], LogWriter] = LogWriter,
        room: LogRoom | None = None,
    ) -> None:
        self.target = target
        self.progress = CaptureProgress(gaps=list(gaps))
        self._state = state
        self._writer = writer
        self._room = room or LogRoom()
        self._wire = Cancellation()
        self._lock = threading.Lock()
        self._is_read_cleanly = False
        """Whether the last reading ended by itself, without trouble since: nothing was missed.

        The pod's status may lag behind it.
        """
        self._trouble = ""
        """Why the log could not be read the last time; "" once it was read again."""

    def interrupt(self) -> None:
        """End the running turn, from any thread."""
        with self._lock:
            self._wire.cancel()

    def update_state(self, state: RunState) -> None:
        """Take over the state in the pod's row. Interrupts a stream that may be silent because of a
        later run.
        """
        if state in (RunState.PREVIOUS, RunState.OVER) and self._state is RunState.RUNNING:
            self._state = state
            self.interrupt()

    def read_turn(self, client: Client) -> TurnOutcome:
        """Read on. Errors of the disk and the cluster become an outcome."""
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
        except _NoRoom:
            return self._handle_no_room()
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

    def _handle_no_room(self) -> TurnOutcome:
        """Pause a log that grows, and complete an ended one without its rest.

        Only ended logs can be removed: if this one waited for room, none might ever be made.
        """
        if self._state in (RunState.ENDED, RunState.PREVIOUS):
            self._add_gap(ENDED_WITHOUT_ROOM.format(self._room.describe()))
            return TurnOutcome(TurnEnd.COMPLETE)
        return self._retry_later(self._room.describe(), LATER_SECONDS)

    def _retry_later(self, trouble: str, wait: float) -> TurnOutcome:
        self._trouble, self._is_read_cleanly = trouble, False
        return TurnOutcome(TurnEnd.AGAIN, trouble, wait)

    def finish_without_pod(self) -> TurnOutcome:
        """Return the outcome for a pod that no longer exists: is the log complete or not?"""
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
        # The pod's row may be old. The API names a log by the pod's name, not its uid: only a check
        # before and after the answer begins tells whose log it is.
        state = self._fetch_state(client)
        while True:
            self._state = expected = state
            if expected in (RunState.GONE, RunState.REPLACED):
                return self.finish_without_pod()
            if expected is RunState.OVER:
                return self._finish_dropped()
            if expected is RunState.NOT_STARTED:
                return TurnOutcome(TurnEnd.AGAIN, "", 2 * SOON_SECONDS)
            try:
                if not self._read_answer(client, writer, expected):
                    return TurnOutcome(TurnEnd.COMPLETE)
                self._is_read_cleanly = True
                # The end of the stream is the end of the log only if the run had ended before;
                # otherwise the API server may just have gone away.
                if expected in (RunState.ENDED, RunState.PREVIOUS):
                    return TurnOutcome(TurnEnd.COMPLETE)
                state = self._fetch_state(client)
            except _OtherRun as other_run:
                state = other_run.state
            except Gone:
                return self.finish_without_pod()
            except ContainerNotStarted:
                return TurnOutcome(TurnEnd.AGAIN, "", SOON_SECONDS)
            except Rejected as refusal:
                return self._handle_refusal(client, refusal)
            if state in (RunState.RUNNING, RunState.NOT_STARTED):
                return TurnOutcome(TurnEnd.AGAIN, "", SOON_SECONDS)

    def _read_answer(self, client: Client, writer: LogWriter, state: RunState) -> bool:
        """Read one answer of the cluster to its end. Return False once the file is at its limit."""
        target = self.target
        overlap, splitter, is_checked = (
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
                if not is_checked:
                    self._check_run(client, state)
                    is_checked, self._is_read_cleanly = True, False
                if not self._append_new_lines(writer, overlap, splitter.feed(chunk)):
                    return False
        if self._wire.is_cancelled:
            raise _CaptureStopped
        if not is_checked:
            self._check_run(client, state)
        rest = splitter.take_rest()
        # While the run goes on, a line without its end comes again, complete.
        return (
            rest is None
            or state is RunState.RUNNING
            or self._append_new_lines(writer, overlap, [rest])
        )

    def _append_new_lines(
        self, writer: LogWriter, overlap: Overlap, lines: Sequence[bytes]
    ) -> bool:
        new_lines = [line for line in lines if overlap.is_new(line)]
        if new_lines and not self._room.has_room(writer.size):
            raise _NoRoom
        if overlap.has_missing_lines:
            overlap.has_missing_lines = False
            self._add_gap(
                "The cluster had dropped older lines of this log before they were read.",
                offset=writer.size,
            )
        free_bytes = self.target.max_bytes - writer.size
        fitting: list[bytes] = []
        for line in new_lines:
            free_bytes -= len(line) + 1
            if free_bytes < 0:
                break
            fitting.append(line)
        writer.append(fitting)
        self._measure_lines(writer, fitting)
        self._trouble = ""
        self._update_progress(writer)
        if len(fitting) < len(new_lines):
            self._add_gap(
                f"The log is longer than the {self.target.max_bytes >> 20} MiB that are kept of "
                "one: the rest is not here."
            )
            return False
        return True

    def _measure_lines(self, writer: LogWriter, lines: Sequence[bytes]) -> None:
        LOG_BYTES.inc(sum(map(len, lines)) + len(lines))
        # What an ended run left behind is old because it is read late, and not slowly.
        if lines and writer.last_ns is not None and self._state is RunState.RUNNING:
            LOG_LAG.observe(max(0.0, (time.time_ns() - writer.last_ns) / 1e9))

    def _check_run(self, client: Client, expected: RunState) -> None:
        """Raise _OtherRun unless the answer that has begun is of the expected run.

        It is if the run was the newest before the answer and still is, or likewise the previous
        one. It also is if the pod existed just before, and nobody has its name now: operators
        remove the last pods of a job as they end.
        """
        state = self._fetch_state(client)
        if state in (expected, RunState.GONE) or (
            expected is RunState.RUNNING and state is RunState.ENDED
        ):
            return
        raise _OtherRun(state)

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
        LOG_GAPS.inc()
        at = self.progress.size if offset is None else offset
        if len(self.progress.gaps) < MOST_GAPS:
            self.progress.gaps = [
                *self.progress.gaps,
                {"at": stamps.format_time(time.time_ns()), "cause": cause, "offset": at},
            ]

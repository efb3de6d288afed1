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
from clusters.kube.errors import Gone, KubeError, NotYet, Rejected
from clusters.kube.resources import PODS
from clusters.kube.wire import Wire
from workloads.logbook import stamps
from workloads.logbook.framing import Splitter
from workloads.logbook.overlap import Overlap
from workloads.logbook.reading import File
from workloads.logbook.sights import Sight, sight_of
from workloads.logbook.writing import Busy, Writer

SOON = 0.3
LATER = 5.0
SILENCE = 120.0
MOST_GAPS = 100
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL = "The disk for logs is full: capture pauses until there is room."


@dataclass(frozen=True, slots=True)
class Target:
    """Which log, and where it goes. `bound` is how many bytes of it are kept."""

    namespace: str
    pod: str
    uid: str
    container: str
    run: int
    path: Path
    bound: int


class End(Enum):
    """How a turn of reading ended."""

    COMPLETE = "complete"
    LOST = "lost"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`note` says in a sentence why the log is not read on, or is lost; `wait` is in seconds,
    before the next turn.
    """

    end: End
    note: str = ""
    wait: float = 0.0


@dataclass(slots=True)
class Progress:
    """What is captured so far, for whoever writes it into the database. Replaced field by field,
    read without a lock.
    """

    size: int = 0
    first: int | None = None
    last: int | None = None
    gaps: list[dict[str, Any]] = field(default_factory=list)


class _Stopped(Exception):
    """The reading was ended from outside."""


class _NotOurs(Exception):
    """The log that came is that of another run, or cannot be told to be of ours."""

    def __init__(self, sight: Sight) -> None:
        super().__init__(sight.value)
        self.sight = sight


class Capture:
    """One log. `turn` reads until the end, a failure, or `cut`; call it again, in one thread at a
    time, after AGAIN.
    """

    def __init__(
        self,
        target: Target,
        sight: Sight,
        gaps: Sequence[dict[str, Any]] = (),
        writer: Callable[[Path], Writer] = Writer,
    ) -> None:
        self.target = target
        self.progress = Progress(gaps=list(gaps))
        self._sight = sight
        self._writer = writer
        self._wire = Wire()
        self._lock = threading.Lock()
        self._read_clean = False
        """The last reading came to an end by itself, and there was no trouble since: nothing was
        missed. A status may lag behind it.
        """
        self._trouble = ""
        """What kept it from being read, the last time; "" once it was read again."""

    def cut(self) -> None:
        """End the turn that runs, from any thread."""
        with self._lock:
            self._wire.cut()

    def moved(self, sight: Sight) -> None:
        """What the pod's row says now. A stream that may be of a later run, and silent, is
        ended.
        """
        if sight in (Sight.PREVIOUS, Sight.OVER) and self._sight is Sight.RUNNING:
            self._sight = sight
            self.cut()

    def turn(self, client: Client) -> Outcome:
        """Read on. What the disk and the cluster raise becomes an outcome."""
        with self._lock:
            self._wire = Wire()
        try:
            with self._writer(self.target.path) as writer:
                try:
                    return self._read_all(client, writer)
                finally:
                    self._tell(writer)
        except _Stopped:
            return Outcome(End.AGAIN)
        except Busy:
            return Outcome(End.AGAIN, "Another process captures it.", LATER)
        except OSError as error:
            return self._again(
                DISK_FULL
                if error.errno in _FULL
                else f"The log's file cannot be written: {error.strerror}.",
                LATER,
            )
        except KubeError as error:
            return self._again(f"The cluster does not give it: {error.message}.", SOON)

    def _again(self, trouble: str, wait: float) -> Outcome:
        self._trouble, self._read_clean = trouble, False
        return Outcome(End.AGAIN, trouble, wait)

    def gone(self) -> Outcome:
        """The pod is not there any more: whether that leaves the log whole."""
        if self._read_clean:
            return Outcome(End.COMPLETE)
        if not self.progress.size:
            return Outcome(End.LOST, f"The pod was gone before its log was read.{self._why()}")
        self._gap(f"The pod was gone before the rest of its log was read.{self._why()}")
        return Outcome(End.COMPLETE)

    def _read_all(self, client: Client, writer: Writer) -> Outcome:
        self._tell(writer)
        # What the pod's row said may be old: whose log comes is known only of a pod that was there
        # just before it was asked for.
        sight = self._look(client)
        while True:
            self._sight = known = sight
            if known in (Sight.GONE, Sight.REPLACED):
                return self.gone()
            if known is Sight.OVER:
                return self._over()
            if known is Sight.NOT_STARTED:
                return Outcome(End.AGAIN, "", 2 * SOON)
            try:
                if not self._read(client, writer, known):
                    return Outcome(End.COMPLETE)
                self._read_clean = True
                # An end that came when the run had ended is the end; before that, the server may
                # just have gone away.
                if known in (Sight.ENDED, Sight.PREVIOUS):
                    return Outcome(End.COMPLETE)
                sight = self._look(client)
            except _NotOurs as other:
                sight = other.sight
            except Gone:
                return self.gone()
            except NotYet:
                return Outcome(End.AGAIN, "", SOON)
            except Rejected as refusal:
                return self._refused(client, refusal)
            if sight in (Sight.RUNNING, Sight.NOT_STARTED):
                return Outcome(End.AGAIN, "", SOON)

    def _read(self, client: Client, writer: Writer, known: Sight) -> bool:
        """One answer of the cluster to its end; False when the file has reached its bound."""
        target = self.target
        overlap, splitter, sure = Overlap(File(writer.handle), writer.size), Splitter(), False
        stream = calls.log(
            client,
            target.namespace,
            target.pod,
            container=target.container,
            follow=known is Sight.RUNNING,
            previous=known is Sight.PREVIOUS,
            since_time=overlap.since,
            timestamps=True,
            silence=SILENCE,
            held=self._wire,
        )
        with stream:
            for chunk in stream:
                if not sure:
                    self._sure(client, known)
                    sure, self._read_clean = True, False
                if not self._keep(writer, overlap, splitter.feed(chunk)):
                    return False
        if self._wire.is_cut:
            raise _Stopped
        if not sure:
            self._sure(client, known)
        rest = splitter.rest()
        # A line without its end is told again, and whole, as long as the run goes on.
        return rest is None or known is Sight.RUNNING or self._keep(writer, overlap, [rest])

    def _keep(self, writer: Writer, overlap: Overlap, lines: Sequence[bytes]) -> bool:
        fresh = [line for line in lines if overlap.fresh(line)]
        if overlap.missing:
            overlap.missing = False
            self._gap(
                "The cluster had dropped older lines of this log before they were read.",
                offset=writer.size,
            )
        room = self.target.bound - writer.size
        kept: list[bytes] = []
        for line in fresh:
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        writer.append(kept)
        self._trouble = ""
        self._tell(writer)
        if len(kept) < len(fresh):
            self._gap(
                f"The log is longer than the {self.target.bound >> 20} MiB that are kept of one: "
                "the rest is not here."
            )
            return False
        return True

    def _sure(self, client: Client, known: Sight) -> None:
        """The answer has begun: it is of this run if the run was the newest before it and still is,
        or the one before, likewise.

        So is that of a pod that was there just before, and whose name nobody has now: operators
        remove the last pods of a job as they end.
        """
        sight = self._look(client)
        if sight in (known, Sight.GONE) or (known is Sight.RUNNING and sight is Sight.ENDED):
            return
        raise _NotOurs(sight)

    def _look(self, client: Client) -> Sight:
        target = self.target
        try:
            pod = calls.get(client, PODS, target.pod, namespace=target.namespace)
        except Gone:
            return Sight.GONE
        return sight_of(pod, target.uid, target.container, target.run)

    def _refused(self, client: Client, refusal: Rejected) -> Outcome:
        self._sight = self._look(client)
        if self._sight in (Sight.GONE, Sight.REPLACED):
            return self.gone()
        if self._sight is Sight.OVER or (self._sight is Sight.PREVIOUS and refusal.status == 400):
            return self._over()
        return self._again(f"The cluster refuses it: {refusal.message}.", LATER)

    def _over(self) -> Outcome:
        if not self.progress.size:
            return Outcome(
                End.LOST,
                (
                    "The container was started again, and its log dropped, before it was "
                    f"read.{self._why()}"
                ),
            )
        if not self._read_clean:
            self._gap(
                "The container was started again before the rest of this log was "
                f"read.{self._why()}"
            )
        return Outcome(End.COMPLETE)

    def _why(self) -> str:
        return f" Before that: {self._trouble}" if self._trouble else ""

    def _tell(self, writer: Writer) -> None:
        self.progress.first, self.progress.last, self.progress.size = (
            writer.first,
            writer.last,
            writer.size,
        )

    def _gap(self, cause: str, offset: int | None = None) -> None:
        at = self.progress.size if offset is None else offset
        if len(self.progress.gaps) < MOST_GAPS:
            self.progress.gaps = [
                *self.progress.gaps,
                {"at": stamps.text(time.time_ns()), "cause": cause, "offset": at},
            ]

"""Capturing the logs of one cluster while its pods run: who is read, by how many at once, and what
is told of it in the database.

Each log is read in a thread of its own that knows no database; this one knows, and is the only one
that writes the rows.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.db import connections as db_connections

from clusters import connections
from clusters.kube.client import Client
from clusters.kube.errors import KubeError
from clusters.models import Cluster
from workloads.logbook import places, rows, storing
from workloads.logbook.capture import Capture, End, Outcome, Target
from workloads.logbook.rows import Seen
from workloads.logbook.sights import Run, Sight
from workloads.models import Log

log = logging.getLogger(__name__)

AT_ONCE = 256
"""Streams that are open to one cluster."""
EVERY = 1.0
SHORTEST = 0.1
"""Seconds between two turns, at most and at least."""
AT_A_TIME = 300
"""Pods whose objects are in memory at once."""
TELL_EVERY = 2.0
SLICE = 20.0
"""Seconds for which a log is read when others wait for their turn."""
LONGEST_WAIT = 10.0
PATIENCE = 15.0
"""Seconds for the threads to end when the collecting is stopped."""
WAITS = "It waits for its turn: {} logs of this cluster are being read, which is the most at once."


@dataclass(eq=False, slots=True)
class _Job:
    """One log that is to be read on: by a thread now, or at `not_before`."""

    id: int
    pod: int
    capture: Capture
    urgent: bool
    note: str = ""
    not_before: float = 0.0
    failures: int = 0
    began: float = 0.0
    thread: threading.Thread | None = None
    outcome: Outcome | None = None
    told: tuple[int, int, str] = (0, 0, "")

    @property
    def news(self) -> tuple[int, int, str]:
        return self.capture.progress.size, len(self.capture.progress.gaps), self.note


@dataclass(eq=False, slots=True)
class _PodState:
    version: str
    gone: bool
    open: set[int] = field(default_factory=set)


def _client(cluster: uuid.UUID) -> Client:
    return connections.client(cluster, can_wait=True)


class Collector:
    """The logs of one cluster. `turn` does what there is to do now; `run` does so until it is
    stopped.
    """

    def __init__(
        self,
        cluster: uuid.UUID,
        stop: threading.Event,
        woken: threading.Event,
        client: Callable[[uuid.UUID], Client] = _client,
        at_once: int = AT_ONCE,
    ) -> None:
        self._cluster = cluster
        self._stop = stop
        self._woken = woken
        self._client = client
        self._at_once = at_once
        self._jobs: dict[int, _Job] = {}
        self._pods: dict[int, _PodState] = {}
        self._told_at = 0.0
        self._mover: threading.Thread | None = None

    def run(self) -> None:
        """Until `stop`; nothing that goes wrong ends it."""
        try:
            while not self._stop.is_set():
                try:
                    self.turn()
                except Exception:
                    # The edge of a loop that must go on: one turn's trouble, whatever it is, must
                    # not end the capture of all logs.
                    log.exception(
                        "a turn of capturing the logs of cluster %s failed", self._cluster
                    )
                    self._stop.wait(EVERY)
                finally:
                    # A process follows more clusters than it may have connections to the database.
                    close_old_connections()
                self._stop.wait(SHORTEST)
                self._woken.wait(EVERY - SHORTEST)
                self._woken.clear()
        finally:
            self.close()

    def turn(self) -> None:
        """Take in what has ended, find what is new, start what can be started, and tell how far all
        of it is.
        """
        self._reap()
        self._find()
        self._start()
        self._tell()

    def close(self) -> None:
        """End all threads, and tell how far they came."""
        running = [job for job in self._jobs.values() if job.thread is not None]
        until = time.monotonic() + PATIENCE
        for job in running:
            job.capture.cut()
        for job in running:
            assert job.thread is not None
            job.thread.join(max(0.1, until - time.monotonic()))
        if self._mover is not None:
            self._mover.join(max(0.1, until - time.monotonic()))
        try:
            self._reap()
            self._tell(all_of_it=True)
        except DatabaseError as error:
            log.warning(
                (
                    "the last state of logs could not be written, and is found again in their "
                    "files: %s"
                ),
                error,
            )

    def _find(self) -> None:
        seen = rows.unread(self._cluster)
        known = {each.id for each in seen}
        for pod in [pod for pod in self._pods if pod not in known]:
            self._forget(pod)
        changed = [each for each in seen if self._is_new(each)]
        for begin in range(0, len(changed), AT_A_TIME):
            some = changed[begin : begin + AT_A_TIME]
            logs = rows.entered(each.id for each in some)
            for each in some:
                self._enter(each, logs.get(each.id, []))
        kept = [each.id for each in seen if each.ended and not self._pods[each.id].open]
        if kept:
            rows.kept(kept)
            for pod in kept:
                self._forget(pod)

    def _is_new(self, pod: Seen) -> bool:
        state = self._pods.get(pod.id)
        return state is None or (state.version, state.gone) != (pod.version, pod.gone)

    def _enter(self, pod: Seen, logs: Sequence[tuple[Log, Run]]) -> None:
        state = _PodState(pod.version, pod.gone, {row.pk for row, _ in logs})
        self._pods[pod.id] = state
        for row, run in logs:
            urgent = run.sight is not Sight.RUNNING
            if (job := self._jobs.get(row.pk)) is not None:
                job.capture.moved(run.sight)
                if urgent and not job.urgent:
                    job.urgent, job.not_before = True, 0.0
                continue
            namespace = row.pod.workload.project.namespace
            bound = settings.OPTIONS.log_bytes_container
            target = Target(
                namespace,
                row.pod.name,
                row.pod.uid,
                row.container,
                row.run,
                places.local(row.path),
                bound,
            )
            told = (row.size, len(row.gaps), row.note)
            self._jobs[row.pk] = _Job(
                row.pk, pod.id, Capture(target, run.sight, row.gaps), urgent, told=told
            )

    def _forget(self, pod: int) -> None:
        state = self._pods.pop(pod)
        for each in state.open:
            job = self._jobs.pop(each, None)
            if job is not None:
                job.capture.cut()

    def _start(self) -> None:
        now = time.monotonic()
        running = [job for job in self._jobs.values() if job.thread is not None]
        ready = sorted(
            (job for job in self._jobs.values() if job.thread is None and job.not_before <= now),
            key=_first_come,
        )
        room = max(0, self._at_once - len(running))
        client = self._connected() if ready else None
        if client is None:
            return
        for job in ready[:room]:
            job.began, job.outcome = now, None
            job.thread = threading.Thread(
                target=self._read, args=(job, client), name=f"log {job.id}", daemon=True
            )
            job.thread.start()
        waiting = ready[room:]
        for job in waiting:
            job.note = job.note or WAITS.format(self._at_once)
        held = sorted(
            (job for job in running if now - job.began > SLICE), key=lambda job: job.began
        )
        for job in held[: len(waiting)]:
            job.capture.cut()

    def _connected(self) -> Client | None:
        try:
            return self._client(self._cluster)
        except (KubeError, Cluster.DoesNotExist) as error:
            log.warning("the logs of cluster %s cannot be read: %s", self._cluster, error)
            return None

    def _read(self, job: _Job, client: Client) -> None:
        try:
            job.outcome = job.capture.turn(client)
        except Exception as error:
            # The edge of a thread: what one log's bytes or answers bring about must not be lost in
            # silence, nor end the others.
            log.exception("reading log %d failed", job.id)
            job.outcome = Outcome(
                End.AGAIN, f"Reading it failed: {type(error).__name__}.", LONGEST_WAIT
            )
        if job.outcome.end is not End.AGAIN:
            self._woken.set()

    def _reap(self) -> None:
        now = time.monotonic()
        over: dict[int, tuple[str, str]] = {}
        for job in self._jobs.values():
            if job.thread is None or job.thread.is_alive():
                # A log that is read has no trouble; what it had is told until then.
                job.note = "" if job.thread is not None and now - job.began > EVERY else job.note
                continue
            job.thread = None
            outcome = job.outcome or Outcome(End.AGAIN, wait=LONGEST_WAIT)
            if outcome.end is End.AGAIN:
                job.failures = (
                    job.failures + 1 if outcome.note and now - job.began < LONGEST_WAIT else 0
                )
                job.not_before = now + min(LONGEST_WAIT, outcome.wait * 2 ** min(job.failures, 6))
                job.note = outcome.note
            else:
                over[job.id] = (
                    Log.State.COMPLETE if outcome.end is End.COMPLETE else Log.State.LOST,
                    outcome.note,
                )
        if over:
            rows.told({pk: (self._jobs[pk].capture.progress, over[pk][1]) for pk in over})
            rows.settled(over)
            self._move()
            for pk in over:
                job = self._jobs.pop(pk)
                if (state := self._pods.get(job.pod)) is not None:
                    state.open.discard(pk)

    def _move(self) -> None:
        """Put what has ended into the object store, where there is one; what fails is found by the
        hourly sweep.
        """
        if storing.is_set() and not (self._mover and self._mover.is_alive()):
            self._mover = threading.Thread(target=_moved, name="mover of logs", daemon=True)
            self._mover.start()

    def _tell(self, all_of_it: bool = False) -> None:
        now = time.monotonic()
        if now - self._told_at < TELL_EVERY and not all_of_it:
            return
        news = {job.id: job for job in self._jobs.values() if job.news != job.told}
        if news:
            rows.told({pk: (job.capture.progress, job.note) for pk, job in news.items()})
            for job in news.values():
                job.told = job.news
        self._told_at = now


def _moved() -> None:
    try:
        storing.sweep()
    except Exception:
        # The edge of a thread: whatever the object store's client raises, the files are still here
        # and the next sweep finds them.
        log.exception("ended logs could not be moved to the object store")
    finally:
        db_connections.close_all()


def _first_come(job: _Job) -> tuple[bool, float]:
    """What has ended may be removed by the cluster at any time, so it comes first; then whoever
    waits longest.
    """
    return not job.urgent, job.began


def collect(cluster_id: uuid.UUID, stop: threading.Event, woken: threading.Event) -> None:
    """Capture the logs of a cluster's pods until `stop`, in this thread and one for each log.
    `woken` says that pods have changed.
    """
    Collector(cluster_id, stop, woken).run()

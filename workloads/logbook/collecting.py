"""Capturing the logs of one cluster while its pods run, and recording the progress.

Each log is read in a thread of its own without database access. The collector's thread alone writes
the rows.
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
from workloads.logbook import log_paths, log_records, object_store
from workloads.logbook.capture import CaptureTarget, LogCapture, TurnEnd, TurnOutcome
from workloads.logbook.container_runs import ContainerRun, RunState
from workloads.logbook.log_records import UnreadPod
from workloads.logbook.log_room import LogRoom
from workloads.models import Log

log = logging.getLogger(__name__)

MAX_STREAMS = 256
"""Streams that are open to one cluster."""
TURN_SECONDS = 1.0
SHORTEST_TURN_SECONDS = 0.1
"""Seconds between two turns, at most and at least."""
IDLE_SHARE = 4
"""A turn is followed by a pause of this many times its processor time, at most TURN_SECONDS.

Not its own length: on a busy machine that is mostly waiting, and pods may be gone after a second.
"""
POD_BATCH_SIZE = 300
"""Pods whose objects are in memory at once."""
PROGRESS_SECONDS = 2.0
SLICE_SECONDS = 20.0
"""Seconds for which a log is read when others wait for their turn."""
LONGEST_WAIT_SECONDS = 10.0
STOP_SECONDS = 15.0
"""Seconds for the threads to end when collecting is stopped."""
WAITING_NOTE = (
    "It waits for its turn: {} logs of this cluster are being read, which is the most at once."
)


@dataclass(eq=False, slots=True)
class _CaptureJob:
    """One log to be read: by a thread now, or after `not_before`. Times are monotonic seconds."""

    id: int
    pod: int
    capture: LogCapture
    is_urgent: bool
    note: str = ""
    not_before: float = 0.0
    failures: int = 0
    started_at: float = 0.0
    thread: threading.Thread | None = None
    outcome: TurnOutcome | None = None
    recorded_state: tuple[int, int, str] = (0, 0, "")

    @property
    def current_state(self) -> tuple[int, int, str]:
        return self.capture.progress.size, len(self.capture.progress.gaps), self.note


@dataclass(eq=False, slots=True)
class _PodState:
    version: str
    is_gone: bool
    open_logs: set[int] = field(default_factory=set)


def _get_client(cluster: uuid.UUID) -> Client:
    return connections.get_client(cluster, streams=MAX_STREAMS)


class LogCollector:
    """Captures the logs of one cluster.

    `run_turn` does what there is to do now; `run` repeats it until stopped.
    """

    def __init__(
        self,
        cluster: uuid.UUID,
        stop: threading.Event,
        wakeup: threading.Event,
        client: Callable[[uuid.UUID], Client] = _get_client,
        max_streams: int = MAX_STREAMS,
        room: LogRoom | None = None,
    ) -> None:
        self._cluster = cluster
        self._stop = stop
        self._wakeup = wakeup
        self._client = client
        self._max_streams = max_streams
        self._room = room or LogRoom()
        self._jobs: dict[int, _CaptureJob] = {}
        self._pods: dict[int, _PodState] = {}
        self._recorded_at = 0.0
        self._mover: threading.Thread | None = None

    @property
    def cluster(self) -> uuid.UUID:
        """Return the id of the cluster."""
        return self._cluster

    @property
    def stream_count(self) -> int:
        """Return how many logs are being read."""
        return sum(job.thread is not None for job in list(self._jobs.values()))

    @property
    def log_count(self) -> int:
        """Return how many logs are read, or wait for it."""
        return len(self._jobs)

    def limit_streams(self, most: int) -> None:
        """Let at most so many streams be open; those above it end with their turns."""
        self._max_streams = most

    def run(self) -> None:
        """Run turns until `stop` is set; no error ends it."""
        try:
            while not self._stop.is_set():
                began = time.thread_time()
                try:
                    self.run_turn()
                except Exception:
                    # The edge of a loop that must go on: one turn's trouble, whatever it is, must
                    # not end the capture of all logs.
                    log.exception(
                        "a turn of capturing the logs of cluster %s failed", self._cluster
                    )
                    self._stop.wait(TURN_SECONDS)
                finally:
                    # A process follows more clusters than it may have connections to the database.
                    close_old_connections()
                # Thousands of pods make a turn long: the streams and the database need time too.
                busy = time.thread_time() - began
                pause = min(TURN_SECONDS, max(SHORTEST_TURN_SECONDS, IDLE_SHARE * busy))
                self._stop.wait(pause)
                self._wakeup.wait(TURN_SECONDS - pause)
                self._wakeup.clear()
        finally:
            self.close()

    def run_turn(self) -> None:
        """Reap ended jobs, find new pods, start waiting jobs, and record the progress."""
        self._reap_jobs()
        self._find_pods()
        self._start_jobs()
        self._record_progress()

    def close(self) -> None:
        """Stop all threads, and record how far they came."""
        running = [job for job in self._jobs.values() if job.thread is not None]
        until = time.monotonic() + STOP_SECONDS
        for job in running:
            job.capture.interrupt()
        for job in running:
            assert job.thread is not None
            job.thread.join(max(0.1, until - time.monotonic()))
        if self._mover is not None:
            self._mover.join(max(0.1, until - time.monotonic()))
        try:
            self._reap_jobs()
            self._record_progress(is_forced=True)
        except DatabaseError as error:
            log.warning(
                (
                    "the last state of logs could not be written, and is found again in their "
                    "files: %s"
                ),
                error,
            )

    def _find_pods(self) -> None:
        pods = log_records.load_unread_pods(self._cluster)
        pod_ids = {pod.id for pod in pods}
        for pod_id in [pod_id for pod_id in self._pods if pod_id not in pod_ids]:
            self._forget_pod(pod_id)
        changed = [pod for pod in pods if self._is_changed(pod)]
        for begin in range(0, len(changed), POD_BATCH_SIZE):
            batch = changed[begin : begin + POD_BATCH_SIZE]
            logs = log_records.enter_logs(pod.id for pod in batch)
            for pod in batch:
                self._add_pod(pod, logs.get(pod.id, []))
        finished = [pod.id for pod in pods if pod.has_ended and not self._pods[pod.id].open_logs]
        if finished:
            log_records.mark_logs_kept(finished)
            for pod_id in finished:
                self._forget_pod(pod_id)

    def _is_changed(self, pod: UnreadPod) -> bool:
        state = self._pods.get(pod.id)
        return state is None or (state.version, state.is_gone) != (pod.version, pod.is_gone)

    def _add_pod(self, pod: UnreadPod, logs: Sequence[tuple[Log, ContainerRun]]) -> None:
        state = _PodState(pod.version, pod.is_gone, {row.pk for row, _ in logs})
        self._pods[pod.id] = state
        for row, run in logs:
            is_urgent = run.state is not RunState.RUNNING
            if (job := self._jobs.get(row.pk)) is not None:
                job.capture.update_state(run.state)
                if is_urgent and not job.is_urgent:
                    job.is_urgent, job.not_before = True, 0.0
                continue
            namespace = row.pod.workload.project.namespace
            max_bytes = settings.OPTIONS.log_bytes_container
            target = CaptureTarget(
                namespace,
                row.pod.name,
                row.pod.uid,
                row.container,
                row.run,
                log_paths.local_path(row.path),
                max_bytes,
            )
            recorded = (row.size, len(row.gaps), row.note)
            self._jobs[row.pk] = _CaptureJob(
                row.pk,
                pod.id,
                LogCapture(target, run.state, row.gaps, room=self._room),
                is_urgent,
                recorded_state=recorded,
            )

    def _forget_pod(self, pod_id: int) -> None:
        state = self._pods.pop(pod_id)
        for log_id in state.open_logs:
            job = self._jobs.pop(log_id, None)
            if job is not None:
                job.capture.interrupt()

    def _start_jobs(self) -> None:
        now = time.monotonic()
        running = [job for job in self._jobs.values() if job.thread is not None]
        ready = sorted(
            (job for job in self._jobs.values() if job.thread is None and job.not_before <= now),
            key=_job_priority,
        )
        room = max(0, self._max_streams - len(running))
        client = self._find_client() if ready else None
        if client is None:
            return
        for job in ready[:room]:
            job.started_at, job.outcome = now, None
            job.thread = threading.Thread(
                target=self._read_log, args=(job, client), name=f"log {job.id}", daemon=True
            )
            job.thread.start()
        waiting = ready[room:]
        for job in waiting:
            job.note = job.note or WAITING_NOTE.format(self._max_streams)
        long_running = sorted(
            (job for job in running if now - job.started_at > SLICE_SECONDS),
            key=lambda job: job.started_at,
        )
        # One stream gives up its place for each waiting log, or silent pods would block the rest.
        for job in long_running[: len(waiting)]:
            job.capture.interrupt()

    def _find_client(self) -> Client | None:
        try:
            return self._client(self._cluster)
        except (KubeError, Cluster.DoesNotExist) as error:
            log.warning("the logs of cluster %s cannot be read: %s", self._cluster, error)
            return None

    def _read_log(self, job: _CaptureJob, client: Client) -> None:
        try:
            job.outcome = job.capture.read_turn(client)
        except Exception as error:
            # The edge of a thread: what one log's bytes or answers bring about must not be lost in
            # silence, nor end the others.
            log.exception("reading log %d failed", job.id)
            job.outcome = TurnOutcome(
                TurnEnd.AGAIN, f"Reading it failed: {type(error).__name__}.", LONGEST_WAIT_SECONDS
            )
        if job.outcome.end is not TurnEnd.AGAIN:
            self._wakeup.set()

    def _reap_jobs(self) -> None:
        now = time.monotonic()
        over: dict[int, tuple[str, str]] = {}
        for job in self._jobs.values():
            if job.thread is None or job.thread.is_alive():
                # A log that is being read has no trouble; its last note stays until then.
                job.note = (
                    ""
                    if job.thread is not None and now - job.started_at > TURN_SECONDS
                    else job.note
                )
                continue
            job.thread = None
            outcome = job.outcome or TurnOutcome(TurnEnd.AGAIN, wait=LONGEST_WAIT_SECONDS)
            if outcome.end is TurnEnd.AGAIN:
                job.failures = (
                    job.failures + 1
                    if outcome.note and now - job.started_at < LONGEST_WAIT_SECONDS
                    else 0
                )
                job.not_before = now + min(
                    LONGEST_WAIT_SECONDS, outcome.wait * 2 ** min(job.failures, 6)
                )
                job.note = outcome.note
            else:
                over[job.id] = (
                    Log.State.COMPLETE if outcome.end is TurnEnd.COMPLETE else Log.State.LOST,
                    outcome.note,
                )
        if over:
            # The sizes before the states: a reader that sees a settled log must see all of it.
            log_records.record_progress(
                {pk: (self._jobs[pk].capture.progress, over[pk][1]) for pk in over}
            )
            log_records.record_outcomes(over)
            self._start_mover()
            for pk in over:
                job = self._jobs.pop(pk)
                if (state := self._pods.get(job.pod)) is not None:
                    state.open_logs.discard(pk)

    def _start_mover(self) -> None:
        """Start moving ended logs to the object store, if there is one.

        The hourly sweep finds what fails.
        """
        if object_store.is_configured() and not (self._mover and self._mover.is_alive()):
            self._mover = threading.Thread(
                target=_move_ended_logs, name="mover of logs", daemon=True
            )
            self._mover.start()

    def _record_progress(self, is_forced: bool = False) -> None:
        now = time.monotonic()
        if now - self._recorded_at < PROGRESS_SECONDS and not is_forced:
            return
        changed = {
            job.id: job for job in self._jobs.values() if job.current_state != job.recorded_state
        }
        if changed:
            log_records.record_progress(
                {pk: (job.capture.progress, job.note) for pk, job in changed.items()}
            )
            for job in changed.values():
                job.recorded_state = job.current_state
        self._recorded_at = now


def _move_ended_logs() -> None:
    try:
        object_store.move_ended_logs()
    except Exception:
        # The edge of a thread: whatever the object store's client raises, the files are still here
        # and the next sweep finds them.
        log.exception("ended logs could not be moved to the object store")
    finally:
        db_connections.close_all()


def _job_priority(job: _CaptureJob) -> tuple[bool, float]:
    """Return the sort key of a job: ended logs first, then those that wait longest.

    The cluster may remove an ended pod at any time.
    """
    return not job.is_urgent, job.started_at

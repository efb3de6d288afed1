"""Logs of a workload: all ranks or some, merged by time, kept or as they come."""

import contextlib
import heapq
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from muster_cli.actions import workloads
from muster_cli.actions.log_lines import ContainerFollower, LogLine, LogRequest, RunFollower
from muster_cli.errors import CliError, NotFound, Refused, Unreachable
from muster_cli.session import RETRY_SECONDS, Session

MOST_STREAMS = 16
"""Pods that are streamed at once, below the server's bound for one person; more are polled."""
READERS = 8
DEFAULT_TAIL = 100
"""Lines of each pod, where there are more than MOST_STREAMS and nothing is said."""
LIST_SECONDS = 3.0
WAITING_LINES = 10_000
"""Lines that wait to be written; more wait where they come from."""


def choose_pods(
    pods: Sequence[dict[str, Any]], *, ranks: Sequence[int] = (), names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the pods of these ranks or names; all, where none are given. Raises NotFound."""
    chosen = [
        each
        for each in pods
        if not (ranks or names) or each.get("rank") in ranks or each["name"] in names
    ]
    if (ranks or names) and pods and not chosen:
        pod_names = ", ".join(map(_name_pod, pods[:20]))
        raise NotFound("This workload has no such pod.", f"It has {pod_names}.")
    return chosen


def _name_pod(pod: dict[str, Any]) -> str:
    """Return a pod's name, with its rank where it has one."""
    rank = pod.get("rank")
    return str(pod["name"]) if rank is None else f"{pod['name']} (rank {rank})"


def read_logs(session: Session, requests: Sequence[LogRequest]) -> Iterator[LogLine]:
    """Yield what was written, of several pods in the order of time. Raises Refused."""
    if len(requests) == 1:
        yield from _read_kept_lines(session, requests[0])
        return
    if len(requests) <= MOST_STREAMS:
        # Merged while they come: no log has to fit into memory.
        streams = [_read_or_nothing(session.clone(), each) for each in requests]
    else:
        with ThreadPoolExecutor(READERS) as pool:
            logs = pool.map(lambda each: list(_read_or_nothing(session.clone(), each)), requests)
            streams = [iter(lines) for lines in logs]
    yield from heapq.merge(*(_fill_moments(each) for each in streams), key=lambda it: it.moment)


def _read_kept_lines(session: Session, request: LogRequest) -> Iterator[LogLine]:
    """Yield the lines of one pod, each once, also where the answer breaks off on the way.

    Raises Unreachable where the server answered nothing, or tries bring no further line.
    """
    follower, tries, is_begun = RunFollower(session, request, None), 0, False
    while True:
        try:
            for line in follower.read_lines(follow=False, takes_rest=True):
                tries = 0
                yield line
        except (Unreachable, Refused) as error:
            # The server lets go of an answer that nobody takes for minutes: a pager waits for its
            # reader, and of pods that are merged the later ones wait for the earlier.
            is_begun = is_begun or follower.has_connected
            is_passing = isinstance(error, Unreachable) or error.is_temporary
            if not (is_begun and is_passing) or tries == len(RETRY_SECONDS):
                raise
            time.sleep(RETRY_SECONDS[tries])
            tries += 1
        else:
            return


def _read_or_nothing(session: Session, request: LogRequest) -> Iterator[LogLine]:
    """Yield the lines of one pod of several; one that has written nothing is no error."""
    try:
        yield from _read_kept_lines(session, request)
    except Refused as refusal:
        if refusal.status != 404:
            raise


def _fill_moments(lines: Iterator[LogLine]) -> Iterator[LogLine]:
    """Give a line without a moment that of the line before it, and never an earlier one."""
    last = 0
    for line in lines:
        last = max(last, line.moment)
        yield line if line.moment == last else replace(line, moment=last)


class LogFollower:
    """The logs of a workload as they are written: a thread for each pod, or some for many pods.

    It ends when the workload has ended and all is read.
    """

    def __init__(
        self,
        session: Session,
        workload_id: str,
        *,
        build_request: Callable[[dict[str, Any]], LogRequest],
        choose: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
        attempt: str = "",
    ) -> None:
        self._session = session
        self._workload_id = workload_id
        self._build_request = build_request
        self._choose = choose
        self._attempt = attempt
        self._lines: queue.Queue[LogLine | CliError | None] = queue.Queue(WAITING_LINES)
        self._followed: set[str] = set()
        self._first: set[str] | None = None
        """The pods that were there when following began; later ones are read from their start."""
        self._ended: set[str] = set()
        self._polled: queue.Queue[dict[str, Any]] = queue.Queue()
        self._pollers = 0
        self._is_over = False
        self._is_closed = threading.Event()

    def read_lines(self) -> Iterator[LogLine]:
        """Yield the lines until the workload has ended. Raises CliError."""
        threading.Thread(target=self._watch_pods, daemon=True).start()
        running = 1
        try:
            while running:
                item = self._lines.get()
                if isinstance(item, CliError):
                    raise item
                if item is None:
                    running -= 1
                elif item.pod == "":
                    running += 1
                else:
                    yield item
        finally:
            self._is_closed.set()

    def _watch_pods(self) -> None:
        """Start to follow each pod when it appears, until the workload has ended."""
        session = self._session.clone()
        try:
            while not self._is_closed.is_set():
                workload = workloads.get_by_id(
                    session, self._workload_id, workloads.PATIENCE_SECONDS
                )
                pods = workloads.list_pods(
                    session, self._workload_id, self._attempt, workloads.PATIENCE_SECONDS
                )
                is_over = workload["phase"] in workloads.ENDED or bool(workload.get("deletedAt"))
                self._ended.update(
                    each["id"]
                    for each in pods
                    if is_over or each.get("completedAt") or each.get("deletedAt")
                )
                if self._first is None:
                    self._first = {each["id"] for each in pods}
                self._start_followers(self._choose_present(pods, is_over=is_over))
                if is_over or self._attempt:
                    self._is_over = True
                    break
                self._is_closed.wait(LIST_SECONDS)
        except CliError as error:
            self._lines.put(error)
        finally:
            self._lines.put(None)

    def _choose_present(self, pods: list[dict[str, Any]], *, is_over: bool) -> list[dict[str, Any]]:
        """Return the chosen pods; those that are not there yet may still come."""
        try:
            return self._choose(pods)
        except NotFound:
            if is_over:
                raise
            return []

    def _start_followers(self, pods: Sequence[dict[str, Any]]) -> None:
        for pod in pods:
            if pod["id"] in self._followed:
                continue
            self._followed.add(pod["id"])
            if len(self._followed) <= MOST_STREAMS:
                self._start_thread(self._stream_pod, pod)
                continue
            self._polled.put(pod)
            if self._pollers < READERS:
                self._pollers += 1
                self._start_thread(self._poll_pods)

    def _start_thread(self, work: Callable[..., None], *arguments: Any) -> None:
        # It is counted before it starts: else the last one could end unseen.
        self._lines.put(LogLine("", "", b""))
        threading.Thread(target=self._run, args=(work, *arguments), daemon=True).start()

    def _run(self, work: Callable[..., None], *arguments: Any) -> None:
        outcome: CliError | None = CliError(
            "A log could not be read further: muster failed unexpectedly."
        )
        try:
            work(*arguments)
            outcome = None
        except CliError as error:
            outcome = error
        finally:
            # Lines are never missing in silence.
            self._lines.put(outcome)

    def _build_follower(self, session: Session, pod: dict[str, Any]) -> ContainerFollower:
        request = self._build_request(pod)
        if pod["id"] not in (self._first or ()):
            request = replace(request, tail=None)
        return ContainerFollower(
            session,
            request,
            lambda: self._is_over or pod["id"] in self._ended or self._is_closed.is_set(),
            workloads.PATIENCE_SECONDS,
        )

    def _stream_pod(self, pod: dict[str, Any]) -> None:
        for line in self._build_follower(self._session.clone(), pod).read_all():
            self._lines.put(line)

    def _poll_pods(self) -> None:
        """Ask for the logs of some pods in turn, until each has ended and no more will come."""
        session = self._session.clone()
        followers: list[ContainerFollower] = []
        while not self._is_closed.is_set():
            with contextlib.suppress(queue.Empty):
                # One at a time, so that all pollers get their share.
                followers.append(self._build_follower(session, self._polled.get_nowait()))
            is_whole = self._is_over and self._polled.empty()
            for follower in followers:
                for line in follower.read_available(follow=False):
                    self._lines.put(line)
            followers = [each for each in followers if not each.is_done]
            if is_whole and not followers:
                return
            if self._polled.empty():
                self._is_closed.wait(LIST_SECONDS)

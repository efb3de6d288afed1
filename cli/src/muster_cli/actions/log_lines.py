"""Following the log of one container so that no line is lost or doubled, whatever breaks.

Lines are asked for with their timestamps. After a lost connection the log is asked for from the
second of the newest line on, in UTC, and as many lines as came of that second are dropped.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.client import HTTPMessage, HTTPResponse

from muster_cli import routes
from muster_cli.actions import moments
from muster_cli.errors import CliError, Refused, Unreachable
from muster_cli.session import RETRY_SECONDS, Session

READ_BYTES = 1 << 16
LONGEST_LINE = 1 << 20
RUN_HEADER = "X-Log-Run"
MOST_MISSING_RUNS = 20
"""Runs before the newest that are asked for one by one, where the next one has no log."""
LATE_SECONDS = 5.0
"""How long after the end of its pod a log may begin to be captured."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which log is read, and from where on.

    A pod that is made anew within an attempt has the name of the one before it, so only its id
    names a pod; `pod` stands before its lines.
    """

    workload_id: str
    pod: str
    pod_id: str
    container: str = ""
    attempt: int | None = None
    tail: int | None = None
    since: str = ""
    previous: bool = False


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line with the moment at which it was written, as text and in nanoseconds from 1970 on.

    They are "" and 0 where that is not known.
    """

    pod: str
    stamp: str
    text: bytes
    moment: int = 0


class ResumePoint:
    """How far one run's log was read: what to ask for next, and which lines to drop of it."""

    def __init__(self, *, starts_within: bool) -> None:
        self.second = 0
        self._count = 0
        self._last = 0
        self._same = 0
        # A tail may begin in the middle of a second: then the lines before it were not counted.
        self._is_partial = starts_within

    def add(self, moment: int) -> None:
        """Count a line that was taken; one without a moment (0) goes with the line before it."""
        moment = moment or self._last
        second = moment // moments.NANOSECONDS
        if second > self.second:
            self._is_partial = self._is_partial and not self.second
            self.second, self._count = second, 0
        self._count += 1
        self._same = self._same + 1 if moment == self._last else 1
        self._last = moment

    def begin_at(self, moment: int) -> None:
        """Take nothing that was written before a moment, of which no line was taken yet."""
        self.second, self._last, self._same = moment // moments.NANOSECONDS, moment, 0
        self._is_partial = True

    def build_filter(self) -> Callable[[int], bool]:
        """Return what tells, line by line of a new answer, whether a line is new."""
        count, last, same = self._count, self._last, self._same
        dropped = before = 0

        def is_new_by_count(moment: int) -> bool:
            nonlocal dropped
            dropped += 1
            return dropped > count

        def is_new_by_moment(moment: int) -> bool:
            nonlocal dropped, before
            before = moment = moment or before or last
            if moment == last:
                dropped += 1
                return dropped > same
            return moment > last

        return is_new_by_moment if self._is_partial else is_new_by_count


class RunFollower:
    """The lines of one run of a container, each once, over any number of connections."""

    def __init__(self, session: Session, request: LogRequest, run: int | None) -> None:
        self._session = session
        self._request = request
        self.run = run
        self._point = ResumePoint(starts_within=request.tail is not None or bool(request.since))
        self._has_begun = False
        self._rest: LogLine | None = None
        self.has_connected = False
        """Whether the server answered when it was asked last."""

    def read_lines(self, *, follow: bool, takes_rest: bool = False) -> Iterator[LogLine]:
        """Yield the lines that were not taken yet, until the answer ends.

        A last line without an end may be one that is still being written: it is left to
        `take_rest`, or to the next answer. Raises Unreachable where the answer breaks off: call it
        again. Raises Refused.
        """
        self.has_connected, self._rest = False, None
        is_new = self._point.build_filter() if self._has_begun else (lambda moment: True)
        with self._session.stream(
            routes.GET_LOGS,
            query=self._build_query(follow),
            workload_id=self._request.workload_id,
            pod_id=self._request.pod_id,
        ) as response:
            self.has_connected = True
            number = read_run(response.headers)
            self.run = self.run if number is None else number
            was_empty = not self._has_begun
            for text, is_whole in split_lines(response):
                line = parse_line(self._request.pod, text)
                was_empty = False
                if not is_new(line.moment):
                    continue
                if is_whole or takes_rest:
                    self._take(line)
                    yield line
                else:
                    self._keep_rest(line)
            if was_empty and self._request.tail:
                # There was nothing to take the last lines of: what comes now is all new.
                self._request = replace(self._request, tail=None)

    def take_rest(self) -> LogLine | None:
        """Return the last answer's line without an end, once it will get none."""
        rest, self._rest = self._rest, None
        if rest is not None:
            self._take(rest)
        return rest

    def _take(self, line: LogLine) -> None:
        self._point.add(line.moment)
        self._has_begun = True

    def _keep_rest(self, line: LogLine) -> None:
        self._rest = line
        if not self._has_begun and self._request.tail and line.moment:
            # When it is asked for again, the last lines may be others.
            self._point.begin_at(line.moment)
            self._has_begun = True

    def _build_query(self, follow: bool) -> dict[str, str | int | bool | None]:
        request, point = self._request, self._point
        query: dict[str, str | int | bool | None] = {
            "timestamps": True,
            "follow": follow or None,
            "container": request.container or None,
            "attempt": request.attempt,
            "run": self.run,
        }
        if self._has_begun:
            since = moments.format_second(point.second) if point.second else None
            return query | {"sinceTime": since}
        return query | {
            "tailLines": request.tail,
            "sinceTime": request.since or None,
            "previous": (request.previous and self.run is None) or None,
        }


def split_lines(response: HTTPResponse) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of an answer, and whether each has an end: the last one may lack it."""
    rest = b""
    while chunk := response.read1(READ_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line, True
        if len(rest) > LONGEST_LINE:
            yield rest, True
            rest = b""
    if rest:
        yield rest, False


def parse_line(pod: str, line: bytes) -> LogLine:
    """Return a line of an answer by its moment and its text."""
    first, space, text = line.partition(b" ")
    if space and 20 <= len(first) <= 40:
        stamp = first.decode(errors="replace")
        moment = moments.parse_nanoseconds(stamp)
        if moment is not None:
            return LogLine(pod, stamp, text, moment)
    return LogLine(pod, "", line)


def read_run(headers: HTTPMessage) -> int | None:
    """Return the number of the run that an answer is of; None where it does not say."""
    text = headers.get(RUN_HEADER) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


class ContainerFollower:
    """The lines of a container as they come, over restarts of the container and of the server.

    `has_ended` tells whether the pod will write no more.
    """

    def __init__(
        self, session: Session, request: LogRequest, has_ended: Callable[[], bool], patience: float
    ) -> None:
        self._session = session
        self._request = request
        self._has_ended = has_ended
        self._patience = patience
        self._follower = RunFollower(session, request, None)
        self._lost_at: float | None = None
        self._tries = 0
        self._missing_since: float | None = None
        self._is_primed = request.tail != 0
        self.is_done = False
        self.is_streaming = True
        """Whether answers are left open; not where the caller has too many of them."""

    def read_all(self) -> Iterator[LogLine]:
        """Yield the lines until nothing more will come. Raises as `read_available` does."""
        while not self.is_done:
            count = 0
            for line in self.read_available(follow=self.is_streaming):
                count += 1
                yield line
            if not count and not self.is_done:
                time.sleep(RETRY_SECONDS[min(self._tries, len(RETRY_SECONDS) - 1)])
                self._tries += 1

    def read_available(self, *, follow: bool) -> Iterator[LogLine]:
        """Yield what one answer brings, and set `is_done` once nothing more will come.

        Raises Refused, and Unreachable where the server has not answered for too long.
        """
        will_write, count = not self._has_ended(), 0
        try:
            if not self._is_primed:
                self._pass_over_present_lines()
            for line in self._follower.read_lines(follow=follow):
                count, self._lost_at, self._tries = count + 1, None, 0
                yield line
        except Unreachable as error:
            if self._follower.has_connected:
                # It broke off, or was silent for long: that counts from the next failure on.
                self._lost_at = None
            else:
                self._bear_loss(error)
            return
        except Refused as refusal:
            self._judge_refusal(refusal, will_write=will_write)
            return
        # The answer may have ended because the server did: only an empty one says that the run is
        # over.
        if count:
            self._lost_at = None
            return
        yield from self._end_run(will_write=will_write)

    def _bear_loss(self, error: CliError) -> None:
        """Count for how long nobody has answered; raises the error when it is too long."""
        self._lost_at = self._lost_at or time.monotonic()
        if time.monotonic() - self._lost_at > self._patience:
            raise error

    def _pass_over_present_lines(self) -> None:
        """Take the newest line unseen, from which on a follower without a tail begins."""
        self._follower = RunFollower(self._session, replace(self._request, tail=1), None)
        for _ in self._follower.read_lines(follow=False):
            pass
        self._is_primed = True

    def _judge_refusal(self, refusal: Refused, *, will_write: bool) -> None:
        if refusal.is_temporary:
            self._bear_loss(refusal)
        elif refusal.status == 429:
            self.is_streaming = False
        elif refusal.status != 404:
            raise refusal
        elif will_write or not self._is_late():
            # It has written nothing yet, so all that it will write is new.
            self._is_primed = True
            if self._follower.run is None:
                self._follower = RunFollower(self._session, _from_start(self._request), None)
        else:
            # A pod that ended without a word has no log, and that is no error.
            self.is_done = True

    def _is_late(self) -> bool:
        """Tell whether a pod ended so long ago that its log would be there if there were one."""
        self._missing_since = self._missing_since or time.monotonic()
        return time.monotonic() - self._missing_since > LATE_SECONDS

    def _end_run(self, *, will_write: bool) -> Iterator[LogLine]:
        """Go on to the next run where there is one; else end where the pod has."""
        run = self._follower.run
        try:
            following = None if run is None else find_next_run(self._session, self._request, run)
        except (Refused, Unreachable) as error:
            if isinstance(error, Refused) and not error.is_temporary and error.status != 429:
                raise
            self._bear_loss(error)
            return
        self._lost_at = None
        if following is None and will_write:
            return
        # Nothing more will be written to this run, and so not to its last line.
        if rest := self._follower.take_rest():
            yield rest
        if following is None:
            self.is_done = True
        else:
            self._follower = RunFollower(self._session, _from_start(self._request), following)


def _from_start(request: LogRequest) -> LogRequest:
    return replace(request, tail=None, since="", previous=False)


def find_next_run(session: Session, request: LogRequest, run: int) -> int | None:
    """Return the next run of a container that has a log. Raises Refused and Unreachable."""
    following = _find_run(session, request, run + 1)
    if following is not None:
        return following
    # A run that has no log hides none after it.
    newest = _find_run(session, request, None)
    if newest is None or newest <= run:
        return None
    for number in range(max(run + 2, newest - MOST_MISSING_RUNS), newest):
        if _find_run(session, request, number) is not None:
            return number
    return newest


def _find_run(session: Session, request: LogRequest, run: int | None) -> int | None:
    """Return the number of a run, the newest for None; None where it has no log."""
    query = {
        "container": request.container or None,
        "attempt": request.attempt,
        "run": run,
        "tailLines": 0,
    }
    try:
        answer = session.request(
            routes.GET_LOGS, query=query, workload_id=request.workload_id, pod_id=request.pod_id
        )
    except Refused as refusal:
        if refusal.status == 404:
            return None
        raise
    number = read_run(answer.headers)
    return run if number is None else number

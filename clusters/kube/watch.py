"""Follows one kind of objects: list, then watch, for as long as wanted and whatever happens to the
connection.

An object may arrive twice, or late: the caller compares resource versions.
"""

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec

from clusters.kube import calls, frames
from clusters.kube.client import Client
from clusters.kube.errors import (
    AWAY_STATUSES,
    Expired,
    KubeError,
    Unauthorized,
    Unavailable,
)
from clusters.kube.frames import OBJECT_DECODER, Frame, Object, UnreadableObject
from clusters.kube.rate_limits import LONGEST_PAUSE
from clusters.kube.resources import Resource
from clusters.kube.sockets import Cancellation
from console.texts import parse_number

T = TypeVar("T")
Decoder = msgspec.json.Decoder

STOP_POLL_SECONDS = 0.2
"""Seconds between two checks of `stop` while a read waits."""
MIN_WATCH_SECONDS = 1.0
"""Seconds. A watch that ends sooner, without an event, did not work; client-go sees it so, too."""
MAX_VERSION_FAILURES = 3
"""Failures in a row of watches from one version, after which the version itself is given up."""

_raw_decoder = msgspec.json.Decoder(msgspec.Raw)


@dataclass(frozen=True, slots=True)
class WatchTimings:
    """Seconds. The server is asked to end a watch after `watch`, and given up when nothing came for
    `watch` + `slack`.

    After a failure the next try waits between half of and all of a span that doubles from
    `first_retry` to `longest_retry`; less where another thread of the client finds the cluster
    answering again. Then, and before a listing after a 410, the wait is a random part of half of
    `first_retry`, so that not all kinds are listed at one instant.
    """

    watch: int = 290
    slack: float = 10.0
    first_retry: float = 1.0
    longest_retry: float = 30.0


@dataclass(frozen=True, slots=True)
class ListingStarted:
    """A new listing begins: whatever the caller knows by now and the listing lacks has vanished.
    Only with `parts`.
    """


@dataclass(frozen=True, slots=True)
class ListingPart(Generic[T]):
    """Some of the objects of the listing that began last. Only with `parts`.

    With `first`, forget the parts before: the server had lost its place in the list, and the
    listing begins anew.
    """

    items: list[T]
    unreadable: list[UnreadableObject]
    first: bool


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects there are at `version`, and no others: what the caller knows beside them has
    vanished.

    `unreadable` objects exist as well, but the caller's decoder refused them. With `parts` the
    objects came before, since ListingStarted.
    """

    items: list[T]
    unreadable: list[UnreadableObject]
    version: str


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[T]):
    """One object as it is now; of a DELETED, as it last was. `version` is the object's."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T
    version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to `version` has been yielded, and the cluster answered just now. The first
    sign of life after a WatchFailed.
    """

    version: str


@dataclass(frozen=True, slots=True)
class WatchFailed:
    """The cluster is not followed at the moment; it last answered at `since`. Yielded after every
    failed try; following goes on by itself.
    """

    error: KubeError
    since: datetime


@overload
def follow(
    client: Client,
    resource: Resource,
    *,
    stop: threading.Event,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    page: int = calls.PAGE_SIZE,
    timings: WatchTimings | None = None,
) -> Iterator[
    Listing[Object] | ObjectChange[Object] | UnreadableObject | Bookmark | WatchFailed
]: ...
@overload
def follow(
    client: Client,
    resource: Resource,
    *,
    stop: threading.Event,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    page: int = calls.PAGE_SIZE,
    timings: WatchTimings | None = None,
    decoder: Decoder[T],
) -> Iterator[Listing[T] | ObjectChange[T] | UnreadableObject | Bookmark | WatchFailed]: ...
@overload
def follow(
    client: Client,
    resource: Resource,
    *,
    stop: threading.Event,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    page: int = calls.PAGE_SIZE,
    timings: WatchTimings | None = None,
    decoder: Decoder[T],
    parts: Literal[True],
) -> Iterator[
    ListingStarted
    | ListingPart[T]
    | Listing[T]
    | ObjectChange[T]
    | UnreadableObject
    | Bookmark
    | WatchFailed
]: ...
def follow(
    client: Client,
    resource: Resource,
    *,
    stop: threading.Event,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    page: int = calls.PAGE_SIZE,
    timings: WatchTimings | None = None,
    decoder: Decoder[Any] = OBJECT_DECODER,
    parts: bool = False,
) -> Iterator[Any]:
    """Yield a complete Listing, then changes, and a Listing again whenever the server forgets our
    place.

    This goes on for ever. With `parts` a listing comes page by page, so that it need not be in
    memory as a whole: ListingStarted, then ListingParts, then an empty Listing.

    Ends within a second of `stop` being set (while a connection is being made: within the client's
    connect timeout). Every failure is yielded as WatchFailed and retried, except bad credentials:
    Unauthorized is raised, and a new call with others goes on. An object that `decoder` refuses
    comes as UnreadableObject. Nothing is read ahead of the caller.
    """
    follower = _Follower(
        client,
        resource,
        namespace,
        labels,
        fields,
        page,
        timings or WatchTimings(),
        stop,
        decoder,
        parts,
    )
    return follower.run()


WatchItem = (
    ListingStarted
    | ListingPart[Any]
    | Listing[Any]
    | ObjectChange[Any]
    | UnreadableObject
    | Bookmark
    | WatchFailed
)


class _Follower:
    """The state of one list-watch. `_version` is "" when a listing is needed; `_must_check_version`
    asks to check it before watching from it.

    `_failures`, `_version_failures` and `_expirations` (410) count those in a row.
    `_is_unanswered` says whether the last failure was that no usable answer came, `_recoveries` how
    often the cluster had come back when the current try began.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespace: str | None,
        labels: str,
        fields: str,
        page_size: int,
        timings: WatchTimings,
        stop: threading.Event,
        decoder: Decoder[Any],
        parts: bool,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._page_size = page_size
        self._timings = timings
        self._stop = stop
        self._decoder = decoder
        self._parts = parts
        self._cancellation = Cancellation()
        self._version = ""
        self._must_check_version = False
        self._failures = 0
        self._is_unanswered = False
        self._version_failures = 0
        self._expirations = 0
        self._opened_at = 0.0
        self._last_contact = datetime.now(UTC)
        self._recoveries = 0
        self._wakeup = threading.Event()

    def run(self) -> Iterator[WatchItem]:
        done = threading.Event()
        guard = threading.Thread(
            target=_cancel_on_stop,
            args=(self._stop, done, self._cancellation, self._wakeup),
            name=f"guard of {self._resource.plural}",
            daemon=True,
        )
        guard.start()
        try:
            while not self._stop.is_set():
                yield from self._list_or_watch()
        finally:
            self._client.recovery.give_back(self._wakeup)
            done.set()
            guard.join()

    def _list_or_watch(self) -> Iterator[WatchItem]:
        """Yield from one listing or one watch, and handle its failure."""
        self._recoveries = self._client.recovery.count
        try:
            if self._must_check_version and (self._version or self._must_find_server):
                self._check_version()
            elif not self._version:
                yield from self._list_objects()
            else:
                yield from self._watch_changes()
        except Unauthorized:
            raise
        except KubeError as error:
            # A timeout, or being asked to wait, ends the turn without a word about the others.
            self._client.recovery.give_back(self._wakeup)
            if not self._stop.is_set():
                yield from self._handle_failure(error)

    @property
    def _must_find_server(self) -> bool:
        """Return whether a listing in parts waits until a server that was away has answered.

        At its beginning the caller reads all that it knows, which must not be for nothing at each
        try, nor keep others from trying: the turn may be this one's.
        """
        return self._parts and self._is_unanswered

    def _list_objects(self) -> Iterator[WatchItem]:
        if self._parts:
            yield ListingStarted()
        items: list[Any] = []
        unreadable: list[UnreadableObject] = []
        version = ""
        pages = calls.list_all(
            self._client,
            self._resource,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=self._page_size,
            cancellation=self._cancellation,
            decoder=self._decoder,
        )
        for page in pages:
            if page.first:
                items, unreadable, version = [], [], page.version
            if self._parts:
                self._record_contact()
                yield ListingPart(page.items, page.unreadable, page.first)
                continue
            items += page.items
            unreadable += page.unreadable
        self._record_contact()
        if not version:
            raise Unavailable("the cluster's list has no version", status=200)
        self._version, self._must_check_version, self._version_failures = version, False, 0
        yield Listing(items, unreadable, version)

    def _check_version(self) -> None:
        """Ask whether the server is there; list again where its version is older than ours.

        Called after a failure or a long silence: on a server that was restored to an earlier state,
        a watch from the future would wait for ever.
        """
        page = calls.list_page(
            self._client,
            self._resource,
            namespace=self._namespace,
            labels=self._labels,
            limit=1,
            cancellation=self._cancellation,
            decoder=_raw_decoder,
        )
        self._record_contact()
        self._must_check_version = False
        if _version_number(page.version) < _version_number(self._version):
            self._version = ""

    def _watch_changes(self) -> Iterator[WatchItem]:
        query: list[tuple[str, str | int | bool]] = [
            ("watch", True),
            ("allowWatchBookmarks", True),
            ("resourceVersion", self._version),
            ("timeoutSeconds", self._timings.watch),
        ]
        query += [
            (name, value)
            for name, value in (("labelSelector", self._labels), ("fieldSelector", self._fields))
            if value
        ]
        began, has_event = time.monotonic(), False
        path = self._resource.path(self._namespace)
        with self._client.open_stream(
            path,
            query=query,
            silence_timeout=self._timings.watch + self._timings.slack,
            cancellation=self._cancellation,
        ) as stream:
            self._record_contact()
            self._opened_at = began
            yield Bookmark(self._version)
            for line in frames.split_lines(stream):
                item = self._parse_change(frames.parse_frame(line))
                self._record_contact()
                self._failures = self._version_failures = self._expirations = 0
                has_event = True
                if item is not None:
                    yield item
                if self._stop.is_set():
                    return
        # Without an event or a bookmark the version may be one of the future, after the server was
        # restored from a backup: such a watch stays silent for ever.
        self._must_check_version, self._opened_at = not has_event, 0.0
        if has_event or self._stop.is_set():
            return
        if time.monotonic() - began < min(MIN_WATCH_SECONDS, self._timings.watch / 2):
            raise Unavailable("the cluster ended the watch at once", status=200)
        self._failures = self._expirations = 0

    def _parse_change(self, frame: Frame) -> ObjectChange[Any] | UnreadableObject | Bookmark | None:
        kind, version = frame.type, frame.meta.resourceVersion
        # Frames may come out of order: a watch from a lower version would only repeat events.
        if version and _version_number(version) >= _version_number(self._version):
            self._version = version
        if kind == "BOOKMARK":
            return Bookmark(self._version)
        if kind not in ("ADDED", "MODIFIED", "DELETED"):
            return None
        try:
            return ObjectChange(kind, self._decoder.decode(frame.object), version)  # type: ignore[arg-type]
        except frames.DECODE_ERRORS as error:
            return frames.build_unreadable(kind, frame.meta, error)

    def _handle_failure(self, error: KubeError) -> Iterator[WatchFailed]:
        is_unanswered = error.status == 0 or error.status in AWAY_STATUSES
        has_worked = (
            self._opened_at and time.monotonic() - self._opened_at > self._timings.longest_retry
        )
        is_back = self._is_unanswered and not is_unanswered
        if has_worked or is_back:
            # This is a new failure, and the delay starts anew.
            self._failures = 0
        self._failures, self._opened_at = self._failures + 1, 0.0
        self._is_unanswered, self._must_check_version = is_unanswered, True
        if isinstance(error, Expired):
            # 410: the server has compacted our version away. That is routine, after a restart of
            # the server above all, so the first one is answered by a new listing at once, whatever
            # failed before; only a server that repeats it is a failure.
            self._version, self._expirations = "", self._expirations + 1
            if self._expirations == 1:
                self._wait_random_moment()
                return
        elif error.status not in (0, 429):
            # It answers, but refuses: perhaps because of the version itself, so give it up then.
            self._version_failures += 1
            if self._version_failures >= MAX_VERSION_FAILURES:
                self._version = ""
        yield WatchFailed(error, self._last_contact)
        delay = compute_retry_delay(error, self._failures, self._timings)
        if not is_unanswered:
            self._stop.wait(delay)
        elif self._client.recovery.wait(delay, self._recoveries, self._wakeup, self._stop):
            self._wait_random_moment()

    def _wait_random_moment(self) -> None:
        """Wait so briefly that nobody notices, and so differently that kinds do not act at once."""
        self._stop.wait(random.uniform(0, self._timings.first_retry / 2))  # noqa: S311 - no secret

    def _record_contact(self) -> None:
        self._last_contact = datetime.now(UTC)


def compute_retry_delay(error: KubeError, failures: int, timings: WatchTimings) -> float:
    """Return the seconds until the next try after so many failures in a row.

    It is never sooner than the server asked, and random, so that clients do not retry all at once.
    """
    span = min(timings.longest_retry, timings.first_retry * 2 ** min(failures - 1, 16))
    jitter = random.uniform(span / 2, span)  # noqa: S311 - nothing secret
    retry_after = error.retry_after if isinstance(error, Unavailable) else None
    return max(jitter, min(retry_after, LONGEST_PAUSE) + jitter / 2) if retry_after else jitter


def _version_number(version: str) -> int:
    """Return a resource version as a number, -1 for a text that is none.

    Versions of one resource and server compare as numbers of 64 bits.
    """
    number = parse_number(version, 20)
    return -1 if number is None else number


def _cancel_on_stop(
    stop: threading.Event,
    done: threading.Event,
    cancellation: Cancellation,
    wakeup: threading.Event,
) -> None:
    while not done.wait(STOP_POLL_SECONDS):
        if stop.is_set():
            cancellation.cancel()
            wakeup.set()
            return

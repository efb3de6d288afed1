"""Following one kind of objects: list, then watch, for as long as wanted and whatever happens to
the connection.

What the caller makes of it is not decided here: an object may be told twice, or late, and the
caller compares resource versions.
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
from clusters.kube.errors import Expired, KubeError, Unauthorized, Unavailable
from clusters.kube.frames import OBJECT, Frame, Object, Unreadable
from clusters.kube.pace import LONGEST
from clusters.kube.resources import Resource
from clusters.kube.wire import Wire

T = TypeVar("T")
Decoder = msgspec.json.Decoder

GUARD = 0.2
"""Seconds between two looks at `stop` while a read waits."""
BRIEF = 1.0
"""Seconds. A watch that ends sooner, without a word, did not work; that is how client-go sees it,
too.
"""
SPOILT = 3
"""Failures in a row of watches from one version after which the version itself is doubted."""

_raw = msgspec.json.Decoder(msgspec.Raw)


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. The server is asked to end a watch after `watch`, and given up when nothing came for
    `watch` + `slack`.

    After a failure the next try waits between half of and all of a span that doubles from `first`
    to `most`.
    """

    watch: int = 290
    slack: float = 10.0
    first: float = 1.0
    most: float = 30.0


@dataclass(frozen=True, slots=True)
class Asking:
    """A listing is about to be asked for: what the caller knows by now, and the answer lacks, has
    vanished. Told with `parts` only.
    """


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """Some of the objects of the listing that was asked for last. Told with `parts` only.

    `first` takes back what was told of it before: the server had forgotten where it was, and has
    begun anew.
    """

    items: list[T]
    unreadable: list[Unreadable]
    first: bool


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects there are at `version`, these and no others: what the caller knows beside them
    has vanished.

    `unreadable` are there as well, but the caller's decoder refused them. With `parts` they have
    been told since Asking.
    """

    items: list[T]
    unreadable: list[Unreadable]
    version: str


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One object as it is now; of a DELETED, as it last was. `version` is the object's."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T
    version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to `version` has been told, and the cluster was heard just now. The first sign
    of life after a Lost.
    """

    version: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The cluster is not followed at the moment, and was last heard `since`. Told after every
    failed try; it goes on by itself.
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
    page: int = calls.PAGE,
    patience: Patience | None = None,
) -> Iterator[Listing[Object] | Change[Object] | Unreadable | Bookmark | Lost]: ...
@overload
def follow(
    client: Client,
    resource: Resource,
    *,
    stop: threading.Event,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    page: int = calls.PAGE,
    patience: Patience | None = None,
    decoder: Decoder[T],
) -> Iterator[Listing[T] | Change[T] | Unreadable | Bookmark | Lost]: ...
@overload
def follow(
    client: Client,
    resource: Resource,
    *,
    stop: threading.Event,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    page: int = calls.PAGE,
    patience: Patience | None = None,
    decoder: Decoder[T],
    parts: Literal[True],
) -> Iterator[Asking | Part[T] | Listing[T] | Change[T] | Unreadable | Bookmark | Lost]: ...
def follow(
    client: Client,
    resource: Resource,
    *,
    stop: threading.Event,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    page: int = calls.PAGE,
    patience: Patience | None = None,
    decoder: Decoder[Any] = OBJECT,
    parts: bool = False,
) -> Iterator[Any]:
    """A complete Listing, then changes until the server forgets where we are, then a Listing again,
    and so on for ever.

    With `parts` a listing is told page by page, so that it need not be in memory as a whole:
    Asking, then Parts, then Listing, empty.

    Ends within a second of `stop` being set (while a connection is being made: within the client's
    connect timeout). Every failure is told as Lost and tried again, except bad credentials:
    Unauthorized is raised, and a new call with others goes on. An object that `decoder` refuses
    comes as Unreadable. Nothing is read ahead of the caller.
    """
    follower = _Follower(
        client,
        resource,
        namespace,
        labels,
        fields,
        page,
        patience or Patience(),
        stop,
        decoder,
        parts,
    )
    return follower.run()


Item = Asking | Part[Any] | Listing[Any] | Change[Any] | Unreadable | Bookmark | Lost


class _Follower:
    """Where one list-watch is. `_version` is "" when a listing is needed; `_doubt` says to check it
    before watching from it.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespace: str | None,
        labels: str,
        fields: str,
        page: int,
        patience: Patience,
        stop: threading.Event,
        decoder: Decoder[Any],
        parts: bool,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._page = page
        self._patience = patience
        self._stop = stop
        self._decoder = decoder
        self._parts = parts
        self._wire = Wire()
        self._version = ""
        self._doubt = False
        self._failures = 0
        self._spoilt = 0
        self._opened = 0.0
        self._heard = datetime.now(UTC)

    def run(self) -> Iterator[Item]:
        done = threading.Event()
        guard = threading.Thread(
            target=_cut_on,
            args=(self._stop, done, self._wire),
            name=f"guard of {self._resource.plural}",
            daemon=True,
        )
        guard.start()
        try:
            while not self._stop.is_set():
                yield from self._round()
        finally:
            done.set()
            guard.join()

    def _round(self) -> Iterator[Item]:
        """A listing or a watch, and what follows from its failing."""
        try:
            if not self._version:
                yield from self._list()
            elif self._doubt:
                self._check()
            else:
                yield from self._watch()
        except Unauthorized:
            raise
        except KubeError as error:
            if not self._stop.is_set():
                yield from self._failed(error)

    def _list(self) -> Iterator[Item]:
        if self._parts:
            yield Asking()
        items: list[Any] = []
        unreadable: list[Unreadable] = []
        version = ""
        pages = calls.list_all(
            self._client,
            self._resource,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=self._page,
            held=self._wire,
            decoder=self._decoder,
        )
        for page in pages:
            if page.first:
                items, unreadable, version = [], [], page.version
            if self._parts:
                self._live()
                yield Part(page.items, page.unreadable, page.first)
                continue
            items += page.items
            unreadable += page.unreadable
        self._live()
        if not version:
            raise Unavailable("the cluster's list has no version", status=200)
        self._version, self._doubt, self._spoilt = version, False, 0
        yield Listing(items, unreadable, version)

    def _check(self) -> None:
        """After a failure or a long silence: a server that went back in time would let a watch from
        the future wait for ever.
        """
        page = calls.list_page(
            self._client,
            self._resource,
            namespace=self._namespace,
            labels=self._labels,
            limit=1,
            held=self._wire,
            decoder=_raw,
        )
        self._live()
        self._doubt = False
        if _order(page.version) < _order(self._version):
            self._version = ""

    def _watch(self) -> Iterator[Item]:
        query: list[tuple[str, str | int | bool]] = [
            ("watch", True),
            ("allowWatchBookmarks", True),
            ("resourceVersion", self._version),
            ("timeoutSeconds", self._patience.watch),
        ]
        query += [
            (name, value)
            for name, value in (("labelSelector", self._labels), ("fieldSelector", self._fields))
            if value
        ]
        began, told = time.monotonic(), False
        path = self._resource.path(self._namespace)
        with self._client.open(
            path, query=query, silence=self._patience.watch + self._patience.slack, held=self._wire
        ) as stream:
            self._live()
            self._opened = began
            yield Bookmark(self._version)
            for line in frames.lines(stream):
                item = self._told(frames.read_frame(line))
                self._live()
                self._failures = self._spoilt = 0
                told = True
                if item is not None:
                    yield item
                if self._stop.is_set():
                    return
        self._doubt, self._opened = not told, 0.0
        if told or self._stop.is_set():
            return
        if time.monotonic() - began < min(BRIEF, self._patience.watch / 2):
            raise Unavailable("the cluster ended the watch at once", status=200)
        self._failures = 0

    def _told(self, frame: Frame) -> Change[Any] | Unreadable | Bookmark | None:
        kind, version = frame.type, frame.meta.resourceVersion
        # Frames may come out of order: going on from a lower one would only tell again what was
        # told.
        if version and _order(version) >= _order(self._version):
            self._version = version
        if kind == "BOOKMARK":
            return Bookmark(self._version)
        if kind not in ("ADDED", "MODIFIED", "DELETED"):
            return None
        try:
            return Change(kind, self._decoder.decode(frame.object), version)  # type: ignore[arg-type]
        except frames.BAD_JSON as error:
            return frames.unread(kind, frame.meta, error)

    def _failed(self, error: KubeError) -> Iterator[Lost]:
        if self._opened and time.monotonic() - self._opened > self._patience.most:
            # It worked for a while: this is a new trouble, not the last one going on.
            self._failures = 0
        self._failures, self._opened = self._failures + 1, 0.0
        self._doubt = True
        if isinstance(error, Expired):
            self._version = ""
            if self._failures == 1:
                return
        elif error.status not in (0, 429):
            self._spoilt += 1
            if self._spoilt >= SPOILT:
                self._version = ""
        yield Lost(error, self._heard)
        self._stop.wait(wait_after(error, self._failures, self._patience))

    def _live(self) -> None:
        self._heard = datetime.now(UTC)


def wait_after(error: KubeError, failures: int, patience: Patience) -> float:
    """Seconds until the next try after so many failures in a row: never sooner than the server
    asked, and not all clients at once.
    """
    span = min(patience.most, patience.first * 2 ** min(failures - 1, 16))
    jitter = random.uniform(span / 2, span)  # noqa: S311 - nothing secret
    asked = error.retry_after if isinstance(error, Unavailable) else None
    return max(jitter, min(asked, LONGEST) + jitter / 2) if asked else jitter


def _order(version: str) -> int:
    """Versions of one resource and server compare as numbers (64 bits); one that is none is taken
    for older than any.
    """
    return int(version) if version.isascii() and version.isdigit() and len(version) <= 20 else -1


def _cut_on(stop: threading.Event, done: threading.Event, held: Wire) -> None:
    while not done.wait(GUARD):
        if stop.is_set():
            held.cut()
            return

"""watch: changes from the store to everybody who looks on, each encoded once a form and its bytes
shared by all watchers.

The store calls back after each write; a watcher then only gets another reference in its list. Its
own response is woken once for all that has gathered and sends it as one chunk. What a slow client
does not fetch is bounded: it is ended with a 410 and lists again.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from localkube import errors
from localkube.api import negotiation, paging
from localkube.api.exchange import Call, Response
from localkube.api.forms import Form, bare_json, form_of, stored_json
from localkube.api.reading import joined, read_include
from localkube.api.selection import Selection, select
from localkube.errors import ApiError, Cause
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.store import Change, Record, Store

MAX_BACKLOG_BYTES = 16 << 20
MAX_BACKLOG_EVENTS = 20_000
DEFAULT_TIMEOUT = (1_800, 3_600)
"""Seconds, picked at random between the two as a real server does, so that watches do not all
return at once.
"""
MAX_TIMEOUT = 24 * 3_600
BOOKMARK_EVERY = 60.0
BOOKMARK_BEFORE_END = 2.0
"""Seconds before the timeout at which the last bookmark is sent (control-plane facts, item 20)."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

FORMS = (negotiation.TABLE, negotiation.PARTIAL)


class _Frames:
    """One change as bytes, made when somebody first needs them in a form and kept for the
    others.
    """

    def __init__(self, objects: Objects, resource: Resource, change: Change) -> None:
        self.change = change
        self._objects = objects
        self._resource = resource
        self._made: dict[tuple[Form, str, bool], bytes] = {}

    def get(self, form: Form, kind: str, *, columns: bool) -> bytes:
        key = (form, kind, columns and form.has_columns)
        frame = self._made.get(key)
        if frame is None:
            left = kind == "DELETED" and self.change.type != "DELETED"
            raw = (
                self._left()
                if left
                else stored_json(self._objects, self._resource, self.change.record)
            )
            frame = self._made[key] = _frame(kind, form.one(raw, columns=columns))
        return frame

    def _left(self) -> bytes:
        """An object that stopped matching, as it was when it last did, under the version of the
        change (recorded `leaves-selector`).
        """
        assert self.change.previous is not None
        obj = self._objects.decode(self._resource, self.change.previous)
        obj["metadata"]["resourceVersion"] = str(self.change.record.rv)
        return bare_json(obj)


@dataclass(slots=True)
class _Options:
    """The query of a watch. `since` is None for a watch that starts with what is there."""

    since: int | None
    initial: bool
    bookmarks: bool
    announce_end: bool
    timeout: float


class _Watcher:
    """One client's watch: what it still has to send, and when it has to end."""

    def __init__(self, form: Form, selection: Selection, options: _Options) -> None:
        self.form = form
        self.selection = selection
        self.options = options
        self.floor = options.since or 0
        self.wake = asyncio.Event()
        self.behind = False
        self._pending: list[tuple[_Frames, str]] = []
        self._size = 0
        self._columns = True

    def offer(self, frames: _Frames) -> None:
        """Called for each change; queues the event that this watcher's selection makes of it, if
        any.
        """
        if self.behind or frames.change.record.rv <= self.floor:
            return
        kind = self.kind(frames.change)
        if not kind:
            return
        self._pending.append((frames, kind))
        self._size += len(frames.change.record.raw)
        if self._size > MAX_BACKLOG_BYTES or len(self._pending) > MAX_BACKLOG_EVENTS:
            self.behind = True
            self._pending, self._size = [], 0
        self.wake.set()

    def kind(self, change: Change) -> str:
        """The event as this selection sees it: entering it is ADDED, leaving it DELETED; "" for
        none (recorded `leaves-selector`).
        """
        was = change.previous is not None and self.selection.matches(change.previous)
        now = change.type != "DELETED" and self.selection.matches(change.record)
        if now:
            return "MODIFIED" if was else "ADDED"
        return "DELETED" if was else ""

    def encode(self, frames: _Frames, kind: str) -> bytes:
        return frames.get(self.form, kind, columns=self.take_columns())

    def take_columns(self) -> bool:
        """True once: only the first event of a Table watch carries the columns."""
        columns, self._columns = self._columns, False
        return columns

    def take(self) -> bytes:
        """All that is pending, as one chunk."""
        chunk = b"".join([self.encode(frames, kind) for frames, kind in self._pending])
        self._pending, self._size = [], 0
        self.wake.clear()
        return chunk


class _Channel:
    """The watchers of one resource, fed by one subscription that lives as long as there is any."""

    def __init__(self, objects: Objects, resource: Resource) -> None:
        self._objects = objects
        self._resource = resource
        self.watchers: dict[_Watcher, None] = {}
        self._unsubscribe: Callable[[], None] | None = None

    def add(self, watcher: _Watcher) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._objects.subscribe(self._resource, self._tell)
        self.watchers[watcher] = None

    def remove(self, watcher: _Watcher) -> None:
        self.watchers.pop(watcher, None)
        if not self.watchers and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def frames(self, change: Change) -> _Frames:
        return _Frames(self._objects, self._resource, change)

    def _tell(self, change: Change) -> None:
        frames = self.frames(change)
        for watcher in self.watchers:
            watcher.offer(frames)


class Watches:
    """All open watches, of which there may be `bound`."""

    def __init__(self, objects: Objects, bound: int) -> None:
        self._objects = objects
        self._bound = bound
        self._store: Store = objects.store
        self._channels: dict[Resource, _Channel] = {}
        self.open = 0

    async def watch(self, call: Call, resource: Resource, namespace: str | None) -> Response:
        """A stream of events. Raises ApiError: 400, 406, 422, 429 beyond the bound, 504. What is
        too old is told in the stream.
        """
        accepted = negotiation.choose(call.headers.get("accept", ""), FORMS)
        form = form_of(
            resource, negotiation.Accepted(False, accepted.form), read_include(call.query)
        )
        selection = select(resource, namespace, call.query)
        options = _read_options(call)
        if options.announce_end and options.since is not None:
            await paging.reach(self._store, options.since)
        if self.open >= self._bound:
            raise errors.too_many_requests(
                f"{self._bound} watches are open, and no more can be: try again when some have "
                "ended"
            )
        watcher = _Watcher(form, selection, options)
        channel = self._channels.setdefault(resource, _Channel(self._objects, resource))
        try:
            history = self._history(resource, watcher, channel)
        except ApiError as refusal:
            return Response(stream=_refused(refusal), live=True)
        channel.add(watcher)
        self.open += 1

        def release() -> None:
            self.open -= 1
            channel.remove(watcher)

        return Response(stream=self._stream(watcher, history), live=True, release=release)

    def _history(self, resource: Resource, watcher: _Watcher, channel: _Channel) -> Iterator[bytes]:
        """The events before the live ones; what they are made of is fixed now, their encoding waits
        until they are sent.
        """
        key = (resource.storage or resource).key
        options = watcher.options
        if options.initial:
            records = self._store.list(key, watcher.selection.namespace)
            return self._existing(resource, watcher, records, self._store.rv)
        if options.since is None or options.since >= self._store.rv:
            return iter(())
        changes = self._store.since(key, options.since)
        return (
            watcher.encode(channel.frames(change), kind)
            for change in changes
            if (kind := watcher.kind(change))
        )

    def _existing(
        self, resource: Resource, watcher: _Watcher, records: Sequence[Record], version: int
    ) -> Iterator[bytes]:
        for record in watcher.selection.filter(records):
            raw = stored_json(self._objects, resource, record)
            yield _frame("ADDED", watcher.form.one(raw, columns=watcher.take_columns()))
        if watcher.options.announce_end and watcher.options.bookmarks:
            yield _bookmark(watcher.form, version, {INITIAL_EVENTS_END: "true"})

    async def _stream(
        self, watcher: _Watcher, history: Iterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + watcher.options.timeout
        async for chunk in joined(history):
            yield chunk
        bookmarks = _Bookmarks(loop.time(), end) if watcher.options.bookmarks else None
        alarm = _Alarm(watcher.wake)
        try:
            while not watcher.behind:
                now = loop.time()
                if now >= end:
                    return
                chunk = watcher.take()
                if bookmarks and bookmarks.are_due(now) and self._store.rv >= watcher.floor:
                    chunk += _bookmark(watcher.form, self._store.rv)
                    bookmarks.sent(now)
                if chunk:
                    yield chunk
                    continue
                alarm.set(
                    min(end, bookmarks.next) if bookmarks and not bookmarks.are_due(now) else end
                )
                await watcher.wake.wait()
        finally:
            alarm.cancel()
        yield _error(errors.expired("the watch fell too far behind and was ended: list again"))


class _Bookmarks:
    """When bookmarks are sent: each minute, and once shortly before the end."""

    def __init__(self, now: float, end: float) -> None:
        self._end = end
        self._last = end - min(BOOKMARK_BEFORE_END, (end - now) / 4)
        self.next = min(now + BOOKMARK_EVERY, self._last)

    def are_due(self, now: float) -> bool:
        return now >= self.next

    def sent(self, now: float) -> None:
        self.next = min(now + BOOKMARK_EVERY, self._last) if now < self._last else self._end


class _Alarm:
    """Sets an event at a moment; one timer serves all waits until the same moment, however often
    they are interrupted.
    """

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event
        self._at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float) -> None:
        if at != self._at:
            self.cancel()
            self._at = at
            self._timer = asyncio.get_running_loop().call_at(at, self._ring)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        """A timer may ring a little early: the same moment can then be waited for again."""
        self._at = 0.0
        self._event.set()


async def _refused(refusal: ApiError) -> AsyncGenerator[bytes, None]:
    """A watch that cannot start says so in its first and only event, with HTTP 200 (recorded
    `errors/410-watch-too-old`).
    """
    yield _error(refusal)


def _read_options(call: Call) -> _Options:
    query = call.query
    version = paging.read_version(query.text("resourceVersion"))
    announce = "sendInitialEvents" in query
    _check_match(query.text("resourceVersionMatch"), query.text("continue"), announce)
    wanted = query.flag("sendInitialEvents") if announce else not version
    seconds = query.whole("timeoutSeconds")
    timeout = (
        random.uniform(*DEFAULT_TIMEOUT)  # noqa: S311 - spreads load
        if not seconds or seconds < 0
        else min(seconds, MAX_TIMEOUT)
    )
    return _Options(
        since=version or None,
        initial=wanted,
        bookmarks=query.flag("allowWatchBookmarks"),
        announce_end=announce and wanted,
        timeout=float(timeout),
    )


def _check_match(match: str, token: str, announce: bool) -> None:
    """The rules of apimachinery `validateWatchOptions`."""
    field = "resourceVersionMatch"
    causes: list[Cause] = []
    if announce and match != "NotOlderThan":
        causes.append(
            errors.frozen(
                field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
        )
    if match and not announce:
        causes.append(
            errors.frozen(
                field,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    if match not in ("", "NotOlderThan"):
        causes.append(errors.unsupported(field, match, ("NotOlderThan",)))
    if match and token:
        causes.append(
            errors.frozen(field, "resourceVersionMatch is forbidden when continue is provided")
        )
    paging.refuse_options(causes)


def _frame(kind: str, obj: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}\n"


def _bookmark(form: Form, version: int, annotations: dict[str, str] | None = None) -> bytes:
    metadata = {"annotations": annotations} if annotations else {}
    return _frame("BOOKMARK", form.bookmark({**metadata, "resourceVersion": str(version)}))


def _error(refusal: ApiError) -> bytes:
    return _frame("ERROR", msgspec.json.encode(refusal.status()))

"""The verb watch: changes from the store to all watchers, each encoded once per representation.

The store calls back after each write; a watcher then only gets another reference in its list. Its
own response is woken once for all that has gathered and sends it as one chunk. What a slow client
does not fetch is bounded: it is ended with a 410 and lists again.
"""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from localkube import errors
from localkube.api import negotiation, paging
from localkube.api.http_messages import ApiCall, Response
from localkube.api.reading import CHUNK_BYTES, CHUNK_ITEMS, join_chunks, parse_include
from localkube.api.representations import (
    Representation,
    choose_representation,
    encode_bare_object,
    encode_record,
)
from localkube.api.selection import Selection, parse_selection
from localkube.errors import ApiError, Cause
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.store import Change, Record, Store

MAX_BACKLOG_BYTES = 16 << 20
MAX_BACKLOG_EVENTS = 20_000
DEFAULT_TIMEOUT_SECONDS = (1_800, 3_600)
"""The bounds of a watch's default timeout, in seconds.

It is picked at random as a real server does, so that watches do not all return at once.
"""
MAX_TIMEOUT_SECONDS = 24 * 3_600
BOOKMARK_INTERVAL = 60.0
BOOKMARK_BEFORE_END = 2.0
"""Seconds before the timeout at which the last bookmark is sent (control-plane facts, item 20)."""
END_GRACE_SECONDS = 1.0
"""How long after its timeout a watch may still be sending before its connection is cut."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

WATCH_FORMS = (*negotiation.TABLES, *negotiation.PARTIALS)


class _ChangeFrames:
    """One change as bytes.

    Each form is encoded when it is first needed, and kept for other watchers.
    """

    def __init__(self, objects: Objects, resource: Resource, change: Change) -> None:
        self.change = change
        self._objects = objects
        self._resource = resource
        self._frames: dict[tuple[Representation, str, bool], bytes] = {}

    def get_frame(self, form: Representation, event_type: str, *, with_columns: bool) -> bytes:
        key = (form, event_type, with_columns and form.has_columns)
        frame = self._frames.get(key)
        if frame is None:
            if event_type == "DELETED" and self.change.type != "DELETED":
                raw = self._encode_last_match()
            else:
                raw = encode_record(self._objects, self._resource, self.change.record)
            frame = self._frames[key] = _encode_frame(
                event_type, form.encode_object(raw, with_columns=with_columns)
            )
        return frame

    def _encode_last_match(self) -> bytes:
        """Encode an object that stopped matching, as it was when it last matched.

        It has the version of the change (recorded `leaves-selector`).
        """
        assert self.change.previous is not None
        obj = self._objects.decode_record(self._resource, self.change.previous)
        obj["metadata"]["resourceVersion"] = str(self.change.record.rv)
        return encode_bare_object(obj)


@dataclass(slots=True)
class _WatchOptions:
    """The query of a watch. `since` is None for a watch that starts with the current objects."""

    since: int | None
    sends_initial_events: bool
    sends_bookmarks: bool
    announces_end: bool
    timeout: float


class _Watcher:
    """One client's watch: the events still to be sent, and when it ends."""

    def __init__(self, form: Representation, selection: Selection, options: _WatchOptions) -> None:
        self.form = form
        self.selection = selection
        self.options = options
        self.start_version = options.since or 0
        self.wake = asyncio.Event()
        self.is_behind = False
        self._pending: deque[tuple[_ChangeFrames, str]] = deque()
        self._pending_bytes = 0
        self._columns_due = True

    def offer_change(self, frames: _ChangeFrames) -> None:
        """Queue the event that this watcher's selection makes of a change, if any."""
        if self.is_behind or frames.change.record.rv <= self.start_version:
            return
        kind = self.classify_change(frames.change)
        if not kind:
            return
        self._pending.append((frames, kind))
        self._pending_bytes += len(frames.change.record.raw)
        # The backlog is dropped at once: the client lists again, and the memory is free until then.
        if self._pending_bytes > MAX_BACKLOG_BYTES or len(self._pending) > MAX_BACKLOG_EVENTS:
            self.is_behind = True
            self._pending.clear()
            self._pending_bytes = 0
        self.wake.set()

    def classify_change(self, change: Change) -> str:
        """Return the event type of a change for this selection, or "" for none.

        An object that enters the selection is ADDED, one that leaves it DELETED (recorded
        `leaves-selector`).
        """
        did_match = change.previous is not None and self.selection.matches(change.previous)
        does_match = change.type != "DELETED" and self.selection.matches(change.record)
        if does_match:
            return "MODIFIED" if did_match else "ADDED"
        return "DELETED" if did_match else ""

    def encode_event(self, frames: _ChangeFrames, event_type: str) -> bytes:
        return frames.get_frame(self.form, event_type, with_columns=self.take_columns())

    def take_columns(self) -> bool:
        """Return True once: only the first event of a Table watch carries the columns."""
        columns, self._columns_due = self._columns_due, False
        return columns

    def take_pending(self) -> bytes:
        """Return the next pending events as one chunk of a bounded size; clear `wake`.

        Watchers share the events of their backlogs, but each has a chunk of its own.
        """
        encoded: list[bytes] = []
        size = 0
        while self._pending and len(encoded) < CHUNK_ITEMS and size < CHUNK_BYTES:
            frames, kind = self._pending.popleft()
            self._pending_bytes -= len(frames.change.record.raw)
            encoded.append(self.encode_event(frames, kind))
            size += len(encoded[-1])
        self.wake.clear()
        return b"".join(encoded)


class _WatchChannel:
    """The watchers of one resource.

    One subscription feeds them; it lives as long as there is any watcher.
    """

    def __init__(self, objects: Objects, resource: Resource) -> None:
        self._objects = objects
        self._resource = resource
        self.watchers: dict[_Watcher, None] = {}
        self._unsubscribe: Callable[[], None] | None = None

    def add(self, watcher: _Watcher) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._objects.subscribe(self._resource, self._notify_watchers)
        self.watchers[watcher] = None

    def remove(self, watcher: _Watcher) -> None:
        self.watchers.pop(watcher, None)
        if not self.watchers and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def build_frames(self, change: Change) -> _ChangeFrames:
        return _ChangeFrames(self._objects, self._resource, change)

    def _notify_watchers(self, change: Change) -> None:
        frames = self.build_frames(change)
        for watcher in self.watchers:
            watcher.offer_change(frames)


class WatchHandler:
    """Answers watches; `max_watches` of them may be open at once."""

    def __init__(self, objects: Objects, max_watches: int) -> None:
        self._objects = objects
        self._max_watches = max_watches
        self._store: Store = objects.store
        self._channels: dict[Resource, _WatchChannel] = {}
        self.open_count = 0

    async def watch(self, call: ApiCall, resource: Resource, namespace: str | None) -> Response:
        """Answer with a stream of events.

        Raises ApiError: 400, 406, 422, 429 beyond the bound, 504. A version that is too old is
        reported in the stream.
        """
        accepted = negotiation.choose_media(call.headers.get("accept", ""), WATCH_FORMS)
        form = choose_representation(
            resource, negotiation.AcceptedMedia(False, accepted.form), parse_include(call.query)
        )
        selection = parse_selection(resource, namespace, call.query)
        options = _parse_watch_options(call)
        if options.announces_end and options.since is not None:
            await paging.wait_for_version(self._store, options.since)
        if self.open_count >= self._max_watches:
            raise errors.too_many_requests_error(
                f"{self._max_watches} watches are open, and no more can be: try again when some "
                "have ended"
            )
        watcher = _Watcher(form, selection, options)
        channel = self._channels.setdefault(resource, _WatchChannel(self._objects, resource))
        # No await from here to `add`: a change in between would be in neither history nor channel.
        try:
            history = self._prepare_history(resource, watcher, channel)
        except ApiError as refusal:
            return Response(stream=_stream_refusal(refusal), live=True)
        channel.add(watcher)
        self.open_count += 1

        def release() -> None:
            self.open_count -= 1
            channel.remove(watcher)

        return Response(
            stream=self._stream_events(watcher, history),
            live=True,
            max_seconds=options.timeout + END_GRACE_SECONDS,
            release=release,
        )

    def _prepare_history(
        self, resource: Resource, watcher: _Watcher, channel: _WatchChannel
    ) -> Iterator[bytes]:
        """Return the events before the live ones.

        Their records are fixed now; they are encoded when they are sent.
        """
        key = (resource.storage or resource).key
        options = watcher.options
        if options.sends_initial_events:
            records = self._store.list(key, watcher.selection.namespace)
            return self._encode_existing(resource, watcher, records, self._store.rv)
        if options.since is None or options.since >= self._store.rv:
            return iter(())
        changes = self._store.list_changes_since(key, options.since)
        return (
            watcher.encode_event(channel.build_frames(change), kind)
            for change in changes
            if (kind := watcher.classify_change(change))
        )

    def _encode_existing(
        self, resource: Resource, watcher: _Watcher, records: Sequence[Record], version: int
    ) -> Iterator[bytes]:
        for record in watcher.selection.filter_records(records):
            raw = encode_record(self._objects, resource, record)
            yield _encode_frame(
                "ADDED", watcher.form.encode_object(raw, with_columns=watcher.take_columns())
            )
        if watcher.options.announces_end and watcher.options.sends_bookmarks:
            yield _encode_bookmark(watcher.form, version, {INITIAL_EVENTS_END: "true"})

    async def _stream_events(
        self, watcher: _Watcher, history: Iterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + watcher.options.timeout
        async with contextlib.aclosing(join_chunks(history)) as chunks:
            async for chunk in chunks:
                yield chunk
                if loop.time() >= end:
                    return
        bookmarks = _BookmarkSchedule(loop.time(), end) if watcher.options.sends_bookmarks else None
        alarm = _Alarm(watcher.wake)
        try:
            while not watcher.is_behind:
                now = loop.time()
                if now >= end:
                    return
                # This clears `wake`; no await until it is waited for, so no change is missed.
                chunk = watcher.take_pending()
                # A watch may start at a future version; a bookmark must not go back behind it.
                if bookmarks and bookmarks.are_due(now) and self._store.rv >= watcher.start_version:
                    chunk += _encode_bookmark(watcher.form, self._store.rv)
                    bookmarks.schedule_next(now)
                if chunk:
                    yield chunk
                    # A watcher with much to send must not keep the others from theirs.
                    await asyncio.sleep(0)
                    continue
                if bookmarks and not bookmarks.are_due(now):
                    alarm.schedule(min(end, bookmarks.next_time))
                else:
                    alarm.schedule(end)
                await watcher.wake.wait()
        finally:
            alarm.cancel()
        yield _encode_error(
            errors.expired_error("the watch fell too far behind and was ended: list again")
        )


class _BookmarkSchedule:
    """The times of bookmarks: each minute, and once shortly before the end."""

    def __init__(self, now: float, end: float) -> None:
        self._end = end
        self._last_time = end - min(BOOKMARK_BEFORE_END, (end - now) / 4)
        self.next_time = min(now + BOOKMARK_INTERVAL, self._last_time)

    def are_due(self, now: float) -> bool:
        return now >= self.next_time

    def schedule_next(self, now: float) -> None:
        self.next_time = (
            min(now + BOOKMARK_INTERVAL, self._last_time) if now < self._last_time else self._end
        )


class _Alarm:
    """Sets an event at a moment.

    One timer serves all waits until the same moment, however often they are interrupted.
    """

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event
        self._moment = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def schedule(self, moment: float) -> None:
        if moment != self._moment:
            self.cancel()
            self._moment = moment
            self._timer = asyncio.get_running_loop().call_at(moment, self._set_event)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set_event(self) -> None:
        """Set the event. A timer may fire a little early: the same moment can then be waited for
        again.
        """
        self._moment = 0.0
        self._event.set()


async def _stream_refusal(refusal: ApiError) -> AsyncGenerator[bytes, None]:
    """Stream the error of a watch that cannot start, as its first and only event.

    The code is HTTP 200 (recorded `errors/410-watch-too-old`).
    """
    yield _encode_error(refusal)


def _parse_watch_options(call: ApiCall) -> _WatchOptions:
    query = call.query
    version = paging.parse_version(query.text("resourceVersion"))
    has_announce = "sendInitialEvents" in query
    _check_match(query.text("resourceVersionMatch"), query.text("continue"), has_announce)
    sends_initial = query.flag("sendInitialEvents") if has_announce else not version
    seconds = query.integer("timeoutSeconds")
    if not seconds or seconds < 0:
        timeout = random.uniform(*DEFAULT_TIMEOUT_SECONDS)  # noqa: S311 - spreads load
    else:
        timeout = float(min(seconds, MAX_TIMEOUT_SECONDS))
    return _WatchOptions(
        since=version or None,
        sends_initial_events=sends_initial,
        sends_bookmarks=query.flag("allowWatchBookmarks"),
        announces_end=has_announce and sends_initial,
        timeout=timeout,
    )


def _check_match(match: str, token: str, announces_end: bool) -> None:
    """Check the rules of apimachinery `validateWatchOptions`. Raises ApiError 422."""
    field = "resourceVersionMatch"
    causes: list[Cause] = []
    if announces_end and match != "NotOlderThan":
        causes.append(
            errors.forbidden_cause(
                field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
        )
    if match and not announces_end:
        causes.append(
            errors.forbidden_cause(
                field,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    if match not in ("", "NotOlderThan"):
        causes.append(errors.unsupported_cause(field, match, ("NotOlderThan",)))
    if match and token:
        causes.append(
            errors.forbidden_cause(
                field, "resourceVersionMatch is forbidden when continue is provided"
            )
        )
    paging.check_options(causes)


def _encode_frame(event_type: str, obj: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + obj + b"}\n"


def _encode_bookmark(
    form: Representation, version: int, annotations: dict[str, str] | None = None
) -> bytes:
    metadata = {"annotations": annotations} if annotations else {}
    return _encode_frame(
        "BOOKMARK", form.encode_bookmark({**metadata, "resourceVersion": str(version)})
    )


def _encode_error(refusal: ApiError) -> bytes:
    return _encode_frame("ERROR", msgspec.json.encode(refusal.status()))

"""Streams of server-sent events. Viewers of the same things share one feed.

A feed queries once for each wake-up, and hands out bytes.
"""

import asyncio
import contextvars
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import DatabaseError, close_old_connections
from django.http import StreamingHttpResponse

from console.wake_ups import hub

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0
"""Seconds after which a feed queries without a wake-up, which may be lost."""
PAUSE_SECONDS = 0.1
"""Minimum seconds between two queries; wake-ups that come meanwhile count as one."""
HEARTBEAT_SECONDS = 15.0
"""Seconds of silence after which a comment is sent.

No proxy then takes the stream for dead.
"""
RECHECK_SECONDS = 30.0
"""Seconds between two checks whether somebody is still signed in and may still see this."""
MAX_WAITING_MESSAGES = 50
"""Messages that may wait for a slow reader.

One that is further behind is disconnected, and catches up when it comes back.
"""
MAX_STREAMS_PER_PERSON = 20
MAX_STREAMS_PER_PROCESS = 2000
"""Streams open at once."""

# Feeds read the database here: a request's own thread ends with the request, and a feed outlives
# the one that began it.
_readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="feed")
# Who may still look is asked here: pages opened together all ask at once, and no news may wait
# behind them.
_access_checkers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="asker")

Answer = TypeVar("Answer")


async def run_in_reader(
    function: Callable[..., Answer], *arguments: Any, threads: ThreadPoolExecutor = _readers
) -> Answer:
    """Return the result of a function that reads the database, called in a pool's thread.

    The thread keeps no connection.
    """

    def call() -> Answer:
        try:
            return function(*arguments)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(threads, call)


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """The news up to a position; `data` is "" when there are none.

    `event` is what the page's script listens for.
    """

    position: int
    data: str = ""
    event: str = "rows"

    @property
    def encoded(self) -> bytes:
        """The message in the format of server-sent events."""
        return f"id: {self.position}\nevent: {self.event}\ndata: {self.data}\n\n".encode()


LoadMessage = Callable[[int], StreamMessage]


class Feed:
    """Queries whenever one of its projects was woken, and sends the result to all its readers.

    The message is encoded only once.
    """

    def __init__(self, projects: frozenset[int] | None, load_message: LoadMessage) -> None:
        self.projects = projects
        self.load_message = load_message
        self.readers: set[asyncio.Queue[tuple[int, bytes]]] = set()
        self.position = 0
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        async with hub.open_listener(self.projects) as listener:
            while True:
                await listener.wait_for_wake_up(LOOK_SECONDS)
                try:
                    message = await run_in_reader(self.load_message, self.position)
                except DatabaseError as error:
                    log.warning("a feed could not look: %s", error)
                    await asyncio.sleep(1)
                    continue
                self.position = message.position
                if message.data:
                    self._hand_out((message.position, message.encoded))
                await asyncio.sleep(PAUSE_SECONDS)

    def _hand_out(self, message: tuple[int, bytes]) -> None:
        for reader in list(self.readers):
            if reader.full():
                self.readers.discard(reader)
            else:
                reader.put_nowait(message)


class Feeds:
    """The feeds of this process by their key, and each person's open streams."""

    def __init__(self) -> None:
        self._feeds: dict[Hashable, Feed] = {}
        self._open: Counter[int] = Counter()

    def is_full(self, user_id: int) -> bool:
        """Return whether this person, or this process, has as many streams open as allowed."""
        return (
            self._open[user_id] >= MAX_STREAMS_PER_PERSON
            or self._open.total() >= MAX_STREAMS_PER_PROCESS
        )

    async def stream(
        self,
        key: Hashable,
        projects: frozenset[int] | None,
        load_message: LoadMessage,
        after: int,
        user_id: int,
        is_allowed: Callable[[], bool],
    ) -> AsyncIterator[bytes]:
        """Yield what happens after a position, without end.

        Ends with the event "end" once `is_allowed` is false, and silently when the reader is too
        slow, or when as many streams have begun meanwhile as are allowed.
        """
        if self.is_full(user_id):
            return
        with (
            self._count_stream(user_id),
            self._join_feed(key, projects, load_message, after) as (feed, queue),
        ):
            yield b"retry: 2000\n\n"
            first_message = await run_in_reader(load_message, after)
            position = first_message.position
            if first_message.data:
                yield first_message.encoded
            clock = asyncio.get_running_loop()
            sent_at = checked_at = clock.time()
            while not feed.task.done() and (queue in feed.readers or not queue.empty()):
                now = clock.time()
                if now - checked_at >= RECHECK_SECONDS:
                    if not await run_in_reader(is_allowed, threads=_access_checkers):
                        yield b"event: end\ndata: {}\n\n"
                        return
                    checked_at = now
                if now - sent_at >= HEARTBEAT_SECONDS:
                    yield b": here\n\n"
                    sent_at = now
                try:
                    async with asyncio.timeout(
                        max(
                            0.05,
                            min(sent_at + HEARTBEAT_SECONDS, checked_at + RECHECK_SECONDS) - now,
                        )
                    ):
                        at, encoded = await queue.get()
                except TimeoutError:
                    continue
                # What was told when the stream began may lie in the queue once more, and older.
                if at > position:
                    position, sent_at = at, clock.time()
                    yield encoded

    @contextmanager
    def _count_stream(self, user_id: int) -> Any:
        self._open[user_id] += 1
        try:
            yield
        finally:
            self._open[user_id] -= 1
            if not self._open[user_id]:
                del self._open[user_id]

    @contextmanager
    def _join_feed(
        self, key: Hashable, projects: frozenset[int] | None, load_message: LoadMessage, after: int
    ) -> Any:
        queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(MAX_WAITING_MESSAGES)
        feed = self._feeds.get(key)
        if feed is None or feed.task is None or feed.task.done():
            feed = self._feeds[key] = Feed(projects, load_message)
            feed.position = after
            # Nothing of the request that begins it may cling to a feed.
            feed.task = asyncio.get_running_loop().create_task(
                feed.run(), context=contextvars.Context()
            )
        feed.readers.add(queue)
        try:
            yield feed, queue
        finally:
            feed.readers.discard(queue)
            if not feed.readers:
                if self._feeds.get(key) is feed:
                    del self._feeds[key]
                feed.task.cancel()


feeds = Feeds()


def build_stream_response(messages: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Return a response of server-sent events that no proxy may cache or buffer."""
    answer = StreamingHttpResponse(messages, content_type="text/event-stream")
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer

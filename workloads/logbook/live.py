"""Logs that grow while somebody looks: one poller for each attempt and process looks at rows and
files for all its viewers.
"""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack

from asgiref.sync import sync_to_async
from django.db import connections

from console.streams import Streams
from workloads.logbook import places, standing, texts, windows
from workloads.logbook.framing import forward
from workloads.logbook.reading import opened
from workloads.logbook.standing import Standing
from workloads.logbook.windows import Cursor, Window
from workloads.models import Log, Workload

LOOK_EVERY = 0.2
ASK_EVERY = 2.0
"""Seconds between two looks at the files, and at the rows."""

streams = Streams(20)
"""Logs that one person follows, on pages and through the API."""


Key = tuple[uuid.UUID, int]
"""A workload and the number of an attempt."""


class Feed:
    """One attempt's logs. `version` grows with every change; `sizes` are those of the files now, by
    the log's id.

    `standing` is None once there is no such workload.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._changed = asyncio.Event()
        self.viewers = 0
        self.version = 0
        self.logs: Sequence[Log] = ()
        self.sizes: dict[int, int] = {}
        self.standing: Standing | None = None
        self.task: asyncio.Task[None] | None = None

    async def ask(self) -> None:
        """Read the rows anew."""
        self.standing, self.logs = await sync_to_async(_rows, thread_sensitive=False)(*self._key)
        self.look()
        self._tell()

    def look(self) -> bool:
        """Whether a file has grown since the last look."""
        sizes = {log.pk: _size(log) for log in self.logs}
        grown, self.sizes = sizes != self.sizes, sizes
        return grown

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        asked = clock()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if clock() - asked > ASK_EVERY:
                await self.ask()
                asked = clock()
            elif self.look():
                self._tell()

    async def news(self, version: int, within: float) -> bool:
        """Whether there is something newer than `version`, now or within so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.version == version and not self.broken:
                    await self._changed.wait()
        return self.version != version

    @property
    def broken(self) -> bool:
        """Whether nobody looks any more: the database did not answer. Whoever watches begins
        anew.
        """
        return self.task is not None and self.task.done()

    def _tell(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()


_feeds: dict[Key, Feed] = {}


@contextlib.asynccontextmanager
async def watching(workload: uuid.UUID, attempt: int) -> AsyncIterator[Feed]:
    """The attempt's feed, shared by all who watch it in this process."""
    key = (workload, attempt)
    feed = _feeds.get(key)
    if feed is None or feed.broken:
        feed = _feeds[key] = Feed(key)
    feed.viewers += 1
    try:
        if feed.task is None:
            await feed.ask()
            feed.task = feed.task or asyncio.create_task(feed.run())
        yield feed
    finally:
        feed.viewers -= 1
        if not feed.viewers:
            if feed.task is not None:
                feed.task.cancel()
            if _feeds.get(key) is feed:
                del _feeds[key]


def window(logs: Iterable[Log], cursor: Cursor, sizes: dict[int, int]) -> Window:
    """What of these logs comes after the cursor; those that have not grown are not opened."""
    with ExitStack() as stack:
        grown = [
            stack.enter_context(opened(log))
            for log in logs
            if sizes.get(log.pk, 1) > cursor.get(log.pk, 0)
        ]
        found = windows.after(grown, cursor)
    return Window(found.lines, cursor, dict(cursor) | found.end, found.at_start, found.at_end)


async def follow(
    log: Log, *, tail: int | None = None, since: int | None = None, timestamps: bool = False
) -> AsyncIterator[bytes]:
    """A log's lines, each with its newline, those there are and those that come, until the run has
    ended. In bounded chunks.
    """
    at = await sync_to_async(_begin, thread_sensitive=False)(log, tail, since)
    async with watching(log.pod.workload_id, log.pod.attempt) as feed:
        while True:
            version = feed.version
            row = next((each for each in feed.logs if each.pk == log.pk), None)
            data, at = await sync_to_async(_chunk, thread_sensitive=False)(log, at, timestamps)
            if data:
                yield data
            elif row is None or row.state != Log.State.CAPTURING:
                return
            else:
                await feed.news(version, ASK_EVERY)


def _begin(log: Log, tail: int | None, since: int | None) -> int:
    with opened(log) as here:
        return texts.begin(here, tail, since)


def _chunk(log: Log, at: int, timestamps: bool) -> tuple[bytes, int]:
    held: list[bytes] = []
    count = 0
    with opened(log) as here:
        for offset, line in forward(here.source, at):
            held.append(texts.text(line, timestamps))
            at = offset + len(line) + 1
            count += len(line)
            if count >= texts.CHUNK:
                break
    return b"".join(held), at


def _rows(key: uuid.UUID, attempt: int) -> tuple[Standing | None, list[Log]]:
    """How the attempt stands, and after that its logs: what is settled is all among them."""
    # A thread of the loop's pool: nobody else gives its connection back.
    try:
        workload = Workload.objects.only(*standing.SHOWN).filter(pk=key).first()
        now = None if workload is None else standing.of(workload, attempt)
        logs = (
            Log.objects.filter(pod__workload=key, pod__attempt=attempt)
            .select_related("pod")
            .defer("pod__data")
        )
        return now, list(logs.order_by("pod__rank", "pod_id", "id")[: windows.MOST_LOGS * 4])
    finally:
        connections.close_all()


def _size(log: Log) -> int:
    if not log.path or log.state == Log.State.REMOVED:
        return 0
    try:
        return os.stat(places.local(log.path)).st_size
    except OSError:
        return log.size

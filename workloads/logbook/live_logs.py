"""Logs that grow while somebody looks: one poller for each attempt and process.

It checks rows and files for all its viewers.
"""

import asyncio
import contextlib
import os
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.db import connections

from console.streams import StreamCounter
from workloads.logbook import attempt_state, log_paths, plain_text, windows
from workloads.logbook.attempt_state import AttemptState
from workloads.logbook.line_reading import read_forward
from workloads.logbook.log_files import open_log, open_logs
from workloads.logbook.windows import Cursor, Window
from workloads.models import Log, Workload

CHECK_SECONDS = 0.2
RELOAD_SECONDS = 2.0
"""Seconds between two checks of the files, and two loads of the rows."""
BROKEN_SECONDS = 1.0
"""Seconds after which a poller is begun anew that the database did not answer."""

streams = StreamCounter(20)
"""Logs that one person follows, on pages and through the API."""


Key = tuple[uuid.UUID, int]
"""A workload and the number of an attempt."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a viewer reads of an attempt.

    It is one log, whose pod is `pod`, or as many as are merged from a place in the order of ranks
    on.
    """

    log: int | None = None
    pod: int | None = None
    first: int = 0


class LogFeed:
    """One attempt's logs, as far as somebody reads them. `version` grows with every change.

    `logs` are by what was selected, `sizes` those of the files now, by the log's id. `state` is
    None once the workload no longer exists.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._changed = asyncio.Event()
        self.viewers: Counter[Selection] = Counter()
        self.version = 0
        self.logs: Mapping[Selection, Sequence[Log]] = {}
        self.sizes: dict[int, int] = {}
        self.state: AttemptState | None = None
        self.task: asyncio.Task[None] | None = None

    async def load_rows(self) -> None:
        """Load the rows anew."""
        self.state, self.logs = await sync_to_async(_load_rows, thread_sensitive=False)(
            *self._key, list(self.viewers)
        )
        self.check_files()
        self._notify_viewers()

    def check_files(self) -> bool:
        """Return whether a file has grown since the last check."""
        logs = {log.pk: log for selected in self.logs.values() for log in selected}
        sizes = {key: _find_file_size(log) for key, log in logs.items()}
        has_grown, self.sizes = sizes != self.sizes, sizes
        return has_grown

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        loaded_at = clock()
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if clock() - loaded_at > RELOAD_SECONDS:
                await self.load_rows()
                loaded_at = clock()
            elif self.check_files():
                self._notify_viewers()

    async def wait_for_change(self, version: int, timeout: float) -> bool:
        """Return whether there is news since `version`, waiting at most `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.version == version and not self.is_broken:
                    await self._changed.wait()
        return self.version != version

    @property
    def is_broken(self) -> bool:
        """Whether the poller has ended because the database did not answer; viewers begin anew."""
        return self.task is not None and self.task.done()

    def _notify_viewers(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()


_feeds: dict[Key, LogFeed] = {}


@contextlib.asynccontextmanager
async def watch_attempt(
    workload: uuid.UUID, attempt: int, selection: Selection
) -> AsyncIterator[LogFeed]:
    """Return the attempt's feed, shared by all who watch it in this process.

    It has the selected logs among its own.
    """
    key = (workload, attempt)
    feed = _feeds.get(key)
    if feed is None or feed.is_broken:
        feed = _feeds[key] = LogFeed(key)
    feed.viewers[selection] += 1
    try:
        if feed.task is None or selection not in feed.logs:
            # Others may have joined during the await: only the first task is kept.
            await feed.load_rows()
            feed.task = feed.task or asyncio.create_task(feed.run())
        yield feed
    finally:
        feed.viewers -= Counter((selection,))
        if not feed.viewers:
            if feed.task is not None:
                feed.task.cancel()
            if _feeds.get(key) is feed:
                del _feeds[key]


def read_window(logs: Iterable[Log], cursor: Cursor, sizes: dict[int, int]) -> Window:
    """Return the lines of these logs after the cursor. Logs that have not grown are not opened."""
    with open_logs(log for log in logs if sizes.get(log.pk, 1) > cursor.get(log.pk, 0)) as grown:
        news = windows.window_after(grown, cursor)
    return Window(news.lines, cursor, dict(cursor) | news.end, news.at_start, news.at_end)


async def follow_log(
    log: Log, *, tail: int | None = None, since: int | None = None, timestamps: bool = False
) -> AsyncIterator[bytes]:
    """Yield a log's lines, present and coming, in bounded chunks until the run has ended.

    Each line has its newline. While nothing comes, an empty chunk is yielded now and then.
    """
    at = await sync_to_async(_find_start, thread_sensitive=False)(log, tail, since)
    selection = Selection(log.pk, log.pod_id)
    while True:
        async with watch_attempt(log.pod.workload_id, log.pod.attempt, selection) as feed:
            while not feed.is_broken:
                version = feed.version
                row = next(iter(feed.logs.get(selection, ())), None)
                # The row of now: an ended log may have gone to the object store meanwhile.
                data, at = await sync_to_async(_read_chunk, thread_sensitive=False)(
                    row or log, at, timestamps
                )
                if data:
                    yield data
                elif row is None or row.state != Log.State.CAPTURING:
                    return
                else:
                    await feed.wait_for_change(version, RELOAD_SECONDS)
                    yield b""
        # The database did not answer: another poller goes on from here.
        await asyncio.sleep(BROKEN_SECONDS)


def _find_start(log: Log, tail: int | None, since: int | None) -> int:
    with open_log(log) as log_file:
        return plain_text.find_start(log_file, tail, since)


def _read_chunk(log: Log, at: int, timestamps: bool) -> tuple[bytes, int]:
    pending: list[bytes] = []
    count = 0
    with open_log(log) as log_file:
        for offset, line in read_forward(log_file.source, at):
            pending.append(plain_text.format_line(line, timestamps))
            at = offset + len(line) + 1
            count += len(line)
            if count >= plain_text.CHUNK_SIZE:
                break
    return b"".join(pending), at


def _load_rows(
    key: uuid.UUID, attempt: int, selections: Collection[Selection]
) -> tuple[AttemptState | None, Mapping[Selection, Sequence[Log]]]:
    """Load the state of the attempt, and after that the selected logs.

    In this order, so that the logs of a settled attempt are complete.
    """
    # A thread of the loop's pool: nobody else gives its connection back.
    try:
        workload = Workload.objects.only(*attempt_state.WORKLOAD_FIELDS).filter(pk=key).first()
        pods = {each.pod for each in selections if each.pod is not None}
        state = (
            None if workload is None else attempt_state.load_attempt_state(workload, attempt, pods)
        )
        single = [each.log for each in selections if each.log is not None]
        rows = Log.objects.filter(pod__workload=key).select_related("pod").defer("pod__data")
        logs_by_id = rows.order_by().in_bulk(single) if single else {}
        return state, {
            each: attempt_state.load_logs(key, attempt, each.first)
            if each.log is None
            else [logs_by_id[each.log]] * (each.log in logs_by_id)
            for each in selections
        }
    finally:
        connections.close_all()


def _find_file_size(log: Log) -> int:
    if not log.path or log.state == Log.State.REMOVED:
        return 0
    try:
        return os.stat(log_paths.local_path(log.path)).st_size
    except OSError:
        return log.size

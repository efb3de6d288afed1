"""A page of logs kept up to date: server-sent events with the lines that come, and with how things
stand whenever that changes.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from asgiref.sync import sync_to_async
from django.db import connections

from projects.models import User
from workloads.logbook import live, windows
from workloads.logbook.standing import Standing
from workloads.logbook.windows import Cursor, Window
from workloads.models import Log
from workloads.views import loglines, logstate
from workloads.views.logchoice import Choice

STREAM_SECONDS = 30.0
"""After so long a stream ends and the browser comes back, which asks anew whether its session goes
on and may still see this.
"""
HEARTBEAT = 15.0


class Viewer:
    """Somebody who looks at what they chose. `known` are the logs whose writers they were told of;
    `cursor` None wants no lines.
    """

    def __init__(
        self,
        user: User,
        choice: Choice,
        *,
        cursor: Cursor | None,
        known: Collection[int] = (),
        pane: bool = False,
    ) -> None:
        self.user = user
        self.choice = choice
        self.is_over = False
        self._cursor = cursor
        self._known = set(known)
        self._told_gaps = False
        self._teller = logstate.Teller(user, choice, pane=pane)

    def look(self, now: Standing, logs: Sequence[Log], sizes: Mapping[int, int]) -> list[str]:
        """The events that there are to send: how things stand before the lines of it. `is_over`
        once there will be no other.
        """
        chosen = self._chosen(logs)
        found = None if self._cursor is None else live.window(chosen, self._cursor, dict(sizes))
        items = [] if found is None else self._items(found, chosen)
        over = not items and logstate.is_over(now, self.choice, chosen)
        state = self._teller.news(now, chosen, over=over)
        said = [] if state is None else [_event("state", state)]
        if found is not None:
            self._cursor = found.end
            if items:
                said.append(_event("lines", items, found.end))
            elif over and not self._told_gaps:
                gaps = list(loglines.last_gaps(found, {log.pk: log for log in chosen}))
                said += [_event("gaps", gaps, found.end)] if gaps else []
                self._told_gaps = True
        if over and now.settled:
            said.append(_event("over", {}))
            self.is_over = True
        return said

    def _chosen(self, logs: Sequence[Log]) -> Sequence[Log]:
        """The chosen logs as their rows are now, and those that have come since."""
        if self.choice.log is not None:
            return [log for log in logs if log.pk == self.choice.log.pk] or [self.choice.log]
        return logs[: windows.MOST_LOGS]

    def _items(self, found: Window, logs: Sequence[Log]) -> list[loglines.Item]:
        lines = list(
            loglines.items(
                Window(found.lines, found.start, found.end, False, False),
                {log.pk: log for log in logs},
            )
        )
        writing = {line.log for line in found.lines} - self._known
        self._known |= writing
        return (
            [{"logs": loglines.who([log for log in logs if log.pk in writing])}, *lines]
            if writing
            else lines
        )


async def events(viewer: Viewer, workload: uuid.UUID) -> AsyncIterator[str]:
    """A stream's events, until all is told or it has lasted as long as one may."""
    clock = asyncio.get_running_loop().time
    until = clock() + STREAM_SECONDS
    with live.streams.counted(viewer.user.pk):
        yield "retry: 500\n\n"
        async with live.watching(workload, viewer.choice.attempt) as feed:
            while feed.standing is not None:
                version = feed.version
                said = await sync_to_async(_looked, thread_sensitive=False)(
                    viewer, feed.standing, feed.logs, dict(feed.sizes)
                )
                for each in said:
                    yield each
                if viewer.is_over:
                    return
                if not said and not await feed.news(version, HEARTBEAT):
                    yield ": quiet\n\n"
                # Asked last: however slow it is, each stream brings one on.
                if feed.broken or clock() > until:
                    return


def _looked(
    viewer: Viewer, now: Standing, logs: Sequence[Log], sizes: Mapping[int, int]
) -> list[str]:
    try:
        return viewer.look(now, logs, sizes)
    finally:
        # A thread of the loop's pool: nobody else gives its connection back.
        connections.close_all()


def _event(name: str, data: object, cursor: Cursor | None = None) -> str:
    """One event. With a cursor, that is where a browser that comes back goes on."""
    place = "" if cursor is None else f"id: {windows.write(cursor)}\n"
    return f"{place}event: {name}\ndata: {loglines.as_text(data)}\n\n"

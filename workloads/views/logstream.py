"""Server-sent events for a page of logs: new lines, and changes of state."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from asgiref.sync import sync_to_async
from django.db import connections

from projects.models import User
from workloads.logbook import live_logs, windows
from workloads.logbook.attempt_state import AttemptState
from workloads.logbook.windows import Cursor, Window
from workloads.models import Log
from workloads.views import loglines, logstate
from workloads.views.logchoice import LogChoice

STREAM_SECONDS = 30.0
"""Seconds after which a stream ends and the browser comes back.

The new request checks again whether the session goes on and may still see this.
"""
HEARTBEAT_SECONDS = 15.0


class LogViewer:
    """A viewer of chosen logs.

    `known_logs` are the logs whose pods they were told; with `cursor` None they want no lines.
    """

    def __init__(
        self,
        user: User,
        choice: LogChoice,
        *,
        cursor: Cursor | None,
        known_logs: Collection[int] = (),
        pane: bool = False,
    ) -> None:
        self.user = user
        self.choice = choice
        self.is_over = False
        self._cursor = cursor
        self._known_logs = set(known_logs)
        self._has_sent_gaps = False
        self._reporter = logstate.StateReporter(user, choice, pane=pane)

    def build_events(
        self, current: AttemptState, logs: Sequence[Log], sizes: Mapping[int, int]
    ) -> list[str]:
        """Build the events to send: the state before the lines.

        Sets `is_over` once there will be no more.
        """
        chosen = self._list_chosen_logs(logs)
        window = (
            None
            if self._cursor is None
            else live_logs.read_window(chosen, self._cursor, dict(sizes))
        )
        items = [] if window is None else self._serialize_lines(window, chosen)
        is_over = not items and logstate.is_over(current, self.choice, chosen)
        state = self._reporter.build_state(current, chosen, is_over=is_over)
        events = [] if state is None else [format_event("state", state)]
        if window is not None:
            self._cursor = window.end
            if items:
                events.append(format_event("lines", items, window.end))
            elif is_over and not self._has_sent_gaps:
                gaps = list(loglines.serialize_last_gaps(window, {log.pk: log for log in chosen}))
                events += [format_event("gaps", gaps, window.end)] if gaps else []
                self._has_sent_gaps = True
        if is_over and current.is_settled:
            events.append(format_event("over", {}))
            self.is_over = True
        return events

    def _list_chosen_logs(self, logs: Sequence[Log]) -> Sequence[Log]:
        """List the chosen logs as their rows are now, and those added since."""
        return logs or ([] if self.choice.log is None else [self.choice.log])

    def _serialize_lines(self, window: Window, logs: Sequence[Log]) -> list[loglines.Item]:
        lines = list(
            loglines.serialize_window(
                Window(window.lines, window.start, window.end, False, False),
                {log.pk: log for log in logs},
            )
        )
        writing = {line.log for line in window.lines} - self._known_logs
        self._known_logs |= writing
        return (
            [{"logs": loglines.serialize_logs([log for log in logs if log.pk in writing])}, *lines]
            if writing
            else lines
        )


async def stream_events(viewer: LogViewer, workload: uuid.UUID) -> AsyncIterator[str]:
    """Yield a stream's events until all is sent or STREAM_SECONDS are over."""
    clock = asyncio.get_running_loop().time
    until = clock() + STREAM_SECONDS
    # Many that were asked for at once may all have been let in: the browser asks again, and hears.
    if live_logs.streams.is_full(viewer.user.pk):
        return
    with live_logs.streams.count_stream(viewer.user.pk):
        yield "retry: 500\n\n"
        selection = viewer.choice.selection
        async with live_logs.watch_attempt(workload, viewer.choice.attempt, selection) as feed:
            while feed.state is not None:
                version = feed.version
                messages = await sync_to_async(_build_events, thread_sensitive=False)(
                    viewer, feed.state, feed.logs.get(selection, ()), dict(feed.sizes)
                )
                for message in messages:
                    yield message
                if viewer.is_over:
                    return
                if not messages and not await feed.wait_for_change(version, HEARTBEAT_SECONDS):
                    yield ": quiet\n\n"
                # Asked last: however slow it is, each stream brings one on.
                if feed.is_broken or clock() > until:
                    return


def _build_events(
    viewer: LogViewer, current: AttemptState, logs: Sequence[Log], sizes: Mapping[int, int]
) -> list[str]:
    try:
        return viewer.build_events(current, logs, sizes)
    finally:
        # A thread of the loop's pool: nobody else gives its connection back.
        connections.close_all()


def format_event(name: str, data: object, cursor: Cursor | None = None) -> str:
    """Format one event. With a cursor, a browser that comes back goes on from there."""
    place = "" if cursor is None else f"id: {windows.format_cursor(cursor)}\n"
    return f"{place}event: {name}\ndata: {loglines.encode_text(data)}\n\n"

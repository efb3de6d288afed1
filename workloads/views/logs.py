"""The pages and streams of logs. Everything is bounded; a large log costs what a small one does."""

import io
import itertools
import json
import re
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.errors import UserError
from console.streams import send_pieces
from console.texts import parse_number
from projects.http import Request
from workloads.logbook import (
    attempt_state,
    live_logs,
    log_paths,
    plain_text,
    remote_logs,
    searching,
    stamps,
    windows,
)
from workloads.logbook.log_files import OpenLog
from workloads.logbook.windows import Cursor, Window
from workloads.models import Log, Workload
from workloads.views import logchoice, loglines, logstate, logstream
from workloads.views.logchoice import LogChoice

JSON_LINES = "application/jsonl; charset=utf-8"
MOST_TAIL = 10_000
MOST_TYPED = 253
"""Characters of a pod's name that is looked for."""
UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9.-]|^\.+")
TOO_MANY_LOGS = "You follow too many logs at once. Close some pages."


def build_panel_context(request: Request, workload: Workload) -> dict[str, Any]:
    """Build the context of the Logs tab: pods to choose from, choice, addresses."""
    query = request.GET
    is_named = bool(query.get("pod") or query.get("find")) and not query.get("log")
    log = logchoice.find_pod_log(workload, query) if is_named else None
    choice = (
        LogChoice(log.pod.attempt, log, [log])
        if log is not None
        else logchoice.load_choice(workload, query, with_logs=False)
    )
    state = attempt_state.load_attempt_state(workload, choice.attempt, _list_chosen_pods(choice))
    tabs = logchoice.list_tabs(state, choice)
    return {
        "log_tabs": tabs,
        "log_pods": state.pod_count,
        "log_find": query.get("find", "")[:MOST_TYPED],
        "log_not_found": bool(query.get("find")) and log is None,
        "log_tab": next((tab for tab in tabs if tab.is_here), None),
        "log_choice": choice,
        "log_attempts": range(workload.attempt, 0, -1),
        "log_trouble": (
            log_paths.describe_trouble() or attempt_state.describe_missing_capture(state)
        ),
        "log_at": query.get("at", ""),
        "log_pane": _is_pane(query),
        "log_most": windows.MOST_LOGS,
    }


def _list_chosen_pods(choice: LogChoice) -> Sequence[int]:
    return [] if choice.log is None else [choice.log.pod_id]


def build_line_link(log: Log, at: int | str | bytes = "") -> str:
    """Return the address of a line, by its byte offset, time, or stored bytes.

    A stored line begins with its time.
    """
    text = at.split(b" ", 1)[0].decode("ascii", "replace") if isinstance(at, bytes) else str(at)
    query = {"log": log.pk} | ({"at": text} if text else {})
    return f"{reverse('workload-tab', args=[log.pod.workload_id, 'logs'])}?{urlencode(query)}"


@require_safe
@never_cache
def window(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Return a part of the chosen logs as JSON lines.

    It is around `at`, or `before` or `after` a cursor, down to `floor`, `since` or `tail`. Unless
    it goes on from a cursor, its head has the state as well, as the stream's events do.
    """
    workload, choice = logchoice.get_choice(request.user, pk, request.GET)
    query = _parse_query(request.GET)
    state = (
        {} if {"before", "after"} & request.GET.keys() else _build_state(request, workload, choice)
    )
    with remote_logs.open_logs_anywhere(choice.logs) as logs:
        floor = _parse_floor(logs, request.GET)
        part, target = _read_window(logs, request.GET, floor)
        rows = {log.pk: log for log in choice.logs}
        notes = [each.missing_note for each in logs] + [log.note for log in choice.logs]
        head = (
            loglines.serialize_head(
                part, choice.logs, notes, floor=windows.format_cursor(floor), target=target
            )
            | state
        )
        body = loglines.encode_lines([head, *loglines.serialize_window(part, rows, query)])
    return HttpResponse(body, content_type=JSON_LINES)


@require_safe
@never_cache
def search(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Return the place of the next match of `q` after or before a cursor, as JSON.

    Without a match it says how far the search went.
    """
    _, choice = logchoice.get_choice(request.user, pk, request.GET)
    query = _parse_query(request.GET)
    if query is None:
        raise UserError("Give something to look for.", field="q")
    up = "before" in request.GET
    with remote_logs.open_logs_anywhere(choice.logs) as logs:
        cursor = (
            _parse_cursor(logs, request.GET.get("before" if up else "after", ""))
            if up or "after" in request.GET
            else windows.start_cursor(logs)
        )
        result = searching.find_match(
            logs, query, cursor, up=up, floor=_parse_floor(logs, request.GET)
        )
        hit = None if result.line is None else {"l": result.line.log, "o": result.line.offset}
        answer = {
            "hit": hit,
            "cursor": windows.format_cursor(result.cursor),
            "searched": result.bytes_searched,
            "finished": result.is_finished,
        }
    return HttpResponse(json.dumps(answer), content_type="application/json")


async def stream(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Stream the lines after the cursor `after`, or after Last-Event-ID when the browser comes
    back.

    With `quiet` no lines, but changes of state, which are sent in either case.
    """
    if request.method != "GET":
        return HttpResponse(status=405)
    viewer = await sync_to_async(_build_viewer)(request, pk)
    if live_logs.streams.is_full(viewer.user.pk):
        return HttpResponse(TOO_MANY_LOGS, status=429, content_type="text/plain")
    answer = StreamingHttpResponse(
        logstream.stream_events(viewer, pk), content_type="text/event-stream"
    )
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def download(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Send one log as text, or all of an attempt as a zip, piece by piece."""
    if request.method != "GET":
        return HttpResponse(status=405)
    return await sync_to_async(_begin_download)(request, pk)


def _begin_download(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Return the answer, its first piece made: what fails at first is answered as an error."""
    workload, choice = logchoice.get_choice(request.user, pk, request.GET)
    with_times = request.GET.get("timestamps", "1") != "0"
    if choice.log is not None:
        name = f"{choice.log.pod.name}-{choice.log.container}-{choice.log.run}.log"
        pieces, kind = plain_text.read_chunks(choice.log, with_times), "text/plain; charset=utf-8"
    else:
        name = f"{workload.name}-{choice.attempt}.zip"
        pieces, kind = zip_logs(_list_all_logs(workload, choice), with_times), "application/zip"
    all_pieces = itertools.chain([next(pieces, b"")], pieces)
    close_old_connections()
    answer = StreamingHttpResponse(send_pieces(all_pieces), content_type=kind)
    answer["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return answer


def _list_all_logs(workload: Workload, choice: LogChoice) -> Iterator[Log]:
    """Yield the logs of the whole attempt, of which few are in memory."""
    if not choice.first:
        yield from choice.logs
    for first in range(0 if choice.first else windows.MOST_LOGS, choice.count, windows.MOST_LOGS):
        logs = attempt_state.load_logs(workload.pk, choice.attempt, first)
        # A thread of the loop's pool: nobody else gives its connection back.
        connections.close_all()
        yield from logs


def zip_logs(logs: Iterable[Log], timestamps: bool) -> Iterator[bytes]:
    """Yield a zip of these logs: never more than one chunk of one log in memory."""
    sink = _ZipSink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for log in logs:
            # A cluster gave these names, and may be anybody's: none leads out of where the zip is
            # unpacked.
            names = (log.pod.name, log.pod.uid[:8], f"{log.container}.{log.run}.log")
            name = "/".join(UNSAFE_CHARACTERS.sub("_", each) for each in names)
            with archive.open(
                zipfile.ZipInfo(name, timezone.now().timetuple()[:6]), "w", force_zip64=True
            ) as file:
                for chunk in plain_text.read_chunks(log, timestamps):
                    file.write(chunk)
                    yield sink.take_bytes()
            yield sink.take_bytes()
    yield sink.take_bytes()


class _ZipSink(io.RawIOBase):
    """Where a zip is written to; `take_bytes` returns what came since the last call."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take_bytes(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def _build_viewer(request: Request, pk: uuid.UUID) -> logstream.LogViewer:
    _, choice = logchoice.get_choice(request.user, pk, request.GET)
    text = request.headers.get("Last-Event-ID") or request.GET.get("after", "")
    received_cursor = _parse_given_cursor(text)
    cursor = None if request.GET.get("quiet") == "1" else _find_cursor(choice.logs, received_cursor)
    # Whoever has a place in a log was told whose it is; of those that came since then nobody was.
    viewer = logstream.LogViewer(
        request.user,
        choice,
        cursor=cursor,
        known_logs=received_cursor,
        pane=_is_pane(request.GET),
    )
    close_old_connections()
    return viewer


def _find_cursor(logs: Sequence[Log], received_cursor: Cursor) -> Cursor:
    """Return the received cursor at beginnings of lines.

    Ended logs that were read to their end are not opened: an object store may have them, and who
    follows what the others write comes back twice a minute.
    """
    read = {
        log.pk: log.size
        for log in logs
        if log.state == Log.State.COMPLETE and received_cursor.get(log.pk) == log.size
    }
    with remote_logs.open_local_logs([log for log in logs if log.pk not in read]) as others:
        return windows.align_cursor(others, received_cursor) | read


def _build_state(request: Request, workload: Workload, choice: LogChoice) -> loglines.Item:
    current = attempt_state.load_attempt_state(workload, choice.attempt, _list_chosen_pods(choice))
    reporter = logstate.StateReporter(request.user, choice, pane=_is_pane(request.GET))
    return (
        reporter.build_state(
            current, choice.logs, is_over=logstate.is_over(current, choice, choice.logs)
        )
        or {}
    )


def _is_pane(query: QueryDict) -> bool:
    return query.get("pane") == "1"


def _read_window(logs: Sequence[OpenLog], query: QueryDict, floor: Cursor) -> tuple[Window, str]:
    """Return the requested window, and the place of its target line, "" for none."""
    if "before" in query:
        return windows.window_before(
            logs, _parse_cursor(logs, query.get("before", "")), floor=floor
        ), ""
    if "after" in query:
        return windows.window_after(logs, _parse_cursor(logs, query.get("after", ""))), ""
    at = query.get("at", "")
    if at == "start":
        return windows.window_after(logs, floor), ""
    place = _find_place(logs, at)
    if place is None:
        return windows.window_before(logs, windows.end_cursor(logs), floor=floor), ""
    cursor, target = place
    above, below = (
        windows.window_before(logs, cursor, windows.MOST_LINES // 2),
        windows.window_after(logs, cursor, windows.MOST_LINES // 2),
    )
    both = Window(
        [*above.lines, *below.lines], above.start, below.end, above.at_start, below.at_end
    )
    return both, target or (f"{below.lines[0].log}.{below.lines[0].offset}" if below.lines else "")


def _find_place(logs: Sequence[OpenLog], at: str) -> tuple[Cursor, str] | None:
    """Return the cursor before the requested line or time, and that line.

    `at` is a byte of the only log, LOG.BYTE, or a time; None for anything else.
    """
    log, _, offset = at.rpartition(".")
    log_id, byte = parse_number(log or "0"), parse_number(offset)
    if log_id is not None and byte is not None:
        wanted = log_id if log else (logs[0].log.pk if len(logs) == 1 else 0)
        cursor = windows.cursor_at_line(logs, wanted, byte)
        return cursor, f"{wanted}.{cursor[wanted]}" if wanted in cursor else ""
    ns = stamps.parse_time(at)
    return None if ns is None else (windows.cursor_at_time(logs, ns), "")


def _parse_floor(logs: Sequence[OpenLog], query: QueryDict) -> Cursor:
    """Return the cursor before which nothing is wanted.

    As it was sent before, or by `tail` lines or `since` so many seconds.
    """
    if floor := query.get("floor"):
        return _parse_cursor(logs, floor)
    if (tail := parse_number(query.get("tail"), 7)) is not None:
        return windows.find_tail_floor(logs, min(tail, MOST_TAIL))
    if (since := parse_number(query.get("since"), 8)) is not None:
        return windows.cursor_at_time(
            logs, stamps.to_nanoseconds(timezone.now()) - since * stamps.SECOND
        )
    return windows.start_cursor(logs)


def _parse_cursor(logs: Sequence[OpenLog], text: str) -> Cursor:
    return windows.align_cursor(logs, _parse_given_cursor(text))


def _parse_given_cursor(text: str) -> Cursor:
    try:
        return windows.parse_cursor(text)
    except windows.BadCursor:
        raise UserError(
            "This place in the log cannot be found. Load the page again.", status=400
        ) from None


def _parse_query(query: QueryDict) -> searching.Query | None:
    text = query.get("q", "")
    if not text:
        return None
    try:
        return searching.Query(text, regex=query.get("regex") == "1", case=query.get("case") == "1")
    except searching.BadExpression as refusal:
        raise UserError(str(refusal), field="q") from None

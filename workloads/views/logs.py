"""The pages and streams of logs. Everything is bounded; a large log costs what a small one does."""

import io
import json
import re
import uuid
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote, urlencode

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.errors import UserError
from projects.http import Request
from workloads.logbook import live, places, remote, searching, stamps, standing, texts, windows
from workloads.logbook.reading import Opened
from workloads.logbook.windows import Cursor, Window
from workloads.models import Log, Workload
from workloads.views import logchoice, loglines, logstate, logstream
from workloads.views.logchoice import Choice

JSON_LINES = "application/jsonl; charset=utf-8"
MOST_TAIL = 10_000
UNSAFE = re.compile(r"[^A-Za-z0-9.-]|^\.+")
FULL = "You follow too many logs at once. Close some pages."


def panel(request: Request, workload: Workload) -> dict[str, Any]:
    """What the Logs tab of the details needs: the pods to choose from, what is chosen, and where
    its lines are to be had.
    """
    query = request.GET
    log = logchoice.of_pod(workload, query) if query.get("pod") and not query.get("log") else None
    choice = (
        Choice(log.pod.attempt, log, [log])
        if log is not None
        else logchoice.chosen(workload, query)
    )
    tabs = logchoice.tabs(standing.of(workload, choice.attempt), choice)
    return {
        "log_tabs": tabs,
        "log_tab": next((tab for tab in tabs if tab.here), None),
        "log_choice": choice,
        "log_attempts": range(workload.attempt, 0, -1),
        "log_trouble": places.trouble(),
        "log_at": query.get("at", ""),
        "log_pane": _is_pane(query),
        "log_most": windows.MOST_LOGS,
    }


def link_to(log: Log, at: int | str | bytes = "") -> str:
    """The address of a line: its byte offset, its time, or the stored line itself, which begins
    with its time.
    """
    text = at.split(b" ", 1)[0].decode("ascii", "replace") if isinstance(at, bytes) else str(at)
    query = {"log": log.pk} | ({"at": text} if text else {})
    return f"{reverse('workload-tab', args=[log.pod.workload_id, 'logs'])}?{urlencode(query)}"


@require_safe
@never_cache
def window(request: Request, pk: uuid.UUID) -> HttpResponse:
    """A part of the chosen logs as JSON lines: around `at`, or `before` or `after` a cursor, down
    to `floor`, `since` or `tail`.

    One that does not go on from a cursor begins with how things stand, as the stream's events do.
    """
    workload, choice = logchoice.required(request.user, pk, request.GET)
    query = _query(request.GET)
    state = {} if {"before", "after"} & request.GET.keys() else _state(request, workload, choice)
    with ExitStack() as stack:
        logs = [stack.enter_context(remote.opened(log)) for log in choice.logs]
        floor = _floor(logs, request.GET)
        found, target = _window(logs, request.GET, floor)
        rows = {log.pk: log for log in choice.logs}
        notes = [each.missing for each in logs] + [
            log.note for log in choice.logs if log.state != Log.State.COMPLETE
        ]
        head = (
            loglines.head(found, choice.logs, notes, floor=windows.write(floor), target=target)
            | state
        )
        body = loglines.encoded([head, *loglines.items(found, rows, query)])
    return HttpResponse(body, content_type=JSON_LINES)


@require_safe
@never_cache
def search(request: Request, pk: uuid.UUID) -> HttpResponse:
    """The next line that matches `q`, from a cursor `after` on, or the one `before` it: JSON with
    the place, or how far it looked.
    """
    _, choice = logchoice.required(request.user, pk, request.GET)
    query = _query(request.GET)
    if query is None:
        raise UserError("Give something to look for.", field="q")
    up = "before" in request.GET
    with ExitStack() as stack:
        logs = [stack.enter_context(remote.opened(log)) for log in choice.logs]
        cursor = (
            _cursor(logs, request.GET.get("before" if up else "after", ""))
            if up or "after" in request.GET
            else windows.starts(logs)
        )
        found = searching.find(logs, query, cursor, up=up, floor=_floor(logs, request.GET))
        hit = None if found.line is None else {"l": found.line.log, "o": found.line.offset}
        said = {
            "hit": hit,
            "cursor": windows.write(found.cursor),
            "searched": found.searched,
            "finished": found.finished,
        }
    return HttpResponse(json.dumps(said), content_type="application/json")


async def stream(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Server-sent events: the lines after the cursor `after`, or after Last-Event-ID when the
    browser comes back, as they come.

    With `quiet` no lines, but how things stand, which is told in either case.
    """
    if request.method != "GET":
        return HttpResponse(status=405)
    viewer = await sync_to_async(_viewer)(request, pk)
    if live.streams.full(viewer.user.pk):
        return HttpResponse(FULL, status=429, content_type="text/plain")
    answer = StreamingHttpResponse(logstream.events(viewer, pk), content_type="text/event-stream")
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def download(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """One log as text, or all of an attempt as a zip, in pieces that are made while they are
    sent.
    """
    if request.method != "GET":
        return HttpResponse(status=405)
    workload, choice = await sync_to_async(_for_download)(request, pk)
    stamped = request.GET.get("timestamps", "1") != "0"
    if choice.log is not None:
        name = f"{choice.log.pod.name}-{choice.log.container}-{choice.log.run}.log"
        pieces, kind = texts.chunks(choice.log, stamped), "text/plain; charset=utf-8"
    else:
        name = f"{workload.name}-{choice.attempt}.zip"
        pieces, kind = zipped(choice.logs, stamped), "application/zip"
    answer = StreamingHttpResponse(_sent(pieces), content_type=kind)
    answer["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return answer


def zipped(logs: Sequence[Log], timestamps: bool) -> Iterator[bytes]:
    """A zip of these logs, piece by piece: never more than one chunk of one log in memory."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for log in logs:
            # A cluster gave these names, and may be anybody's: none leads out of where the zip is
            # unpacked.
            names = (log.pod.name, log.pod.uid[:8], f"{log.container}.{log.run}.log")
            name = "/".join(UNSAFE.sub("_", each) for each in names)
            with archive.open(
                zipfile.ZipInfo(name, timezone.now().timetuple()[:6]), "w", force_zip64=True
            ) as file:
                for chunk in texts.chunks(log, timestamps):
                    file.write(chunk)
                    yield sink.taken()
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """Where a zip is written to: gives away what came since last asked."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    # One expression for one thread hop.
    take: Callable[[], bytes | None] = lambda: next(pieces, None)  # noqa: E731
    step = sync_to_async(take, thread_sensitive=False)
    while (piece := await step()) is not None:
        if piece:
            yield piece


def _viewer(request: Request, pk: uuid.UUID) -> logstream.Viewer:
    _, choice = logchoice.required(request.user, pk, request.GET)
    text = request.headers.get("Last-Event-ID") or request.GET.get("after", "")
    with ExitStack() as stack:
        cursor = _cursor([stack.enter_context(remote.here(log)) for log in choice.logs], text)
    wanted = None if request.GET.get("quiet") == "1" else cursor
    # Whoever has a place in a log was told whose it is; of those that came since then nobody was.
    viewer = logstream.Viewer(
        request.user, choice, cursor=wanted, known=windows.read(text), pane=_is_pane(request.GET)
    )
    close_old_connections()
    return viewer


def _state(request: Request, workload: Workload, choice: Choice) -> loglines.Item:
    now = standing.of(workload, choice.attempt)
    teller = logstate.Teller(request.user, choice, pane=_is_pane(request.GET))
    return teller.news(now, choice.logs, over=logstate.is_over(now, choice, choice.logs)) or {}


def _is_pane(query: QueryDict) -> bool:
    return query.get("pane") == "1"


def _for_download(request: Request, pk: uuid.UUID) -> tuple[Workload, Choice]:
    found = logchoice.required(request.user, pk, request.GET)
    close_old_connections()
    return found


def _window(logs: Sequence[Opened], query: QueryDict, floor: Cursor) -> tuple[Window, str]:
    """The window that was asked for, and the cursor of the line that it is about, "" for none."""
    if "before" in query:
        return windows.before(logs, _cursor(logs, query.get("before", "")), floor=floor), ""
    if "after" in query:
        return windows.after(logs, _cursor(logs, query.get("after", ""))), ""
    at = query.get("at", "")
    if at == "start":
        return windows.after(logs, floor), ""
    place = _place(logs, at)
    if place is None:
        return windows.before(logs, windows.ends(logs), floor=floor), ""
    cursor, target = place
    above, below = (
        windows.before(logs, cursor, windows.MOST_LINES // 2),
        windows.after(logs, cursor, windows.MOST_LINES // 2),
    )
    both = Window(
        [*above.lines, *below.lines], above.start, below.end, above.at_start, below.at_end
    )
    return both, target or (f"{below.lines[0].log}.{below.lines[0].offset}" if below.lines else "")


def _place(logs: Sequence[Opened], at: str) -> tuple[Cursor, str] | None:
    """Before the line at a byte of the only log, or at LOG.BYTE, and that line; before a time; None
    for anything else.
    """
    log, _, offset = at.rpartition(".")
    if (
        len(at) < 40
        and offset.isascii()
        and offset.isdigit()
        and (log == "" or (log.isascii() and log.isdigit()))
    ):
        wanted = int(log) if log else (logs[0].log.pk if len(logs) == 1 else 0)
        cursor = windows.at_line(logs, wanted, int(offset))
        return cursor, f"{wanted}.{cursor[wanted]}" if wanted in cursor else ""
    ns = stamps.parse(at)
    return None if ns is None else (windows.at_time(logs, ns), "")


def _floor(logs: Sequence[Opened], query: QueryDict) -> Cursor:
    """The place before which nothing is wanted: as it was told before, or by `tail` lines or
    `since` so many seconds.
    """
    if floor := query.get("floor"):
        return _cursor(logs, floor)
    if (tail := query.get("tail", "")).isdecimal() and len(tail) < 8:
        return windows.tail_floor(logs, min(int(tail), MOST_TAIL))
    if (since := query.get("since", "")).isdecimal() and len(since) < 9:
        return windows.at_time(
            logs, stamps.nanoseconds(timezone.now()) - int(since) * stamps.SECOND
        )
    return windows.starts(logs)


def _cursor(logs: Sequence[Opened], text: str) -> Cursor:
    try:
        return windows.sound(logs, windows.read(text))
    except windows.BadCursor:
        raise UserError(
            "This place in the log cannot be found. Load the page again.", status=400
        ) from None


def _query(query: QueryDict) -> searching.Query | None:
    text = query.get("q", "")
    if not text:
        return None
    try:
        return searching.Query(text, regex=query.get("regex") == "1", case=query.get("case") == "1")
    except searching.BadExpression as refusal:
        raise UserError(str(refusal), field="q") from None

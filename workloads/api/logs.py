"""`GET /api/v1/workloads/{id}/pods/{pod}/logs`: the log of a pod as plain text.

This address is an addition of Muster to the API.
"""

import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from console.errors import UserError
from console.streams import StreamPlace, send_pieces
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.tokens import BearerToken
from workloads import logbook
from workloads.api.details import get_pod, get_workload
from workloads.kube_objects import nested_list
from workloads.models import Log, Pod

CHUNK_BYTES = 256 << 10
MAX_LINES = 10**9
MAX_NUMBER = 10**6
"""The largest number of a run or an attempt."""
RUN_HEADER = "X-Log-Run"
"""The header with the number of the container's run whose log it is."""
RECHECK_SECONDS = 30.0
"""Seconds between two checks that the user who follows a log may still see it."""


class LogsView(ApiView):
    @extend_schema(
        operation_id="get_pod_logs",
        description=(
            "What a container wrote, as plain text, from the log that Muster keeps: also when the "
            "pod is gone. The pod is named by its id, or its name; of several with that name it is "
            "the newest."
        ),
        parameters=[
            schemas.query_parameter(
                "follow",
                schemas.BOOLEAN,
                "Go on with what is written, until the container's run has ended.",
            ),
            schemas.query_parameter("tailLines", schemas.INTEGER, "The last so many lines."),
            schemas.query_parameter(
                "sinceTime", schemas.MOMENT, "Lines written at this moment or later."
            ),
            schemas.query_parameter(
                "previous", schemas.BOOLEAN, "The run of the container before the newest one."
            ),
            schemas.query_parameter(
                "container",
                schemas.TEXT,
                "The container; the first that is no init container where it is not given.",
            ),
            schemas.query_parameter("timestamps", schemas.BOOLEAN, "The moment before each line."),
            schemas.query_parameter(
                "run",
                schemas.INTEGER,
                "The run of the container by its number, from 0; the header X-Log-Run of an "
                "answer has it. The newest by default.",
            ),
            schemas.query_parameter(
                "attempt",
                schemas.INTEGER,
                "The attempt of the workload whose pod it is; the newest by default.",
            ),
        ],
        responses={(200, "text/plain"): OpenApiResponse(schemas.TEXT)}
        | schemas.error_responses(400, 401, 404, 429, 503),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID, pod_id: str) -> StreamingHttpResponse:
        query, workload = ListQuery(request), get_workload(self.user, workload_id)
        tail_lines, since = query.integer("tailLines", -1, 0, MAX_LINES), query.moment("sinceTime")
        tail = None if tail_lines < 0 else tail_lines
        since_ns = None if since is None else int(since.timestamp()) * 10**9
        follow, timestamps = bool(query.flag("follow")), bool(query.flag("timestamps"))
        attempt = query.integer("attempt", -1, 0, MAX_NUMBER)
        pod = get_pod(workload, pod_id, **({"attempt": attempt} if attempt >= 0 else {}))
        log = _get_log(
            pod,
            query.text("container"),
            bool(query.flag("previous")),
            query.integer("run", -1, 0, MAX_NUMBER),
        )
        # Of a run that has ended nothing is to come: it is read like any other.
        if follow and log.state == Log.State.CAPTURING:
            place = logbook.streams.take_place(self.user.pk)
            if place is None:
                raise UserError(
                    "You follow too many logs at once. End some of the streams, and try again.",
                    status=429,
                )
            chunks = logbook.follow_log(log, tail=tail, since=since_ns, timestamps=timestamps)
            text = _stream_while_allowed(
                chunks, place, lambda: _may_see_workload(request, workload_id)
            )
        else:
            lines = logbook.read_lines(log, tail=tail, since=since_ns, timestamps=timestamps)
            text = send_pieces(iter(lambda: _read_chunk(lines), b""))
        response = StreamingHttpResponse(text, content_type="text/plain; charset=utf-8")
        # Else a proxy such as nginx holds lines back until its buffer is full.
        response["X-Accel-Buffering"] = "no"
        response[RUN_HEADER] = str(log.run)
        return response


def _get_log(pod: Pod, container: str, previous: bool, run: int) -> Log:
    """Return the log of a container's newest run, the one before it, or that with a number.

    `run` is -1 where none is asked for. Raises Http404.
    """
    container = container or next(
        (str(each.get("name")) for each in nested_list(pod.data, "spec", "containers")), ""
    )
    logs = pod.logs.select_related("pod").filter(
        **({"container": container} if container else {"is_init": False})
    )
    if run >= 0:
        logs = logs.filter(run=run)
    newest = list(logs.order_by("container", "-run")[:2])
    runs = [log for log in newest if log.container == newest[0].container]
    if len(runs) <= int(previous):
        raise Http404(
            "There is no such log: the container has not written yet, did not run that often, or "
            "is not one of this pod."
        )
    log = runs[int(previous)]
    if log.state in (Log.State.LOST, Log.State.REMOVED):
        raise Http404(log.note or "This log is not there any more.")
    if missing := logbook.describe_missing(log):
        raise Http404(missing)
    return log


async def _stream_while_allowed(
    text: AsyncIterator[bytes],
    place: StreamPlace,
    is_allowed: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[bytes]:
    """Yield the followed text, which has a place among the user's streams.

    The stream ends when `is_allowed`, asked every RECHECK_SECONDS, returns False, also while
    nothing comes.
    """

    def check_allowed() -> bool:
        try:
            return is_allowed()
        finally:
            # This runs in a thread of the loop's pool, where no end of a request closes the
            # thread's database connection.
            connections.close_all()

    checked_at = clock()
    with place:
        async for chunk in text:
            if clock() - checked_at >= RECHECK_SECONDS:
                if not await sync_to_async(check_allowed, thread_sensitive=False)():
                    return
                checked_at = clock()
            if chunk:
                yield chunk


def _may_see_workload(request: Request, workload_id: uuid.UUID) -> bool:
    """Tell whether the request's token is still valid and its owner still sees the workload."""
    try:
        authenticated = BearerToken().authenticate(request)
        return authenticated is not None and get_workload(authenticated[0], workload_id) is not None
    except (AuthenticationFailed, Http404):
        return False


def _read_chunk(lines: Iterator[bytes]) -> bytes:
    parts: list[bytes] = []
    size = 0
    for line in lines:
        parts.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            break
    return b"".join(parts)

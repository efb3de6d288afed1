"""`GET /api/v1/workloads/{id}/pods/{name}/logs`: what a pod wrote, as plain text. An addition of
Muster to the API.
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
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.tokens import BearerToken
from workloads import logbook
from workloads.api.details import get_workload
from workloads.kube_objects import nested_list
from workloads.models import Log, Pod

CHUNK_BYTES = 256 << 10
MAX_LINES = 10**9
RECHECK_SECONDS = 30.0
"""Seconds between two questions whether somebody who follows a log may still see it."""


class LogsView(ApiView):
    @extend_schema(
        operation_id="get_pod_logs",
        description=(
            "What a container wrote, as plain text, from the log that Muster keeps: also when the "
            "pod is gone."
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
        ],
        responses={(200, "text/plain"): OpenApiResponse(schemas.TEXT)}
        | schemas.error_responses(400, 401, 404, 429),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID, pod_name: str) -> StreamingHttpResponse:
        asked, workload = ListQuery(request), get_workload(self.user, workload_id)
        lines, since = asked.integer("tailLines", -1, 0, MAX_LINES), asked.moment("sinceTime")
        tail = None if lines < 0 else lines
        since_ns = None if since is None else int(since.timestamp()) * 10**9
        follow, timestamps = bool(asked.flag("follow")), bool(asked.flag("timestamps"))
        pods = Pod.objects.filter(workload=workload, name=pod_name.replace("\x00", ""))
        log = _get_log(
            pods.order_by("-attempt", "-pk").first(),
            asked.text("container"),
            bool(asked.flag("previous")),
        )
        if follow:
            if logbook.streams.is_full(self.user.pk):
                raise UserError(
                    "You follow too many logs at once. End some of the streams, and try again.",
                    status=429,
                )
            followed = logbook.follow_log(log, tail=tail, since=since_ns, timestamps=timestamps)
            text = _stream_while_allowed(
                followed, self.user.pk, lambda: _may_see_workload(request, workload_id)
            )
        else:
            text = _stream_chunks(
                logbook.read_lines(log, tail=tail, since=since_ns, timestamps=timestamps)
            )
        answer = StreamingHttpResponse(text, content_type="text/plain; charset=utf-8")
        answer["X-Accel-Buffering"] = "no"
        return answer


def _get_log(pod: Pod | None, container: str, previous: bool) -> Log:
    if pod is None:
        raise Http404("This workload has no such pod. GET /api/v1/workloads/{id}/pods lists them.")
    container = container or next(
        (str(each.get("name")) for each in nested_list(pod.data, "spec", "containers")), ""
    )
    logs = pod.logs.select_related("pod").filter(
        **({"container": container} if container else {"is_init": False})
    )
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
    return log


async def _stream_while_allowed(
    text: AsyncIterator[bytes],
    user: int,
    is_allowed: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[bytes]:
    """What is followed, counted as one of this person's streams; it ends when `allowed`, asked now
    and then, says no.
    """

    def still() -> bool:
        try:
            return is_allowed()
        finally:
            # A thread of the loop's pool: nobody else gives its connection back.
            connections.close_all()

    checked = clock()
    with logbook.streams.count_stream(user):
        async for chunk in text:
            if clock() - checked >= RECHECK_SECONDS:
                if not await sync_to_async(still, thread_sensitive=False)():
                    return
                checked = clock()
            yield chunk


def _may_see_workload(request: Request, workload_id: uuid.UUID) -> bool:
    """Whether the request's token is still good, and its owner still sees the workload."""
    try:
        who = BearerToken().authenticate(request)
        return who is not None and get_workload(who[0], workload_id) is not None
    except (AuthenticationFailed, Http404):
        return False


async def _stream_chunks(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The lines in chunks, read by a thread so that nobody else has to wait."""
    while chunk := await sync_to_async(_read_chunk, thread_sensitive=False)(lines):
        yield chunk


def _read_chunk(lines: Iterator[bytes]) -> bytes:
    held: list[bytes] = []
    count = 0
    for line in lines:
        held.append(line)
        count += len(line)
        if count >= CHUNK_BYTES:
            break
    return b"".join(held)

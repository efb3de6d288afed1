"""The log subresource of pods: the container, the options, and the bytes as they come."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta

from localkube import clock, errors
from localkube.api.http_messages import ApiCall, QueryParameters, Response
from localkube.machine import LogOptions, Machine
from localkube.metadata import Object, name_of
from localkube.objects import Objects
from localkube.resources import PODS

FIRST_CHUNK_WAIT = 0.25
"""Seconds to wait for the first bytes before the response starts.

An error that comes within them still gets its code.
"""
MAX_SECONDS = 10**9

PLAIN_TEXT = "text/plain"


class LogHandler:
    """Answers reads of logs; `max_followed` of them may be followed at once."""

    def __init__(self, objects: Objects, machine: Machine, max_followed: int) -> None:
        self._objects = objects
        self._max_followed = max_followed
        self._machine = machine
        self._followed_count = 0

    async def read_log(self, call: ApiCall, namespace: str, name: str) -> Response:
        """Answer with a container's log as plain text.

        The code is 204 for a pod that has no node yet. Raises ApiError: 400 for a container that
        must be named, does not exist or has not started, 404, 422 for a bad query, 429 when too
        many logs are followed.
        """
        options = parse_log_options(call.query, name)
        pod = self._objects.get(PODS, namespace, name)
        container = choose_container(pod, call.query.text("container"))
        if not (pod.get("spec") or {}).get("nodeName"):
            return Response(204, content_type="")
        if not options.follow:
            return Response(
                content_type=PLAIN_TEXT,
                stream=await _start_stream(self._machine.read_log(pod, container, options)),
            )
        if self._followed_count >= self._max_followed:
            raise errors.too_many_requests_error(
                f"{self._max_followed} logs are followed, and no more can be: try again when some "
                "have ended"
            )
        self._followed_count += 1
        try:
            stream = await _start_stream(self._machine.read_log(pod, container, options))
        except BaseException:
            self._followed_count -= 1
            raise
        return Response(
            content_type=PLAIN_TEXT, stream=stream, live=True, release=self._release_follower
        )

    def _release_follower(self) -> None:
        self._followed_count -= 1


def parse_log_options(query: QueryParameters, pod: str) -> LogOptions:
    """Parse the query of a log, checked as core/validation `ValidatePodLogOptions` does.

    Raises ApiError 400, 422.
    """
    tail, limit, seconds = (
        query.integer("tailLines"),
        query.integer("limitBytes"),
        query.integer("sinceSeconds"),
    )
    since_time = query.text("sinceTime")
    causes = []
    if tail is not None and tail < 0:
        causes.append(
            errors.invalid_cause("tailLines", str(tail), "must be greater than or equal to 0")
        )
    if limit is not None and limit < 1:
        causes.append(errors.invalid_cause("limitBytes", str(limit), "must be greater than 0"))
    if seconds is not None and since_time:
        causes.append(
            errors.forbidden_cause(
                "", "at most one of `sinceTime` or `sinceSeconds` may be specified"
            )
        )
    elif seconds is not None and seconds < 1:
        causes.append(errors.invalid_cause("sinceSeconds", str(seconds), "must be greater than 0"))
    if causes:
        raise errors.invalid_error("", "PodLogOptions", pod, causes)
    since = None
    if seconds is not None:
        since = clock.current_time() - timedelta(seconds=min(seconds, MAX_SECONDS))
    elif since_time:
        try:
            since = clock.parse_time(since_time)
        except ValueError:
            text = since_time[:64]
            raise errors.bad_request_error(
                f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}"'
            ) from None
    return LogOptions(
        query.flag("follow"), query.flag("previous"), query.flag("timestamps"), tail, limit, since
    )


def choose_container(pod: Object, requested_name: str) -> str:
    """Return the container to read: the only one, or the one that was named.

    Raises ApiError 400 (recorded `log/400-*`).
    """
    spec = pod.get("spec") or {}
    containers = [container["name"] for container in spec.get("containers") or ()]
    inits = [container["name"] for container in spec.get("initContainers") or ()]
    if not requested_name:
        if len(containers) == 1:
            return str(containers[0])
        choice = (
            f"a container name must be specified for pod {name_of(pod)}, choose one of: "
            f"[{' '.join(containers)}]"
        )
        raise errors.bad_request_error(
            choice + (f" or one of the init containers: [{' '.join(inits)}]" if inits else "")
        )
    if requested_name not in containers + inits:
        raise errors.bad_request_error(
            f"container {requested_name} is not valid for pod {name_of(pod)}"
        )
    return requested_name


async def _start_stream(chunks: AsyncIterator[bytes]) -> "_StartedStream":
    """Return a stream of the same chunks whose first chunk was asked for already.

    So an error comes before the response's first line.
    """
    stream = _StartedStream(chunks)
    await stream.start()
    return stream


class _StartedStream:
    """A stream whose first chunk is on its way before anybody iterates."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._first_chunk: asyncio.Task[bytes] | None = None

    async def start(self) -> None:
        """Ask for the first chunk. Raises the error when there soon is one in its place."""
        self._first_chunk = asyncio.create_task(self._read_first())
        try:
            await asyncio.wait({self._first_chunk}, timeout=FIRST_CHUNK_WAIT)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if self._first_chunk.done():
            self._first_chunk.result()

    async def _read_first(self) -> bytes:
        return await anext(self._chunks, b"")

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._first_chunk is not None:
            first, self._first_chunk = self._first_chunk, None
            return await first
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Release the log, whether it was read or not."""
        if self._first_chunk is not None:
            self._first_chunk.cancel()
            await asyncio.wait({self._first_chunk})
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()

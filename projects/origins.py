"""The middleware that notes where a request comes from and gives it its id."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console import tracing
from projects import audit, throttle


class OriginMiddleware:
    """Note the address, id, method and path of the request for the audit log.

    Sync and async, so that streams stay streams.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self.get_response):
            return self._call_async(request)
        with _track_request(request) as request_id:
            return _set_id_header(self.get_response(request), request_id)

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        with _track_request(request) as request_id:
            return _set_id_header(await self.get_response(request), request_id)


@contextmanager
def _track_request(request: HttpRequest) -> Iterator[str]:
    request_id = tracing.choose_request_id(request.headers.get(tracing.REQUEST_ID_HEADER, ""))
    address = throttle.find_client_ip(request)
    origin = audit.Origin(
        str(address) if address else None, request_id, request.method or "", request.path
    )
    # For the pages of what went wrong.
    request.request_id = request_id  # type: ignore[attr-defined]
    tokens = tracing.request_id.set(request_id), audit.origin.set(origin)
    try:
        yield request_id
    finally:
        tracing.request_id.reset(tokens[0])
        audit.origin.reset(tokens[1])


def _set_id_header(response: HttpResponseBase, request_id: str) -> HttpResponseBase:
    response.headers[tracing.REQUEST_ID_HEADER] = request_id
    return response

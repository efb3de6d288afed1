"""Security headers of every answer."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "manifest-src 'self'",
    )
)
"""Everything from us, nothing inline: script in a log or a label cannot run in a page."""


class ContentSecurityPolicy:
    """Put the policy on every answer, static files and refusals too.

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
        return _add_headers(self.get_response(request))

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        return _add_headers(await self.get_response(request))


def _add_headers(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
    response.headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
    # Every page is somebody's: only what says otherwise of itself, as static files do, is kept by a
    # browser or a proxy.
    response.headers.setdefault("Cache-Control", "private, no-store")
    return response

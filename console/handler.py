"""The request handler: all middleware and the view run in one thread per request."""

from typing import Any, cast

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest

from console.metrics.requests import ROUTE_KEY


class SingleThreadHandler(ASGIHandler):
    """Django's ASGI handler, with all middleware in one thread.

    Django's own hands every step of every middleware to that thread and back, twenty times a
    request, which costs as much as a small page. Here it is handed over once. The event loop still
    runs asynchronous views, while the thread waits for the answer; what a view streams afterwards
    is asked for by the loop alone.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        chain = self._middleware_chain  # type: ignore[has-type]  # the stubs do not say
        self._middleware_chain = sync_to_async(chain, thread_sensitive=True)

    def resolve_request(self, request: HttpRequest) -> Any:
        """Find the view, and leave the pattern of its address for who counts requests."""
        resolver_match = super().resolve_request(request)
        if isinstance(request, ASGIRequest) and request.resolver_match is not None:
            cast(dict[str, Any], request.scope)[ROUTE_KEY] = request.resolver_match.route
        return resolver_match

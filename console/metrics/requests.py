"""Counting the requests of the web process, outside of everything else that handles them."""

import time
from collections.abc import Mapping
from typing import Any

from console.body_limit import Application, Message, Receive, Scope, Send
from console.metrics.instruments import HTTP_OPEN, HTTP_REQUESTS, HTTP_SECONDS, HTTP_STREAMS
from console.spans import Span, tracing

ROUTE_KEY = "muster.route"
"""Where the handler leaves the pattern of the address in the scope (`console.handler`)."""
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
STATIC_PREFIX = "/static/"


class _RequestMeasurement:
    """One request: how long until its answer began, how it was answered, whether it streams."""

    def __init__(self, scope: Scope, span: Span) -> None:
        self.scope = scope
        self._span = span
        self._began_at = time.perf_counter()
        self._status = "none"
        self._streamed_route = ""
        HTTP_OPEN.inc()

    def note_received(self, message: Message) -> None:
        """Begin to measure anew where the body ends: a slow client's body is not our time."""
        if message["type"] == "http.request" and not message.get("more_body"):
            self._began_at = time.perf_counter()

    def note_sent(self, message: Message) -> None:
        """Note how the request is answered, when its answer begins."""
        if message["type"] != "http.response.start" or self._status != "none":
            return
        self._status = str(message["status"])
        route = find_route(self.scope)
        HTTP_SECONDS.labels(route, find_method(self.scope)).observe(
            time.perf_counter() - self._began_at
        )
        self._describe_span()
        if is_event_stream(message):
            # It lasts for hours, and says nothing more of how fast we are.
            self._span.end()
            self._streamed_route = route
            HTTP_STREAMS.labels(route).inc()

    def _describe_span(self) -> None:
        route = find_route(self.scope)
        self._span.rename(f"{find_method(self.scope)} {route}")
        self._span.set_attribute("http.route", route)
        self._span.set_attribute("http.request.method", find_method(self.scope))
        self._span.set_attribute("http.response.status_code", int(self._status))

    def finish(self) -> None:
        """Count the request; nothing of it is answered any more."""
        HTTP_OPEN.dec()
        if self._streamed_route:
            HTTP_STREAMS.labels(self._streamed_route).dec()
        HTTP_REQUESTS.labels(find_route(self.scope), find_method(self.scope), self._status).inc()


def measure_requests(application: Application) -> Application:
    """Wrap the application so that its requests are counted by route, method and status."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        # Whose trace a client says it is part of is not believed.
        with tracing.open_span("request", {}) as span:
            await _measure_request(application, _RequestMeasurement(scope, span), receive, send)

    return call


async def _measure_request(
    application: Application, measurement: _RequestMeasurement, receive: Receive, send: Send
) -> None:
    async def receive_noted() -> Message:
        message = await receive()
        measurement.note_received(message)
        return message

    async def send_noted(message: Message) -> None:
        measurement.note_sent(message)
        await send(message)

    try:
        await application(measurement.scope, receive_noted, send_noted)
    finally:
        measurement.finish()


def find_route(scope: Mapping[str, Any]) -> str:
    """Return the pattern of the address: bounded by the table of URLs, whatever is asked for."""
    route = scope.get(ROUTE_KEY)
    if route is not None:
        return f"/{route}"
    return "static files" if str(scope.get("path", "")).startswith(STATIC_PREFIX) else "none"


def find_method(scope: Mapping[str, Any]) -> str:
    """Return the method; "other" for one that nobody knows."""
    method = str(scope.get("method", ""))
    return method if method in METHODS else "other"


def is_event_stream(message: Message) -> bool:
    """Return whether an answer that begins is one of events, which lasts."""
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )

"""Traces of requests, steps and calls of clusters, where MUSTER_TRACES_URL names a collector.

OpenTelemetry is an optional package: nothing of it is imported while no collector is named.
"""

import importlib
import importlib.util
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from django.conf import settings

AttributeValue = str | int
STOP_SECONDS = 2.0
EXPORT_MODULE = "console.span_export"
PACKAGES = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


class Span(Protocol):
    """One piece of work, while it lasts."""

    def rename(self, name: str) -> None:
        """Give it another name, which was not known when it began."""

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Note something about it."""

    def end(self) -> None:
        """End it before its context does."""


class SpanExport(Protocol):
    """What makes spans and sends them away."""

    def open_span(
        self, name: str, attributes: Mapping[str, AttributeValue], parent: str
    ) -> AbstractContextManager[Span]:
        """Open a span: below the one of this context, or below `parent`, a traceparent."""

    def build_traceparent(self) -> str:
        """Return the span of this context for another process; "" where there is none."""

    def shut_down(self) -> None:
        """Send what was not sent yet."""


class _NoSpan:
    """A span that nobody gets."""

    def rename(self, name: str) -> None:
        pass

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        pass

    def end(self) -> None:
        pass


_NO_SPAN: AbstractContextManager[Span] = nullcontext(_NoSpan())


class Tracing:
    """The traces of this process; none before `start`."""

    def __init__(self) -> None:
        self._export: SpanExport | None = None

    def start(self, process: str) -> None:
        """Make traces from now on, if a collector is named."""
        url = settings.OPTIONS.traces_url
        if url and self._export is None:
            self.use_export(importlib.import_module(EXPORT_MODULE).build_export(process, url))

    def use_export(self, export: SpanExport | None) -> None:
        """Give spans to this export; None makes no more of them."""
        self._export = export

    def stop(self) -> None:
        """Send what was not sent yet, and make no more spans.

        A collector that does not answer is given up after STOP_SECONDS.
        """
        export, self._export = self._export, None
        if export is not None:
            sending = threading.Thread(target=export.shut_down, name="last spans", daemon=True)
            sending.start()
            sending.join(STOP_SECONDS)

    def open_span(
        self, name: str, attributes: Mapping[str, AttributeValue], parent: str = ""
    ) -> AbstractContextManager[Span]:
        """Return a context that is a span, below the one of the current context, or `parent`."""
        if self._export is None:
            return _NO_SPAN
        return self._export.open_span(name, attributes, parent)

    def build_headers(self) -> dict[str, str]:
        """Return the headers of a message that name the current span; none without traces."""
        traceparent = self._export.build_traceparent() if self._export is not None else ""
        return {"traceparent": traceparent} if traceparent else {}


tracing = Tracing()


def find_missing_package() -> str:
    """Return the first package without which there are no traces; "" where all are installed."""
    for name in PACKAGES:
        # In this order: to look for a part of a package that is missing is an error.
        if importlib.util.find_spec(name) is None:
            return name
    return ""

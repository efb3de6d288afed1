"""Spans by OpenTelemetry, sent to a collector by OTLP over HTTP. Imported only where it is used."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from console import VERSION
from console.spans import AttributeValue

TRACES_PATH = "/v1/traces"
_propagator = TraceContextTextMapPropagator()


class ExportedSpan:
    """A span of OpenTelemetry, which ends once."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._has_ended = False

    def rename(self, name: str) -> None:
        """Give it another name."""
        self._span.update_name(name)

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Note something about it."""
        self._span.set_attribute(name, value)

    def end(self) -> None:
        """End it, unless it has ended."""
        if not self._has_ended:
            self._has_ended = True
            self._span.end()


class OpenTelemetryExport:
    """Makes spans and gives them to a processor, which sends them from a thread of its own."""

    def __init__(self, process: str, processor: SpanProcessor) -> None:
        resource = Resource.create(
            {"service.name": f"muster-{process}", "service.version": VERSION}
        )
        # Not the global provider: whatever else the process has loaded gets no spans of ours.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("muster", VERSION)

    @contextmanager
    def open_span(
        self, name: str, attributes: Mapping[str, AttributeValue], parent: str
    ) -> Iterator[ExportedSpan]:
        """Open a span; an error that leaves it is noted by its kind, without its text."""
        context = _propagator.extract({"traceparent": parent}) if parent else None
        span = self._tracer.start_span(name, context=context, attributes=dict(attributes))
        exported = ExportedSpan(span)
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield exported
        except BaseException as error:
            # Texts of errors may name people and what they run.
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            exported.end()

    def build_traceparent(self) -> str:
        """Return the span of this context in the form of the W3C."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def shut_down(self) -> None:
        """Send what was not sent yet."""
        self._provider.shutdown()


def build_export(process: str, url: str) -> OpenTelemetryExport:
    """Build the export to a collector's address, to which the path of traces is added."""
    endpoint = url if url.endswith(TRACES_PATH) else url.rstrip("/") + TRACES_PATH
    return OpenTelemetryExport(process, BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))

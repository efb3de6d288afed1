"""The catalogue of what a process counts of itself. No label names a workload or a person."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

# Twice as many lines, for a moment that each process's start says too.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the package does not say

REGISTRY = CollectorRegistry(auto_describe=True)
"""The figures of this process, before they are labelled with its name."""

ProcessCollector(registry=REGISTRY)

HTTP_REQUESTS = Counter(
    "muster_http_requests",
    "Answered requests. The status is none where the client left before the answer.",
    ["route", "method", "status"],
    registry=REGISTRY,
)
HTTP_SECONDS = Histogram(
    "muster_http_request_seconds",
    "From a request's last byte to the first byte of its answer.",
    ["route", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=REGISTRY,
)
HTTP_OPEN = Gauge(
    "muster_http_requests_open",
    "Requests that are being answered now, streams included.",
    registry=REGISTRY,
)
HTTP_STREAMS = Gauge(
    "muster_http_streams_open",
    "Streams of live pages and logs that are open now.",
    ["route"],
    registry=REGISTRY,
)

STEPS = Counter(
    "muster_steps",
    "Steps that a worker has run, by how they ended: done or failed.",
    ["step", "outcome"],
    registry=REGISTRY,
)
STEP_SECONDS = Histogram(
    "muster_step_seconds",
    "How long a step took.",
    ["step"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300),
    registry=REGISTRY,
)
STEPS_RUNNING = Gauge("muster_steps_running", "Steps that run now.", registry=REGISTRY)
STEPS_SENT = Counter(
    "muster_steps_sent",
    "Steps that were asked for: queued, or refused by the broker and left to the sweep.",
    ["step", "outcome"],
    registry=REGISTRY,
)

JOURNAL_LAG = Histogram(
    "muster_journal_lag_seconds",
    "From the arrival of a write's oldest observation to its commit.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    registry=REGISTRY,
)
JOURNAL_FAILURES = Counter(
    "muster_journal_failures",
    "Writes of observations that the database did not take. They are tried again.",
    registry=REGISTRY,
)

LOG_BYTES = Counter("muster_log_bytes", "Bytes of logs that were captured.", registry=REGISTRY)
LOG_GAPS = Counter(
    "muster_log_gaps", "Places in logs at which something is missing.", registry=REGISTRY
)
LOG_LAG = Histogram(
    "muster_log_lag_seconds",
    "How old the newest line of a piece of a running container's log was once it was captured.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
    registry=REGISTRY,
)

"""How many logs this process reads, as figures of `/metrics`."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from workloads.logbook.capturer import Capturer


class CaptureFigures(Collector):
    """Counts the logs of a process whenever its figures are collected."""

    def __init__(self, capturer: Capturer) -> None:
        self._capturer = capturer

    def collect(self) -> Iterator[Metric]:
        """Return the figures as they are now."""
        streams = GaugeMetricFamily(
            "muster_log_streams_open",
            "Logs of a cluster that are being read.",
            labels=["cluster_id"],
        )
        waiting = GaugeMetricFamily(
            "muster_logs_waiting",
            "Logs of a cluster that wait to be read, or to be tried again.",
            labels=["cluster_id"],
        )
        for work in self._capturer.works:
            collector = work.collector
            label = [str(collector.cluster)]
            streams.add_metric(label, collector.stream_count)
            waiting.add_metric(label, max(0, collector.log_count - collector.stream_count))
        yield from (streams, waiting)

"""How far the journal is, as a figure of `/metrics`."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from workloads.models import Position


def collect_figures() -> Iterator[Metric]:
    """Return the position of the journal. Raises DatabaseError or InterfaceError."""
    position = Position.objects.values_list("value", flat=True).first()
    yield GaugeMetricFamily(
        "muster_journal_position",
        "The number of the journal's last transaction that changed something.",
        value=position or 0,
    )

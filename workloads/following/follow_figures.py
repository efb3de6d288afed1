"""How far the clusters that this process follows are written down, as figures of `/metrics`."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from workloads.following.follower import Follower


class FollowFigures(Collector):
    """Measures the followers of a process whenever its figures are collected."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def collect(self) -> Iterator[Metric]:
        """Return the figures as they are now."""
        age = GaugeMetricFamily(
            "muster_watch_age_seconds",
            "Since that watch of a cluster gave a sign of life which is silent for longest.",
            labels=["cluster_id"],
        )
        waiting = GaugeMetricFamily(
            "muster_journal_waiting",
            "Changes of objects that were seen and are not written yet.",
            labels=["cluster_id"],
        )
        waiting_seconds = GaugeMetricFamily(
            "muster_journal_waiting_seconds",
            "How long the oldest change waits that was seen and is not written yet.",
            labels=["cluster_id"],
        )
        for work in self._follower.works:
            label = [str(work.cluster_id)]
            count, seconds = work.measure_waiting()
            age.add_metric(label, work.measure_watch_age())
            waiting.add_metric(label, count)
            waiting_seconds.add_metric(label, seconds)
        yield from (age, waiting, waiting_seconds)

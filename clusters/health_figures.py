"""How the clusters are, as figures of `/metrics`: one query, however many there are."""

from collections.abc import Iterator

from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from clusters.models import Cluster

MAX_CLUSTERS = 500
"""Clusters with figures, the first by name."""


def collect_figures() -> Iterator[Metric]:
    """Return the figures of the clusters in use. Raises DatabaseError or InterfaceError."""
    rows = list(
        Cluster.objects.in_use()
        .order_by("name", "pk")
        .values_list(
            "pk", "name", "last_seen_at", "unreachable_since", "followed_until", "captured_until"
        )[: MAX_CLUSTERS + 1]
    )
    info = _build_family("info", "The name of a cluster's id.", "cluster_name")
    up = _build_family("up", "Whether a cluster answers.")
    age = _build_family("seen_age_seconds", "Since a cluster last answered.")
    followed = _build_family("followed", "Whether a follow process has the lease of a cluster.")
    captured = _build_family("captured", "Whether a capture process has the lease of a cluster.")
    now = timezone.now()
    for pk, name, seen_at, unreachable_since, followed_until, captured_until in rows[:MAX_CLUSTERS]:
        label = [str(pk)]
        info.add_metric([*label, name], 1)
        up.add_metric(label, seen_at is not None and unreachable_since is None)
        if seen_at is not None:
            age.add_metric(label, max(0.0, (now - seen_at).total_seconds()))
        followed.add_metric(label, followed_until is not None and followed_until > now)
        captured.add_metric(label, captured_until is not None and captured_until > now)
    yield from (info, up, age, followed, captured)
    yield GaugeMetricFamily(
        "muster_clusters_left_out",
        f"Whether there are more than {MAX_CLUSTERS} clusters; those beyond have no figures.",
        value=len(rows) > MAX_CLUSTERS,
    )


def _build_family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"muster_cluster_{name}", text, labels=["cluster_id", *labels])

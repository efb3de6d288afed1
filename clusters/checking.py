"""What a cluster can do and lets us do, kept in its row with its age: asked now and then, and when
a person wants to know.
"""

from datetime import timedelta

from django.utils import timezone

from clusters import probing, reviewing
from clusters.kube import discovery
from clusters.kube.client import Client
from clusters.models import Cluster
from projects.models import Project

PROBED = timedelta(seconds=50)
"""How long what was found out is good: of the heartbeats every second one asks, so that what is
installed is found within a minute.
"""
REVIEWED = timedelta(hours=1)
"""The same for the rights, which take a request each."""
TRIED = 3
"""Namespaces of ours in which a pod is tried."""


def probe(client: Client, cluster: Cluster, about: discovery.About | None = None) -> None:
    """Find out what the cluster can do, and keep it. Raises Unavailable or Unauthorized."""
    about = about or discovery.about(client)
    ready = Project.objects.filter(cluster=cluster, synced_at__isnull=False).order_by("pk")
    found = probing.probe(client, ready.values_list("namespace", flat=True)[:TRIED])
    cluster.capabilities, cluster.findings = found.capabilities.to_json(), found.findings.to_json()
    cluster.platform, cluster.probed_at = probing.platform(about)[:128], timezone.now()
    _keep(cluster, "capabilities", "findings", "platform", "probed_at")


def review(client: Client, cluster: Cluster) -> None:
    """Find out what the credentials may do there, and keep it. Raises Unavailable or
    Unauthorized.
    """
    cluster.permissions, cluster.permissions_at = (
        reviewing.review(client, cluster.can).to_json(),
        timezone.now(),
    )
    _keep(cluster, "permissions", "permissions_at")


def _keep(cluster: Cluster, *fields: str) -> None:
    """Nothing is kept of a cluster that was removed meanwhile."""
    Cluster.objects.there().filter(pk=cluster.pk).update(
        **{name: getattr(cluster, name) for name in fields}
    )


def is_probe_due(cluster: Cluster) -> bool:
    return cluster.probed_at is None or timezone.now() - cluster.probed_at >= PROBED


def is_review_due(cluster: Cluster) -> bool:
    return cluster.permissions_at is None or timezone.now() - cluster.permissions_at >= REVIEWED

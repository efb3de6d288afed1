"""Checks of what a cluster can do and what our credentials may do there. The results are stored in
its row with their age: checked now and then, and when a person asks.
"""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from clusters import capability_probe, permission_review
from clusters.kube import discovery
from clusters.kube.client import Client
from clusters.models import Cluster
from console.encryption import Unreadable
from projects.models import Project

PROBE_INTERVAL = timedelta(seconds=50)
"""How long capabilities stay valid: every second heartbeat probes them, so that what is installed
is found within a minute.
"""
REVIEW_INTERVAL = timedelta(hours=1)
"""How long permissions stay valid; a review takes a request for each."""
MAX_NAMESPACES_TRIED = 3
"""Namespaces of ours in which a pod is tried."""


def update_capabilities(
    client: Client, cluster: Cluster, server_version: discovery.ServerVersion | None = None
) -> None:
    """Probe what the cluster can do, and store it. Raises Unavailable or Unauthorized."""
    server_version = server_version or discovery.fetch_server_version(client)
    ready = Project.objects.filter(cluster=cluster, synced_at__isnull=False).order_by("pk")
    result = capability_probe.probe_cluster(
        client,
        ready.values_list("namespace", flat=True)[:MAX_NAMESPACES_TRIED],
        has_own_scheduler=capability_probe.has_own_scheduler(server_version),
    )
    cluster.capabilities, cluster.findings = (
        result.capabilities.to_json(),
        result.findings.to_json(),
    )
    cluster.platform, cluster.probed_at = (
        capability_probe.describe_platform(server_version)[:128],
        timezone.now(),
    )
    _save_fields(cluster, "capabilities", "findings", "platform", "probed_at")


def update_permissions(client: Client, cluster: Cluster) -> None:
    """Review what the credentials may do there, and store it. Raises Unavailable or
    Unauthorized.
    """
    cluster.permissions, cluster.permissions_at = (
        permission_review.review_permissions(client, cluster.can).to_json(),
        timezone.now(),
    )
    _save_fields(cluster, "permissions", "permissions_at")


def _save_fields(cluster: Cluster, *fields: str) -> None:
    """Store these fields, unless the cluster was removed or got other credentials meanwhile."""
    with transaction.atomic():
        if has_same_credentials(cluster, locks=True):
            Cluster.objects.filter(pk=cluster.pk).update(
                **{name: getattr(cluster, name) for name in fields}
            )


def has_same_credentials(cluster: Cluster, *, locks: bool = False) -> bool:
    """Return whether the cluster is there, with the credentials that it was loaded with.

    With `locks`, within a transaction, nobody gives it others before that ends.
    """
    rows = Cluster.objects.there().filter(pk=cluster.pk)
    if locks:
        rows = rows.select_for_update(no_key=True)
    try:
        row = rows.only("way", "kubeconfig").first()
    except Unreadable:
        return False
    return row is not None and (row.way, row.kubeconfig) == (cluster.way, cluster.kubeconfig)


def is_probe_due(cluster: Cluster) -> bool:
    return cluster.probed_at is None or timezone.now() - cluster.probed_at >= PROBE_INTERVAL


def is_review_due(cluster: Cluster) -> bool:
    # A check that is still outstanding may have been lost with the broker.
    if cluster.permissions_at is None or cluster.check_requested_at is not None:
        return True
    return timezone.now() - cluster.permissions_at >= REVIEW_INTERVAL

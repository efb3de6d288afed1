"""Which process follows which cluster: a lease in the cluster's row, renewed by its holder."""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connections
from django.db.models import Q
from django.utils import timezone

from clusters.models import Cluster
from console import liveness
from console.encryption import Unreadable
from workloads.following.cluster_follower import ClusterFollower

log = logging.getLogger(__name__)

LEASE_DURATION = timedelta(seconds=10)
"""After this time another process may follow a cluster whose follower is silent."""
TICK_SECONDS = 2.0
"""Seconds between two checks of the clusters, and two renewals of a lease."""


@dataclass(slots=True)
class _ClusterLease:
    """The lease of a cluster that this process follows. `renewed_at` is in monotonic seconds."""

    kubeconfig: str
    follower: ClusterFollower
    renewed_at: float = field(default_factory=time.monotonic)


class Follower:
    """Follows every cluster whose lease this process can get, until it is stopped.

    `holder` names the process in the lease.
    """

    def __init__(self, holder: str = "") -> None:
        self.holder = (
            holder or f"{socket.gethostname()[:30]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        )[:64]
        self._leases: dict[uuid.UUID, _ClusterLease] = {}

    @property
    def followed_clusters(self) -> set[uuid.UUID]:
        """Return the ids of the clusters that are followed now."""
        return set(self._leases)

    def run(self, stop: threading.Event) -> None:
        """Follow until `stop` is set; then end everything and give the leases back."""
        try:
            while not stop.is_set():
                self.tick()
                liveness.touch_alive_file()
                stop.wait(TICK_SECONDS)
        finally:
            self._release_leases(list(self._leases))
            connections.close_all()

    def tick(self) -> None:
        """Renew our leases, take free ones, and end those of removed or reconnected clusters."""
        try:
            rows = set(Cluster.objects.in_use().values_list("pk", flat=True))
            for cluster_id in rows:
                self._follow_cluster(cluster_id)
        except (DatabaseError, InterfaceError) as error:
            log.warning("the leases cannot be renewed: %s", error)
            connections.close_all()
            # After LEASE_DURATION another process may follow the cluster. Both would ask it for
            # everything and write the same rows.
            expired = [
                pk
                for pk, lease in self._leases.items()
                if time.monotonic() - lease.renewed_at > LEASE_DURATION.total_seconds()
            ]
            self._stop_following(expired)
            return
        self._stop_following([pk for pk in self._leases if pk not in rows])

    def _follow_cluster(self, cluster_id: uuid.UUID) -> None:
        try:
            row = Cluster.objects.only("kubeconfig", "capabilities").filter(pk=cluster_id).first()
        except Unreadable as error:
            log.error("cluster %s cannot be followed: %s", cluster_id, error)
            row = None
        lease = self._leases.get(cluster_id)
        if row is None:
            self._stop_following([cluster_id])
            return
        # Other credentials may mean another cluster: a new follower lists everything anew.
        if lease is not None and lease.kubeconfig != row.kubeconfig:
            self._stop_following([cluster_id])
            lease = None
        if not self._take_lease(cluster_id):
            self._stop_following([cluster_id])
            return
        if lease is not None:
            lease.renewed_at = time.monotonic()
            lease.follower.update_capabilities(row.can)
            return
        log.info("following cluster %s", cluster_id)
        self._leases[cluster_id] = _ClusterLease(
            row.kubeconfig, ClusterFollower(cluster_id, row.can)
        )
        self._leases[cluster_id].follower.start()

    def _take_lease(self, cluster_id: uuid.UUID) -> bool:
        """Take or renew the lease. Return False while another process has it."""
        now = timezone.now()
        free = Q(followed_by=self.holder) | Q(followed_until=None) | Q(followed_until__lt=now)
        # The condition is part of the UPDATE: of two processes that see a free lease, only one
        # matches it, because the other one waits for the row's lock.
        return (
            Cluster.objects.filter(free, pk=cluster_id).update(
                followed_by=self.holder, followed_until=now + LEASE_DURATION
            )
            == 1
        )

    def _stop_following(self, cluster_ids: Sequence[uuid.UUID]) -> None:
        followers = [self._leases.pop(pk).follower for pk in cluster_ids if pk in self._leases]
        # All are asked first, so that they end at the same time.
        for follower in followers:
            follower.stop()
        for follower in followers:
            follower.join()

    def _release_leases(self, cluster_ids: Sequence[uuid.UUID]) -> None:
        self._stop_following(cluster_ids)
        try:
            Cluster.objects.filter(pk__in=cluster_ids, followed_by=self.holder).update(
                followed_by="", followed_until=None
            )
        except (DatabaseError, InterfaceError) as error:
            log.warning("the leases run out by themselves: %s", error)

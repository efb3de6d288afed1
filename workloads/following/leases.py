"""Which process follows which cluster: a lease in the cluster's row, renewed while its holder
lives.
"""

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
"""After which another process may follow a cluster whose follower is silent."""
TICK_SECONDS = 2.0
"""Seconds between two looks at the clusters, and two renewals of a lease."""


@dataclass(slots=True)
class _ClusterLease:
    """A cluster that this process follows."""

    kubeconfig: str
    follower: ClusterFollower
    renewed_at: float = field(default_factory=time.monotonic)


class Follower:
    """Follows every cluster whose lease this process can get, until it is stopped. `holder` names
    the process in the lease.
    """

    def __init__(self, holder: str = "") -> None:
        self.holder = (
            holder or f"{socket.gethostname()[:30]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        )[:64]
        self._leases: dict[uuid.UUID, _ClusterLease] = {}

    @property
    def followed_clusters(self) -> set[uuid.UUID]:
        """The clusters that are followed now."""
        return set(self._leases)

    def run(self, stop: threading.Event) -> None:
        """Until `stop`; then everything is ended and the leases are given back."""
        try:
            while not stop.is_set():
                self.tick()
                liveness.touch_alive_file()
                stop.wait(TICK_SECONDS)
        finally:
            self._release_leases(list(self._leases))
            connections.close_all()

    def tick(self) -> None:
        """Renew what is held, take what is free, and let go of what is gone or has other
        credentials now.
        """
        try:
            rows = set(Cluster.objects.in_use().values_list("pk", flat=True))
            for cluster_id in rows:
                self._follow_cluster(cluster_id)
        except (DatabaseError, InterfaceError) as error:
            log.warning("the leases cannot be renewed: %s", error)
            connections.close_all()
            late = [
                pk
                for pk, held in self._leases.items()
                if time.monotonic() - held.renewed_at > LEASE_DURATION.total_seconds()
            ]
            self._stop_following(late)
            return
        self._stop_following([pk for pk in self._leases if pk not in rows])

    def _follow_cluster(self, cluster_id: uuid.UUID) -> None:
        try:
            row = Cluster.objects.only("kubeconfig", "capabilities").filter(pk=cluster_id).first()
        except Unreadable as error:
            log.error("cluster %s cannot be followed: %s", cluster_id, error)
            row = None
        held = self._leases.get(cluster_id)
        if row is None:
            self._stop_following([cluster_id])
            return
        if held is not None and held.kubeconfig != row.kubeconfig:
            self._stop_following([cluster_id])
            held = None
        if not self._take_lease(cluster_id):
            self._stop_following([cluster_id])
            return
        if held is not None:
            held.renewed_at = time.monotonic()
            held.follower.update_capabilities(row.can)
            return
        log.info("following cluster %s", cluster_id)
        self._leases[cluster_id] = _ClusterLease(
            row.kubeconfig, ClusterFollower(cluster_id, row.can)
        )
        self._leases[cluster_id].follower.start()

    def _take_lease(self, cluster_id: uuid.UUID) -> bool:
        """Take or renew the lease; False while another process has it."""
        now = timezone.now()
        free = Q(followed_by=self.holder) | Q(followed_until=None) | Q(followed_until__lt=now)
        return (
            Cluster.objects.filter(free, pk=cluster_id).update(
                followed_by=self.holder, followed_until=now + LEASE_DURATION
            )
            == 1
        )

    def _stop_following(self, cluster_ids: Sequence[uuid.UUID]) -> None:
        ending = [self._leases.pop(pk).follower for pk in cluster_ids if pk in self._leases]
        for following in ending:
            following.stop()
        for following in ending:
            following.join()

    def _release_leases(self, cluster_ids: Sequence[uuid.UUID]) -> None:
        self._stop_following(cluster_ids)
        try:
            Cluster.objects.filter(pk__in=cluster_ids, followed_by=self.holder).update(
                followed_by="", followed_until=None
            )
        except (DatabaseError, InterfaceError) as error:
            log.warning("the leases run out by themselves: %s", error)

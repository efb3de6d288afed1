"""Which process does a kind of work for which cluster: leases in the clusters' rows.

Their holders renew them; a lease that runs out may be taken by another process.
"""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Generic, Protocol, TypeVar

from django.db import DatabaseError, InterfaceError, connections
from django.db.models import Q
from django.utils import timezone

from clusters.capabilities import Capabilities
from clusters.models import Cluster
from console.alive_file import touch_alive_file
from console.encryption import Unreadable

log = logging.getLogger(__name__)

LEASE_DURATION = timedelta(seconds=10)
"""After this time another process may take over a cluster whose holder is silent."""
TICK_SECONDS = 2.0
"""Seconds between two checks of the clusters, and two renewals of a lease."""


class LeaseKind(Enum):
    """The kinds of leases, by the prefix of their columns."""

    FOLLOW = "followed"
    CAPTURE = "captured"

    @property
    def holder_column(self) -> str:
        return f"{self.value}_by"

    @property
    def end_column(self) -> str:
        return f"{self.value}_until"

    @property
    def activity(self) -> str:
        """Return in words what its holder does with a cluster."""
        return "following" if self is LeaseKind.FOLLOW else "capturing the logs of"


class ClusterWork(Protocol):
    """What is done for one cluster while its lease is held, in threads of its own."""

    def start(self) -> None:
        """Start the threads; returns at once."""

    def update_capabilities(self, capabilities: Capabilities) -> None:
        """Take over what the cluster can do now."""

    def stop(self) -> None:
        """Ask all threads to end; returns at once."""

    def join(self) -> None:
        """Wait until all threads have ended."""


Work = TypeVar("Work", bound=ClusterWork)


@dataclass(slots=True)
class _ClusterLease(Generic[Work]):
    """The lease of a cluster that this process has. `renewed_at` is in monotonic seconds."""

    kubeconfig: str
    work: Work
    renewed_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _ForeignLease:
    """The lease of another process as we read it first. `read_at` is in monotonic seconds."""

    holder: str
    end: datetime | None
    read_at: float = field(default_factory=time.monotonic, compare=False)


class LeaseHolder(Generic[Work]):
    """Works for every cluster whose lease this process can get, until it is stopped.

    `holder` names the process in the leases.
    """

    def __init__(
        self,
        kind: LeaseKind,
        build_work: Callable[[uuid.UUID, Capabilities], Work],
        holder: str = "",
    ) -> None:
        self.holder = (
            holder or f"{socket.gethostname()[:30]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        )[:64]
        self._kind = kind
        self._build_work = build_work
        self._leases: dict[uuid.UUID, _ClusterLease[Work]] = {}
        self._foreign_leases: dict[uuid.UUID, _ForeignLease] = {}
        self._ending: dict[uuid.UUID, threading.Thread] = {}
        """The threads that wait for the end of stopped works, one a cluster."""

    @property
    def clusters(self) -> set[uuid.UUID]:
        """Return the ids of the clusters whose lease this process has."""
        return set(self._leases)

    @property
    def works(self) -> list[Work]:
        """Return what is done now, a work for each of `clusters`."""
        return [lease.work for lease in list(self._leases.values())]

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; then end everything and give the leases back."""
        try:
            while not stop.is_set():
                self.tick()
                touch_alive_file()
                stop.wait(TICK_SECONDS)
        finally:
            self._release_leases(list(self._leases))
            connections.close_all()

    def tick(self) -> None:
        """Renew our leases, take free ones, and end those of removed or reconnected clusters."""
        try:
            rows = set(Cluster.objects.in_use().values_list("pk", flat=True))
            for cluster_id in rows:
                self._check_cluster(cluster_id)
        except (DatabaseError, InterfaceError) as error:
            log.warning("the leases cannot be renewed: %s", error)
            connections.close_all()
            # After LEASE_DURATION another process may have the cluster. Both would ask it for
            # everything and write the same rows.
            expired = [
                pk
                for pk, lease in self._leases.items()
                if time.monotonic() - lease.renewed_at > LEASE_DURATION.total_seconds()
            ]
            self._stop_work(expired)
            return
        self._stop_work([pk for pk in self._leases if pk not in rows])
        for cluster_id in self._foreign_leases.keys() - rows:
            del self._foreign_leases[cluster_id]

    def _check_cluster(self, cluster_id: uuid.UUID) -> None:
        try:
            row = (
                Cluster.objects.only(
                    "kubeconfig", "capabilities", self._kind.holder_column, self._kind.end_column
                )
                .filter(pk=cluster_id)
                .first()
            )
        except Unreadable as error:
            log.error("%s cluster %s is not possible: %s", self._kind.activity, cluster_id, error)
            row = None
        lease = self._leases.get(cluster_id)
        if row is None:
            self._stop_work([cluster_id])
            return
        # Other credentials may mean another cluster: new work begins from nothing.
        if lease is not None and lease.kubeconfig != row.kubeconfig:
            self._stop_work([cluster_id])
            lease = None
        if self._is_ending(cluster_id):
            # What was stopped may still write, so the lease stays ours; new work waits for its end.
            self._renew_lease(cluster_id)
            return
        if not (self._renew_lease(cluster_id) if lease is not None else self._take_lease(row)):
            self._stop_work([cluster_id])
            return
        if lease is not None:
            lease.renewed_at = time.monotonic()
            lease.work.update_capabilities(row.can)
            return
        log.info("%s cluster %s", self._kind.activity, cluster_id)
        self._leases[cluster_id] = _ClusterLease(
            row.kubeconfig, self._build_work(cluster_id, row.can)
        )
        self._leases[cluster_id].work.start()

    def _renew_lease(self, cluster_id: uuid.UUID) -> bool:
        """Renew our lease. Return False if another process has taken it.

        The work has to stop then, even if that lease were free again: two have worked meanwhile.
        """
        return self._write_lease(cluster_id, Q((self._kind.holder_column, self.holder)))

    def _take_lease(self, row: Cluster) -> bool:
        """Take the lease of a cluster that we do not work for, if it is free or its holder died."""
        holder, end = self._kind.holder_column, self._kind.end_column
        free = Q((holder, self.holder)) | Q((end, None)) | Q((f"{end}__lt", timezone.now()))
        if (dead := self._find_dead_lease(row)) is not None:
            free |= Q((holder, dead.holder), (end, dead.end))
        return self._write_lease(row.pk, free)

    def _find_dead_lease(self, row: Cluster) -> _ForeignLease | None:
        """Return the lease in the row if nobody has renewed it for LEASE_DURATION.

        Its end says that only where clocks agree: that of its holder may be ahead of ours, or have
        been set back since. So the time between two changes is measured by our monotonic clock.
        """
        current = _ForeignLease(
            getattr(row, self._kind.holder_column), getattr(row, self._kind.end_column)
        )
        previous_lease = self._foreign_leases.get(row.pk)
        if previous_lease is None or previous_lease != current:
            self._foreign_leases[row.pk] = current
            return None
        is_dead = time.monotonic() - previous_lease.read_at > LEASE_DURATION.total_seconds()
        return previous_lease if is_dead else None

    def _write_lease(self, cluster_id: uuid.UUID, condition: Q) -> bool:
        # The condition is part of the UPDATE: of two processes that see a free lease, only one
        # matches it, because the other one waits for the row's lock.
        values = {
            self._kind.holder_column: self.holder,
            self._kind.end_column: timezone.now() + LEASE_DURATION,
        }
        return Cluster.objects.filter(condition, pk=cluster_id).update(**values) == 1

    def _stop_work(self, cluster_ids: Sequence[uuid.UUID]) -> None:
        """Ask these works to end; returns at once.

        Their threads may need longer than a lease lasts, in which all others must be renewed.
        """
        for cluster_id in cluster_ids:
            if (lease := self._leases.pop(cluster_id, None)) is None:
                continue
            lease.work.stop()
            self._ending[cluster_id] = threading.Thread(
                target=lease.work.join, name=f"end of {cluster_id}", daemon=True
            )
            self._ending[cluster_id].start()

    def _is_ending(self, cluster_id: uuid.UUID) -> bool:
        thread = self._ending.get(cluster_id)
        if thread is not None and thread.is_alive():
            return True
        self._ending.pop(cluster_id, None)
        return False

    def _release_leases(self, cluster_ids: Sequence[uuid.UUID]) -> None:
        self._stop_work(cluster_ids)
        # Whoever takes the leases must find nobody who still writes.
        ending, self._ending = self._ending, {}
        for thread in ending.values():
            thread.join()
        cluster_ids = [*cluster_ids, *ending]
        holder, end = self._kind.holder_column, self._kind.end_column
        try:
            Cluster.objects.filter(Q((holder, self.holder)), pk__in=cluster_ids).update(
                **{holder: "", end: None}
            )
        except (DatabaseError, InterfaceError) as error:
            log.warning("the leases run out by themselves: %s", error)

"""The clients of this process: one for each cluster, shared by its threads, and made anew when its
credentials have changed.
"""

import os
import threading
import uuid
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings

from clusters.kube import inside
from clusters.kube.access import Access, BadKubeconfig, from_kubeconfig
from clusters.kube.client import Client, Timeouts
from clusters.kube.errors import Unauthorized
from clusters.kube.pace import Pace
from clusters.kube.reach import Reach
from clusters.models import Cluster, Way

TIMEOUTS = Timeouts(connect=3.0, read=15.0, whole=60.0, turn=10.0)
"""A cluster that is there but dead costs one thread a quarter of a minute, and no more."""
PATIENCE = Timeouts(connect=3.0, read=5.0, whole=10.0, turn=5.0)
"""While a person waits for the answer."""

DEPLOYED = "muster"
"""The namespace of deploy/kustomize: Muster's keys are in it, and in a cluster that is managed from
elsewhere the token for that.
"""
_NEEDED = ("way", "kubeconfig", "is_local")


@dataclass(slots=True)
class _Connection:
    way: str
    kubeconfig: str = field(repr=False)
    client: Client


_lock = threading.Lock()
_open: dict[tuple[uuid.UUID, bool], _Connection] = {}
_paces: dict[uuid.UUID, Pace] = {}


def client(cluster: Cluster | uuid.UUID | str, *, can_wait: bool = False) -> Client:
    """The client of a cluster, given as a row or by its id. Nothing is sent.

    What `can_wait` has a client of its own, which leaves half of the turns to the other one:
    hundreds of logs do not delay a listing.

    Raises Unauthorized for credentials that cannot be used: other ones are what helps.
    Cluster.DoesNotExist for an unknown id.
    """
    row = (
        cluster if isinstance(cluster, Cluster) else Cluster.objects.only(*_NEEDED).get(pk=cluster)
    )
    with _lock:
        known = _open.get((row.pk, can_wait))
        if known is not None and (known.way, known.kubeconfig) == (row.way, row.kubeconfig):
            return known.client
        made = _connect(row, can_wait)
        _open[row.pk, can_wait] = _Connection(row.way, row.kubeconfig, made)
    if known is not None:
        known.client.close()
    return made


def ahead(cluster_id: uuid.UUID) -> timedelta:
    """By how much a cluster's clock is ahead of ours, as far as this process has heard it. Nothing
    is sent.
    """
    with _lock:
        known = _open.get((cluster_id, False))
    return known.client.skew.ahead if known is not None else timedelta(0)


def close_all() -> None:
    """Give every connection back; who asks for a client after that gets a new one."""
    with _lock:
        connections = list(_open.values())
        _open.clear()
        _paces.clear()
    for connection in connections:
        connection.client.close()


def reach(*, is_local: bool = False) -> Reach:
    """Which addresses a cluster may have here, beside public ones. The embedded one is on this
    machine, where `up` started it.
    """
    return (
        Reach(loopback=True)
        if is_local
        else Reach(
            private=settings.OPTIONS.private_clusters, loopback=settings.OPTIONS.local_clusters
        )
    )


def access_of(way: str, kubeconfig: str) -> Access:
    """How a cluster that was added in this way is reached. Raises BadKubeconfig."""
    return (
        inside.access(os.environ, settings.SERVICE_ACCOUNT)
        if way == Way.INSIDE
        else from_kubeconfig(kubeconfig)
    )


def own_namespaces() -> frozenset[str]:
    """Muster's own, which no project is given: where it runs, and where its credentials are in the
    clusters that it manages.
    """
    return frozenset({DEPLOYED, inside.namespace(settings.SERVICE_ACCOUNT)} - {""})


def tried(way: str, kubeconfig: str, *, is_local: bool = False) -> Client:
    """A client of its own for a person who waits, whose credentials need not be saved. Close it.
    Raises BadKubeconfig.
    """
    return _client(way, kubeconfig, is_local, Pace(), PATIENCE)


def _connect(row: Cluster, can_wait: bool) -> Client:
    rate = settings.OPTIONS.kube_rate
    # Kept when the client is made anew: it is the same cluster that is spared.
    pace = _paces.setdefault(row.pk, Pace(rate, max(1, int(2 * rate))))
    leave = int(rate) if can_wait else 0
    try:
        return _client(row.way, row.kubeconfig, row.is_local, pace, TIMEOUTS, leave)
    except BadKubeconfig as error:
        raise Unauthorized(f"the cluster's kubeconfig cannot be used: {error}") from error


def _client(
    way: str, kubeconfig: str, is_local: bool, pace: Pace, timeouts: Timeouts, leave: int = 0
) -> Client:
    if way == Way.INSIDE:
        token = inside.FreshToken(settings.SERVICE_ACCOUNT)
        return Client(
            access_of(way, kubeconfig), pace=pace, timeouts=timeouts, leave=leave, token=token
        )
    return Client(
        access_of(way, kubeconfig),
        pace=pace,
        timeouts=timeouts,
        leave=leave,
        bars=reach(is_local=is_local).bars,
    )

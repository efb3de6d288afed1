"""The clients of this process: one for each cluster, shared by its threads, and made anew when the kubeconfig has changed."""

import threading
import uuid
from dataclasses import dataclass

from django.conf import settings

from clusters.kube.access import BadKubeconfig, from_kubeconfig
from clusters.kube.client import Client, Timeouts
from clusters.kube.errors import Unauthorized
from clusters.kube.pace import Pace
from clusters.models import Cluster

TIMEOUTS = Timeouts(connect=3.0, read=15.0, whole=60.0, turn=10.0)
"""A cluster that is there but dead costs one thread a quarter of a minute, and no more."""


@dataclass(slots=True)
class _Connection:
    kubeconfig: str
    client: Client


_lock = threading.Lock()
_open: dict[uuid.UUID, _Connection] = {}
_paces: dict[uuid.UUID, Pace] = {}


def client(cluster: Cluster | uuid.UUID | str) -> Client:
    """The client of a cluster, given as a row or by its id. Nothing is sent.

    Raises Unauthorized for a kubeconfig that cannot be used: other credentials are what helps. Cluster.DoesNotExist for an unknown id.
    """
    row = cluster if isinstance(cluster, Cluster) else Cluster.objects.only("kubeconfig").get(pk=cluster)
    with _lock:
        known = _open.get(row.pk)
        if known is not None and known.kubeconfig == row.kubeconfig:
            return known.client
        made = _connect(row)
        _open[row.pk] = _Connection(row.kubeconfig, made)
    if known is not None:
        known.client.close()
    return made


def close_all() -> None:
    """Give every connection back; who asks for a client after that gets a new one."""
    with _lock:
        connections = list(_open.values())
        _open.clear()
        _paces.clear()
    for connection in connections:
        connection.client.close()


def _connect(row: Cluster) -> Client:
    try:
        access = from_kubeconfig(row.kubeconfig)
    except BadKubeconfig as error:
        raise Unauthorized(f"the cluster's kubeconfig cannot be used: {error}") from error
    rate = settings.OPTIONS.kube_rate
    # Kept when the client is made anew: it is the same cluster that is spared.
    pace = _paces.setdefault(row.pk, Pace(rate, max(1, int(2 * rate))))
    return Client(access, pace=pace, timeouts=TIMEOUTS)

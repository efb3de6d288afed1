"""The clients of this process: one for each cluster, shared by its threads, and replaced when its
credentials have changed.
"""

import os
import threading
import uuid
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings

from clusters.kube import in_cluster
from clusters.kube.access import BadKubeconfig, ClusterAccess, parse_kubeconfig
from clusters.kube.address_policy import ClusterAddressPolicy
from clusters.kube.client import DEFAULT_CONNECTIONS, Client, Timeouts
from clusters.kube.errors import Unauthorized
from clusters.kube.rate_limits import RateLimiter
from clusters.models import Cluster, ConnectionWay

TIMEOUTS = Timeouts(connect=3.0, read=15.0, total=60.0, rate_limit=10.0)
"""A cluster that exists but is dead costs one thread a quarter of a minute at most."""
TRIAL_TIMEOUTS = Timeouts(connect=3.0, read=5.0, total=10.0, rate_limit=5.0)
"""The timeouts while a person waits for the answer."""
TRIAL_REQUESTS = 250
"""Requests that a trial sends without waiting for turns: it asks for each permission once."""

DEPLOY_NAMESPACE = "muster"
"""The namespace of deploy/kustomize. Muster's keys are in it, and in a remotely managed cluster the
token for Muster.
"""
_CONNECTION_FIELDS = ("way", "kubeconfig", "is_local")


@dataclass(slots=True)
class _Connection:
    way: str
    kubeconfig: str = field(repr=False)
    client: Client


_lock = threading.Lock()
_connections: dict[tuple[uuid.UUID, int], _Connection] = {}
_rate_limiters: dict[uuid.UUID, RateLimiter] = {}


def get_client(cluster: Cluster | uuid.UUID | str, *, streams: int = 0) -> Client:
    """Return the client of a cluster, given as a row or by its id. Nothing is sent.

    With `streams` it is a separate client whose pool has a connection for each of so many open
    answers, beside those for short requests.

    Raises Unauthorized for credentials that cannot be used (only other ones help) and
    Cluster.DoesNotExist for an unknown id.
    """
    row = (
        cluster
        if isinstance(cluster, Cluster)
        else Cluster.objects.only(*_CONNECTION_FIELDS).get(pk=cluster)
    )
    with _lock:
        connection = _connections.get((row.pk, streams))
        if connection is not None and (connection.way, connection.kubeconfig) == (
            row.way,
            row.kubeconfig,
        ):
            return connection.client
        new_client = _connect_client(row, streams)
        _connections[row.pk, streams] = _Connection(row.way, row.kubeconfig, new_client)
    # Closed outside the lock, and only its idle connections: threads that still use it finish.
    if connection is not None:
        connection.client.close()
    return new_client


def clock_offset(cluster_id: uuid.UUID) -> timedelta:
    """Return how far a cluster's clock is ahead of ours, as far as this process knows. Nothing is
    sent.
    """
    with _lock:
        connection = _connections.get((cluster_id, 0))
    return connection.client.clock_skew.offset if connection is not None else timedelta(0)


def close_all() -> None:
    """Close every client; the next call of `get_client` makes a new one."""
    with _lock:
        connections = list(_connections.values())
        _connections.clear()
        _rate_limiters.clear()
    for connection in connections:
        connection.client.close()


def address_policy(*, is_local: bool = False) -> ClusterAddressPolicy:
    """Return which addresses a cluster may have here, beside public ones.

    The embedded cluster is on this machine, where `up` started it.
    """
    return (
        ClusterAddressPolicy(loopback=True)
        if is_local
        else ClusterAddressPolicy(
            private=settings.OPTIONS.private_clusters, loopback=settings.OPTIONS.local_clusters
        )
    )


def build_access(way: str, kubeconfig: str) -> ClusterAccess:
    """Return the access of a cluster that was added in this way. Raises BadKubeconfig."""
    return (
        in_cluster.build_access(os.environ, settings.SERVICE_ACCOUNT)
        if way == ConnectionWay.INSIDE
        else parse_kubeconfig(kubeconfig)
    )


def own_namespaces() -> frozenset[str]:
    """Return Muster's own namespaces, which no project may use.

    They are the one where it runs, and the one that holds its credentials in the clusters that it
    manages.
    """
    return frozenset(
        {DEPLOY_NAMESPACE, in_cluster.read_own_namespace(settings.SERVICE_ACCOUNT)} - {""}
    )


def open_trial_client(way: str, kubeconfig: str, *, is_local: bool = False) -> Client:
    """Return a separate client for a person who waits; its credentials need not be saved. Close it.
    Raises BadKubeconfig.
    """
    return _build_client(
        way, kubeconfig, is_local, RateLimiter(burst=TRIAL_REQUESTS), TRIAL_TIMEOUTS
    )


def _connect_client(row: Cluster, streams: int) -> Client:
    rate = settings.OPTIONS.kube_rate
    # The rate limiter outlives the client: new credentials lead to the same cluster.
    rate_limiter = _rate_limiters.setdefault(row.pk, RateLimiter(rate, max(1, int(2 * rate))))
    try:
        return _build_client(row.way, row.kubeconfig, row.is_local, rate_limiter, TIMEOUTS, streams)
    except BadKubeconfig as error:
        raise Unauthorized(f"the cluster's kubeconfig cannot be used: {error}") from error


def _build_client(
    way: str,
    kubeconfig: str,
    is_local: bool,
    rate_limiter: RateLimiter,
    timeouts: Timeouts,
    streams: int = 0,
) -> Client:
    if way == ConnectionWay.INSIDE:
        folder = settings.SERVICE_ACCOUNT
        return Client(
            build_access(way, kubeconfig),
            rate_limiter=rate_limiter,
            timeouts=timeouts,
            connections=DEFAULT_CONNECTIONS + streams,
            get_token=in_cluster.ServiceAccountFile(folder / in_cluster.TOKEN_FILE),
            get_authority=in_cluster.ServiceAccountFile(folder / in_cluster.AUTHORITY_FILE),
        )
    return Client(
        build_access(way, kubeconfig),
        rate_limiter=rate_limiter,
        timeouts=timeouts,
        connections=DEFAULT_CONNECTIONS + streams,
        find_address_problem=address_policy(is_local=is_local).find_ip_problem,
    )

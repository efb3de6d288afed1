"""A trial of a connection while a person waits: what answers, in which version, and what is missing
there. Nothing of it is stored.
"""

import time
from dataclasses import dataclass, field

from clusters import capability_probe, cluster_twins, connections, nodes, permission_review
from clusters.kube import discovery
from clusters.kube.access import BadKubeconfig
from clusters.kube.errors import KubeError
from clusters.models import Cluster, ConnectionWay
from clusters.permission_review import PermissionReview
from clusters.prerequisites import Prerequisite, PrerequisiteState, list_prerequisites
from clusters.querysets import ClusterQuerySet
from console.encryption import Unreadable

TRIAL_SECONDS = 15.0
"""Seconds after which nothing more is asked."""
REVIEWS_AT_ONCE = 8
"""Questions about permissions that are asked at the same time, for a person waits."""


@dataclass(frozen=True, slots=True)
class ConnectionTrial:
    """The result of a trial. `trouble` says why there is no connection, "" where there is one."""

    trouble: str = ""
    version: str = ""
    platform: str = ""
    nodes: int | None = None
    """How many nodes there are; None where they may not be listed."""
    prerequisites: tuple[Prerequisite, ...] = ()
    review: PermissionReview = field(default_factory=PermissionReview)
    twins: tuple[str, ...] = ()
    """The names of clusters that were added already and are this one, of those that are visible."""

    @property
    def twin_warning(self) -> str:
        return cluster_twins.describe_twins(self.twins)

    @property
    def missing_prerequisites(self) -> list[Prerequisite]:
        return [each for each in self.prerequisites if each.state is PrerequisiteState.MISSING]


def try_connection(
    way: str,
    kubeconfig: str,
    visible: ClusterQuerySet,
    *,
    is_local: bool = False,
    cluster: Cluster | None = None,
) -> ConnectionTrial:
    """Connect, and ask what the cluster can do. Raises nothing.

    `visible` are the clusters that may be named to the person. `cluster` is the one whose
    connection it is or is to be, if it was added already.

    It takes a few seconds, and about twenty at most with a cluster that is slow or dead.
    """
    deadline = time.monotonic() + TRIAL_SECONDS
    try:
        if way != ConnectionWay.INSIDE:
            connections.address_policy(is_local=is_local).check_server(
                connections.build_access(way, kubeconfig).server
            )
        with connections.open_trial_client(way, kubeconfig, is_local=is_local) as client:
            server_version = discovery.fetch_server_version(client)
            probe = capability_probe.probe_cluster(
                client, has_own_scheduler=capability_probe.has_own_scheduler(server_version)
            )
            gpu_presence: list[bool] | None
            try:
                gpu_presence = nodes.fetch_gpu_presence(client, deadline)
            except KubeError:
                # The permission review reports that nodes may not be listed.
                gpu_presence = None
            review = permission_review.review_permissions(
                client, probe.capabilities, deadline, at_once=REVIEWS_AT_ONCE
            )
    except BadKubeconfig as error:
        return ConnectionTrial(str(error))
    except KubeError as error:
        return ConnectionTrial(f"{error.message[:1].upper()}{error.message[1:]}.")
    prerequisites = tuple(
        list_prerequisites(probe.capabilities, probe.findings, gpu_presence or ())
    )
    others = visible.exclude(pk=cluster and cluster.pk)
    node_count = None if gpu_presence is None else len(gpu_presence)
    return ConnectionTrial(
        version=server_version.version,
        platform=capability_probe.describe_platform(server_version),
        nodes=node_count,
        prerequisites=prerequisites,
        review=review,
        twins=tuple(cluster_twins.find_known(probe.findings.uid, others)),
    )


def try_stored_connection(cluster: Cluster, visible: ClusterQuerySet) -> ConnectionTrial:
    """Try the connection with the stored credentials of a cluster."""
    try:
        return try_connection(
            cluster.way, cluster.kubeconfig, visible, is_local=cluster.is_local, cluster=cluster
        )
    except Unreadable as error:
        return ConnectionTrial(f"The stored credentials cannot be read. {error}")

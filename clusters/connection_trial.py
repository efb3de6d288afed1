"""A trial of a connection while a person waits: what answers, in which version, and what is missing
there. Nothing of it is stored.
"""

import time
from dataclasses import dataclass, field

from clusters import capability_probe, connections, nodes, permission_review
from clusters.kube import discovery
from clusters.kube.access import BadKubeconfig
from clusters.kube.errors import KubeError
from clusters.models import Cluster, ConnectionWay
from clusters.permission_review import PermissionReview
from clusters.prerequisites import Prerequisite, PrerequisiteState, list_prerequisites
from console.encryption import Unreadable

TRIAL_SECONDS = 15.0
"""Seconds after which nothing more is asked."""


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

    @property
    def missing_prerequisites(self) -> list[Prerequisite]:
        return [each for each in self.prerequisites if each.state is PrerequisiteState.MISSING]


def try_connection(way: str, kubeconfig: str, *, is_local: bool = False) -> ConnectionTrial:
    """Connect, and ask what the cluster can do. Raises nothing.

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
            probe = capability_probe.probe_cluster(client)
            gpu_presence: list[bool] | None
            try:
                gpu_presence = nodes.fetch_gpu_presence(client, deadline)
            except KubeError:
                # The permission review reports that nodes may not be listed.
                gpu_presence = None
            review = permission_review.review_permissions(client, probe.capabilities, deadline)
    except BadKubeconfig as error:
        return ConnectionTrial(str(error))
    except KubeError as error:
        return ConnectionTrial(f"{error.message[:1].upper()}{error.message[1:]}.")
    prerequisites = tuple(
        list_prerequisites(probe.capabilities, probe.findings, gpu_presence or ())
    )
    node_count = None if gpu_presence is None else len(gpu_presence)
    return ConnectionTrial(
        version=server_version.version,
        platform=capability_probe.describe_platform(server_version),
        nodes=node_count,
        prerequisites=prerequisites,
        review=review,
    )


def try_stored_connection(cluster: Cluster) -> ConnectionTrial:
    """Try the connection with the stored credentials of a cluster."""
    try:
        return try_connection(cluster.way, cluster.kubeconfig, is_local=cluster.is_local)
    except Unreadable as error:
        return ConnectionTrial(f"The stored credentials cannot be read. {error}")

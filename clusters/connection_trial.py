"""A connection that is tried while a person waits: what answers, which version, and what is missing
there. Nothing of it is kept.
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
    """How it went: `trouble` says why there is no connection, "" where there is one."""

    trouble: str = ""
    version: str = ""
    platform: str = ""
    nodes: int | None = None
    """How many there are; None where they may not be listed."""
    prerequisites: tuple[Prerequisite, ...] = ()
    review: PermissionReview = field(default_factory=PermissionReview)

    @property
    def missing_prerequisites(self) -> list[Prerequisite]:
        return [each for each in self.prerequisites if each.state is PrerequisiteState.MISSING]


def try_connection(way: str, kubeconfig: str, *, is_local: bool = False) -> ConnectionTrial:
    """Connect and ask. It takes a few seconds, and no more than some twenty with a cluster that is
    slow or dead; it raises nothing.
    """
    until = time.monotonic() + TRIAL_SECONDS
    try:
        if way != ConnectionWay.INSIDE:
            connections.address_policy(is_local=is_local).check_server(
                connections.build_access(way, kubeconfig).server
            )
        with connections.open_trial_client(way, kubeconfig, is_local=is_local) as client:
            about = discovery.fetch_server_version(client)
            found = capability_probe.probe_cluster(client)
            offering: list[bool] | None
            try:
                offering = nodes.fetch_gpu_presence(client, until)
            except KubeError:
                # What may not be listed is among the rights.
                offering = None
            review = permission_review.review_permissions(client, found.capabilities, until)
    except BadKubeconfig as error:
        return ConnectionTrial(str(error))
    except KubeError as error:
        return ConnectionTrial(f"{error.message[:1].upper()}{error.message[1:]}.")
    told = tuple(list_prerequisites(found.capabilities, found.findings, offering or ()))
    seen = None if offering is None else len(offering)
    return ConnectionTrial(
        version=about.version,
        platform=capability_probe.describe_platform(about),
        nodes=seen,
        prerequisites=told,
        review=review,
    )


def try_stored_connection(cluster: Cluster) -> ConnectionTrial:
    """The same with the credentials that a cluster has."""
    try:
        return try_connection(cluster.way, cluster.kubeconfig, is_local=cluster.is_local)
    except Unreadable as error:
        return ConnectionTrial(f"The stored credentials cannot be read. {error}")

"""A connection that is tried while a person waits: what answers, which version, and what is missing
there. Nothing of it is kept.
"""

import time
from dataclasses import dataclass, field

from clusters import connections, nodes, probing, reviewing
from clusters.kube import discovery
from clusters.kube.access import BadKubeconfig
from clusters.kube.errors import KubeError
from clusters.models import Cluster, Way
from clusters.prerequisites import Mark, Prerequisite, prerequisites
from clusters.reviewing import Review
from console.encryption import Unreadable

PATIENCE = 15.0
"""Seconds after which nothing more is asked."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How it went: `trouble` says why there is no connection, "" where there is one."""

    trouble: str = ""
    version: str = ""
    platform: str = ""
    nodes: int | None = None
    """How many there are; None where they may not be listed."""
    prerequisites: tuple[Prerequisite, ...] = ()
    review: Review = field(default_factory=Review)

    @property
    def missing(self) -> list[Prerequisite]:
        return [each for each in self.prerequisites if each.mark is Mark.MISSING]


def tried(way: str, kubeconfig: str, *, is_local: bool = False) -> Trial:
    """Connect and ask. It takes a few seconds, and no more than some twenty with a cluster that is
    slow or dead; it raises nothing.
    """
    until = time.monotonic() + PATIENCE
    try:
        if way != Way.INSIDE:
            connections.reach(is_local=is_local).check(
                connections.access_of(way, kubeconfig).server
            )
        with connections.tried(way, kubeconfig, is_local=is_local) as client:
            about = discovery.about(client)
            found = probing.probe(client)
            offering: list[bool] | None
            try:
                offering = nodes.offering(client, until)
            except KubeError:
                # What may not be listed is among the rights.
                offering = None
            review = reviewing.review(client, found.capabilities, until)
    except BadKubeconfig as error:
        return Trial(str(error))
    except KubeError as error:
        return Trial(f"{error.message[:1].upper()}{error.message[1:]}.")
    told = tuple(prerequisites(found.capabilities, found.findings, offering or ()))
    seen = None if offering is None else len(offering)
    return Trial(
        version=about.version,
        platform=probing.platform(about),
        nodes=seen,
        prerequisites=told,
        review=review,
    )


def stored(cluster: Cluster) -> Trial:
    """The same with the credentials that a cluster has."""
    try:
        return tried(cluster.way, cluster.kubeconfig, is_local=cluster.is_local)
    except Unreadable as error:
        return Trial(f"The stored credentials cannot be read. {error}")

"""What Muster does in a cluster, verb by verb and why: the permission review asks for it, and the
deployed roles grant it. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from clusters.job_kinds import ADAPTERS, JOBS, TRAINJOBS
from clusters.job_kinds.adapter import OPERATORS
from clusters.kube.resources import (
    CLUSTERTRAININGRUNTIMES,
    EVENTS,
    NAMESPACES,
    NODE_METRICS,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    POD_METRICS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    STORAGECLASSES,
    Resource,
)


@dataclass(frozen=True, slots=True)
class Need:
    """One verb on one kind, in all namespaces, and its purpose."""

    verb: str
    resource: Resource
    subresource: str
    why: str

    @property
    def kind(self) -> str:
        """The kind as RBAC and `kubectl auth can-i` spell it: pods, pods/log, jobs.batch."""
        name = (
            f"{self.resource.plural}.{self.resource.group}"
            if self.resource.group
            else self.resource.plural
        )
        return f"{name}/{self.subresource}" if self.subresource else name


_SCALED_JOBS = [
    each for framework in ADAPTERS.values() for each in framework.kinds[:1] if each.scaled_type
]
_JOBS = sorted(
    (*(each.kinds[0] for each in ADAPTERS.values()), TRAINJOBS, JOBS),
    key=lambda each: OPERATORS.index(each.operator),
)
"""The kinds of a workload's job. Permissions know no versions, so MPIJob is here once."""

_RESUMED_JOBS = [
    each
    for each in _JOBS
    if each in (TRAINJOBS, JOBS)
    or any(
        each is framework.kinds[0] and "data_delivery" in framework.options
        for framework in ADAPTERS.values()
    )
]
"""The kinds of those that may wait for their data."""

_WATCH_VERBS = {"list": "finds what is there", "watch": "sees every change at once"}
_JOB_VERBS = {
    "get": "looks at one",
    **_WATCH_VERBS,
    "create": "launches workloads",
    "delete": "stops and deletes workloads",
}
_KEEP_VERBS = {
    "get": "sees whose it is",
    "list": "sees that all is as it should be",
    "create": "makes it",
    "patch": "keeps it as it should be",
}
_MANAGE_VERBS = {**_KEEP_VERBS, "delete": "removes it with the project"}
_CLAIM_VERBS = {
    "get": "looks at one",
    "list": "finds what is there",
    "create": "makes new volumes",
    "delete": "deletes them with workloads",
}

_SERVICE_VERBS = {
    "get": "looks at one",
    "create": "names the data workers of a workload",
    "delete": "removes it with them",
}

_VERBS_BY_KIND: tuple[tuple[Resource, str, dict[str, str]], ...] = (
    *((kind, "", _JOB_VERBS) for kind in _JOBS),
    *((kind, "", {"patch": "resumes one that waited for its data"}) for kind in _RESUMED_JOBS),
    *(
        (kind, "scale", {"patch": "gives elastic workloads more workers, or fewer"})
        for kind in _SCALED_JOBS
    ),
    (
        PODS,
        "",
        {
            "get": "looks at one",
            **_WATCH_VERBS,
            "create": "asks, as a dry run, whether GPUs are shared, and what a workload may have",
            "delete": "tidies up",
            "deletecollection": "removes all pods of a workload at once",
        },
    ),
    (PODS, "log", {"get": "reads logs"}),
    (EVENTS, "", _WATCH_VERBS),
    (PODGROUPS, "", {"get": "sees why a workload waits", **_WATCH_VERBS}),
    (PERSISTENTVOLUMECLAIMS, "", _CLAIM_VERBS),
    (SERVICES, "", _SERVICE_VERBS),
    (NAMESPACES, "", _MANAGE_VERBS),
    (QUEUES, "", _MANAGE_VERBS),
    (SECRETS, "", _MANAGE_VERBS),
    (SERVICEACCOUNTS, "", _KEEP_VERBS),
    (
        PRIORITYCLASSES,
        "",
        {"list": "sees which priorities there are", "create": "makes those that are missing"},
    ),
    (NODES, "", {"list": "shows the nodes and what is free on them"}),
    (NODE_METRICS, "", {"list": "measures the CPU and memory that nodes use"}),
    (POD_METRICS, "", {"list": "measures the CPU and memory that pods use"}),
    (STORAGECLASSES, "", {"list": "offers them for new volumes"}),
    (CLUSTERTRAININGRUNTIMES, "", {"list": "sees what Trainer v2 can run"}),
)


def _build_needs() -> Iterator[Need]:
    for resource, subresource, verbs in _VERBS_BY_KIND:
        for verb, why in verbs.items():
            yield Need(verb, resource, subresource, why)


NEEDED: tuple[Need, ...] = tuple(_build_needs())
"""Everything that Muster asks of a cluster. Discovery, and the question what it may do, need no
permission.
"""

"""What a cluster says of itself: its version, the kinds it serves, and what it lets us do. Every call raises KubeError and nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from clusters.kube import frames
from clusters.kube.client import Client
from clusters.kube.errors import Unavailable, bounded
from clusters.kube.resources import ACCESS_REVIEWS, Resource

T = TypeVar("T")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
"""One answer for all groups, from Kubernetes 1.30 on; an older server gives its plain lists, and then each version is asked."""


@dataclass(frozen=True, slots=True)
class Served:
    """One kind that a cluster serves, in one version."""

    resource: Resource
    kind: str
    verbs: frozenset[str]
    subresources: frozenset[str]


class _About(msgspec.Struct):
    gitVersion: str  # noqa: N815 - the API's spelling


class _Allowed(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Allowed


class _Kind(msgspec.Struct):
    kind: str = ""


class _Sub(msgspec.Struct):
    subresource: str


class _Discovered(msgspec.Struct):
    resource: str
    scope: str
    verbs: list[str] | None = None
    responseKind: _Kind | None = None  # noqa: N815 - the API's spelling
    subresources: list[_Sub] | None = None


class _Version(msgspec.Struct):
    version: str
    resources: list[_Discovered] | None = None


class _Meta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Meta
    versions: list[_Version] | None = None


class _Groups(msgspec.Struct):
    items: list[_Group]


class _PlainResource(msgspec.Struct):
    name: str
    namespaced: bool
    kind: str
    verbs: list[str] | None = None


class _PlainVersion(msgspec.Struct):
    resources: list[_PlainResource]


class _PlainGroup(msgspec.Struct):
    name: str
    versions: list[_Version]


class _PlainGroups(msgspec.Struct):
    kind: str = ""
    groups: list[_PlainGroup] | None = None
    versions: list[str] | None = None


def access_review(
    client: Client, verb: str, resource: Resource, *, namespace: str | None = None, name: str = "", subresource: str = ""
) -> bool:
    """Whether these credentials may do that; over all namespaces when none is given."""
    attributes = {
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "subresource": subresource,
        "namespace": namespace or "",
        "name": name,
    }
    review = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
    return _read(client.send("POST", ACCESS_REVIEWS.path(), body=review), _Review).status.allowed


def version(client: Client) -> str:
    """The version of the server as one shows it, such as v1.34.9."""
    return bounded(_read(client.send("GET", "/version"), _About).gitVersion)


def discovery(client: Client) -> list[Served]:
    """Everything that the cluster serves. Two requests, or one for each group and version of an old server. Raises KubeError."""
    return [served for root in ("/api", "/apis") for served in _below(client, root)]


def _below(client: Client, root: str) -> Iterator[Served]:
    body = client.send("GET", root, accept=AGGREGATED)
    plain = _read(body, _PlainGroups)
    if plain.kind == "APIGroupDiscoveryList":
        return _aggregated(_read(body, _Groups))
    return _plain(client, root, plain)


def _aggregated(groups: _Groups) -> Iterator[Served]:
    for group in groups.items:
        for version in group.versions or ():
            for found in version.resources or ():
                resource = Resource(group.metadata.name, version.version, found.resource, found.scope == "Namespaced")
                below = frozenset(sub.subresource for sub in found.subresources or ())
                yield Served(resource, found.responseKind.kind if found.responseKind else "", frozenset(found.verbs or ()), below)


def _plain(client: Client, root: str, groups: _PlainGroups) -> Iterator[Served]:
    asked = [("", version) for version in groups.versions or ()]
    asked += [(group.name, version.version) for group in groups.groups or () for version in group.versions]
    for group, version in asked:
        path = f"{root}/{group}/{version}" if group else f"{root}/{version}"
        found = _read(client.send("GET", path), _PlainVersion).resources
        below: dict[str, set[str]] = {}
        for entry in found:
            name, _, sub = entry.name.partition("/")
            below.setdefault(name, set()).update({sub} - {""})
        for entry in found:
            if "/" not in entry.name:
                resource = Resource(group, version, entry.name, entry.namespaced)
                yield Served(resource, entry.kind, frozenset(entry.verbs or ()), frozenset(below[entry.name]))


def _read(body: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except frames.BAD_JSON as error:
        raise Unavailable("the cluster's answer cannot be read", status=200, detail=str(error)) from error

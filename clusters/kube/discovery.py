"""What a cluster reports about itself: its version, the kinds it serves, and what our credentials
may do. Every call raises KubeError and nothing else.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from clusters.kube import frames
from clusters.kube.client import Client
from clusters.kube.errors import Unavailable, limit_text
from clusters.kube.resources import ACCESS_REVIEWS, SELF_REVIEWS, Resource

T = TypeVar("T")

AGGREGATED_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
)
"""The Accept header that asks for all groups in one answer, which Kubernetes gives from 1.30 on. An
older server answers with its plain lists, and each version is fetched then.
"""


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One kind that a cluster serves, in one version."""

    resource: Resource
    kind: str
    verbs: frozenset[str]
    subresources: frozenset[str]


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The version of a server, such as v1.34.9, and its platform, such as linux/amd64."""

    version: str
    platform: str = ""


class _VersionAnswer(msgspec.Struct):
    gitVersion: str  # noqa: N815 - the API's spelling
    platform: str = ""


class _AccessReviewStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessReviewStatus


class _UserInfo(msgspec.Struct):
    username: str = ""


class _SelfReviewStatus(msgspec.Struct):
    userInfo: _UserInfo = msgspec.field(default_factory=_UserInfo)  # noqa: N815 - the API's spelling


class _SelfReview(msgspec.Struct):
    status: _SelfReviewStatus = msgspec.field(default_factory=_SelfReviewStatus)


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _Subresource(msgspec.Struct):
    subresource: str


class _DiscoveredResource(msgspec.Struct):
    resource: str
    scope: str
    verbs: list[str] | None = None
    responseKind: _ResponseKind | None = None  # noqa: N815 - the API's spelling
    subresources: list[_Subresource] | None = None


class _Version(msgspec.Struct):
    version: str
    resources: list[_DiscoveredResource] | None = None
    freshness: str = ""


class _Meta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Meta
    versions: list[_Version] | None = None


class _Groups(msgspec.Struct):
    items: list[_Group]


class _GroupVersionKind(msgspec.Struct, frozen=True):
    group: str = ""
    kind: str = ""
    version: str = ""


class _Spec(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}


class _Properties(msgspec.Struct):
    spec: _Spec | None = None


class _Schema(msgspec.Struct):
    kinds: list[_GroupVersionKind] = msgspec.field(
        name="x-kubernetes-group-version-kind", default_factory=list
    )
    properties: _Properties = msgspec.field(default_factory=_Properties)


class _Components(msgspec.Struct):
    schemas: dict[str, msgspec.Raw] = {}


class _OpenApi(msgspec.Struct):
    components: _Components = msgspec.field(default_factory=_Components)


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


def review_access(
    client: Client,
    verb: str,
    resource: Resource,
    *,
    namespace: str | None = None,
    name: str = "",
    subresource: str = "",
) -> bool:
    """Return whether our credentials may do this; in all namespaces when none is given."""
    attributes = {
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "subresource": subresource,
        "namespace": namespace or "",
        "name": name,
    }
    review = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return _parse_body(
        client.send("POST", ACCESS_REVIEWS.path(), body=review), _AccessReview
    ).status.allowed


def fetch_username(client: Client) -> str:
    """Return the name under which the cluster knows our credentials."""
    body = {"apiVersion": SELF_REVIEWS.api_version, "kind": "SelfSubjectReview"}
    return limit_text(
        _parse_body(
            client.send("POST", SELF_REVIEWS.path(), body=body), _SelfReview
        ).status.userInfo.username
    )


def fetch_server_version(client: Client) -> ServerVersion:
    """Return the server's version and platform."""
    answer = _parse_body(client.send("GET", "/version"), _VersionAnswer)
    return ServerVersion(limit_text(answer.gitVersion), limit_text(answer.platform))


def fetch_spec_fields(client: Client, resource: Resource, kind: str) -> frozenset[str]:
    """Return the names of the fields that the spec of a custom kind has in this cluster.

    They differ between releases of one API version.
    """
    body = client.send("GET", f"/openapi/v3/apis/{resource.api_version}")
    for raw in _parse_body(body, _OpenApi).components.schemas.values():
        schema = _parse_body(raw, _Schema)
        if (
            any(
                each == _GroupVersionKind(resource.group, kind, resource.version)
                for each in schema.kinds
            )
            and schema.properties.spec is not None
        ):
            return frozenset(map(limit_text, schema.properties.spec.properties))
    return frozenset()


def fetch_served_kinds(client: Client, versions: Container[str] | None = None) -> list[ServedKind]:
    """Return everything that the cluster serves. Raises KubeError.

    It takes two requests, or one for each group and version of an old server. An old server is
    asked only for `versions` ("v1", "batch/v1"), where they are given.
    """
    return [
        served
        for root in ("/api", "/apis")
        for served in _fetch_kinds_below(client, root, versions)
    ]


def _fetch_kinds_below(
    client: Client, root: str, versions: Container[str] | None
) -> Iterator[ServedKind]:
    body = client.send("GET", root, accept=AGGREGATED_ACCEPT)
    plain = _parse_body(body, _PlainGroups)
    if plain.kind == "APIGroupDiscoveryList":
        return _parse_aggregated(_parse_body(body, _Groups))
    return _fetch_plain_kinds(client, root, plain, versions)


def _parse_aggregated(groups: _Groups) -> Iterator[ServedKind]:
    for group in groups.items:
        for version in group.versions or ():
            if version.freshness == "Stale":
                # The aggregated API server behind it, such as metrics-server, does not answer: the
                # list is what it served earlier.
                continue
            for discovered in version.resources or ():
                resource = Resource(
                    group.metadata.name,
                    version.version,
                    discovered.resource,
                    discovered.scope == "Namespaced",
                )
                subresources = frozenset(sub.subresource for sub in discovered.subresources or ())
                yield ServedKind(
                    resource,
                    discovered.responseKind.kind if discovered.responseKind else "",
                    frozenset(discovered.verbs or ()),
                    subresources,
                )


def _fetch_plain_kinds(
    client: Client, root: str, groups: _PlainGroups, versions: Container[str] | None
) -> Iterator[ServedKind]:
    group_versions = [("", version) for version in groups.versions or ()]
    group_versions += [
        (group.name, version.version) for group in groups.groups or () for version in group.versions
    ]
    for group, version in dict.fromkeys(group_versions):
        api_version = f"{group}/{version}" if group else version
        if versions is not None and api_version not in versions:
            continue
        entries = _parse_body(client.send("GET", f"{root}/{api_version}"), _PlainVersion).resources
        subresources: dict[str, set[str]] = {}
        for entry in entries:
            name, _, sub = entry.name.partition("/")
            subresources.setdefault(name, set()).update({sub} - {""})
        for entry in entries:
            if "/" not in entry.name:
                resource = Resource(group, version, entry.name, entry.namespaced)
                yield ServedKind(
                    resource,
                    entry.kind,
                    frozenset(entry.verbs or ()),
                    frozenset(subresources[entry.name]),
                )


def _parse_body(body: bytes | msgspec.Raw, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except frames.DECODE_ERRORS as error:
        raise Unavailable(
            "the cluster's answer cannot be read", status=200, detail=str(error)
        ) from error

"""Discovery: /api, /apis and what is below them, plain and aggregated, built once from the
registry.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from localkube import errors
from localkube.api import negotiation, reviews, yaml_text
from localkube.api.http_messages import ApiCall, Response
from localkube.metadata import Object
from localkube.resources.resource import Resource

AGGREGATED_FORMS = (negotiation.DISCOVERY_V2, negotiation.DISCOVERY_V2BETA1)
PREFERRED_VERSIONS = ("v1", "v2", "v1beta1")


@dataclass(frozen=True, slots=True)
class _DiscoveryEntry:
    """One resource as discovery lists it.

    `subresources` are by name, each as it appears in an APIResourceList.
    """

    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[tuple[str, Object], ...] = ()


class DiscoveryHandler:
    """Answers discovery.

    `resources` is everything in the registry; the reviews, which are stored nowhere, are added.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._entries: dict[tuple[str, str], list[_DiscoveryEntry]] = {}
        for resource in resources:
            self._entries.setdefault((resource.group, resource.version), []).append(
                _build_entry(resource)
            )
        for (group, version, plural), kind in reviews.REVIEW_KINDS.items():
            is_namespaced = kind in reviews.NAMESPACED_KINDS
            entry = _DiscoveryEntry(plural, kind.lower(), kind, is_namespaced, ("create",))
            self._entries.setdefault((group, version), []).append(entry)

    def answer(self, call: ApiCall) -> Response:
        """Answer the GET of any discovery path. Raises ApiError: 404 for what is not served, 405,
        406.
        """
        if call.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed_error()
        parts = call.parts
        if parts in (("api",), ("apis",)):
            return self._answer_root(call, is_core=parts == ("api",))
        accepted = negotiation.choose_media(call.headers.get("accept", ""))
        if parts[0] == "api" and len(parts) == 2:
            document = self._find_resource_list("", parts[1])
        elif len(parts) == 2:
            document = self._find_group(parts[1])
        elif len(parts) == 3 and parts[0] == "apis":
            document = self._find_resource_list(parts[1], parts[2])
        else:
            document = None
        if document is None:
            raise errors.no_such_path_error()
        return _build_response(document, accepted.yaml)

    def _answer_root(self, call: ApiCall, *, is_core: bool) -> Response:
        accepted = negotiation.choose_media(call.headers.get("accept", ""), AGGREGATED_FORMS)
        if accepted.form != negotiation.PLAIN_FORM:
            body, etag = self._aggregated_documents[is_core, accepted.form[2]]
            headers = [("etag", etag), ("vary", "Accept"), ("cache-control", "public")]
            if call.headers.get("if-none-match", "").strip() == etag:
                return Response(304, content_type="", headers=headers)
            kind = (
                "application/json;g=apidiscovery.k8s.io;"
                f"v={accepted.form[2]};as=APIGroupDiscoveryList"
            )
            return Response(body=body, content_type=kind, headers=headers)
        if is_core:
            host = call.headers.get("host", "127.0.0.1")
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
            return _build_response(
                {
                    "kind": "APIVersions",
                    "versions": ["v1"],
                    "serverAddressByClientCIDRs": addresses,
                },
                accepted.yaml,
            )
        groups = [
            _build_group(group, versions)
            for group, versions in self._versions_by_group.items()
            if group
        ]
        return _build_response(
            {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}, accepted.yaml
        )

    @cached_property
    def _versions_by_group(self) -> dict[str, list[str]]:
        """The versions of each group, the preferred one first."""
        groups: dict[str, list[str]] = {}
        for group, version in self._entries:
            groups.setdefault(group, []).append(version)
        return {group: sorted(versions, key=_rank_version) for group, versions in groups.items()}

    @cached_property
    def _aggregated_documents(self) -> dict[tuple[bool, str], tuple[bytes, str]]:
        """Body and ETag of both roots in both versions, by (is core, version)."""
        documents = {}
        for core in (True, False):
            items = [
                self._build_aggregated_group(group)
                for group in self._versions_by_group
                if (group == "") is core
            ]
            for version in ("v2", "v2beta1"):
                api_version = f"apidiscovery.k8s.io/{version}"
                value = {
                    "kind": "APIGroupDiscoveryList",
                    "apiVersion": api_version,
                    "metadata": {},
                    "items": items,
                }
                body = msgspec.json.encode(value)
                documents[core, version] = body, f'"{hashlib.sha512(body).hexdigest().upper()}"'
        return documents

    def _build_aggregated_group(self, group: str) -> Object:
        versions = []
        for version in self._versions_by_group[group]:
            entries = [
                _build_aggregated_entry(entry, group, version)
                for entry in self._entries[group, version]
            ]
            versions.append({"version": version, "resources": entries, "freshness": "Current"})
        return {"metadata": {"name": group} if group else {}, "versions": versions}

    def _find_group(self, group: str) -> Object | None:
        if not group or group not in self._versions_by_group:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1"} | _build_group(
            group, self._versions_by_group[group]
        )

    def _find_resource_list(self, group: str, version: str) -> Object | None:
        entries = self._entries.get((group, version))
        if entries is None:
            return None
        head: Object = {"kind": "APIResourceList"}
        if group:
            head["apiVersion"] = "v1"
        head["groupVersion"] = f"{group}/{version}" if group else version
        return head | {
            "resources": [line for entry in entries for line in _build_resource_lines(entry)]
        }


def _build_response(value: Object, as_yaml: bool) -> Response:
    if as_yaml:
        return Response(body=yaml_text.dump_yaml(value), content_type="application/yaml")
    return Response(body=msgspec.json.encode(value) + b"\n")


def _rank_version(version: str) -> tuple[int, str]:
    if version in PREFERRED_VERSIONS:
        return PREFERRED_VERSIONS.index(version), version
    return len(PREFERRED_VERSIONS), version


def _build_group(group: str, versions: list[str]) -> Object:
    version_entries = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in versions
    ]
    return {"name": group, "versions": version_entries, "preferredVersion": version_entries[0]}


def _build_entry(resource: Resource) -> _DiscoveryEntry:
    subresources = []
    for name, sub in resource.subresources.items():
        line: Object = {"group": sub.group, "version": sub.version} if sub.group else {}
        subresources.append(
            (name, line | {"kind": sub.kind or resource.kind, "verbs": list(sub.verbs)})
        )
    return _DiscoveryEntry(
        resource.plural,
        resource.singular,
        resource.kind,
        resource.namespaced,
        resource.verbs,
        resource.short_names,
        resource.categories,
        tuple(subresources),
    )


def _build_resource_lines(entry: _DiscoveryEntry) -> Iterable[Object]:
    """Yield a resource and its subresources, as an APIResourceList has them."""
    line: Object = {
        "name": entry.plural,
        "singularName": entry.singular,
        "namespaced": entry.namespaced,
    }
    line |= {"kind": entry.kind, "verbs": list(entry.verbs)}
    yield line | _build_names(entry)
    for name, sub in entry.subresources:
        yield {
            "name": f"{entry.plural}/{name}",
            "singularName": "",
            "namespaced": entry.namespaced,
        } | sub


def _build_names(entry: _DiscoveryEntry) -> Object:
    names: dict[str, Any] = {}
    if entry.short_names:
        names["shortNames"] = list(entry.short_names)
    if entry.categories:
        names["categories"] = list(entry.categories)
    return names


def _build_aggregated_entry(entry: _DiscoveryEntry, group: str, version: str) -> Object:
    line: Object = {
        "resource": entry.plural,
        "responseKind": {"group": group, "version": version, "kind": entry.kind},
        "scope": "Namespaced" if entry.namespaced else "Cluster",
        "singularResource": entry.singular,
        "verbs": list(entry.verbs),
    } | _build_names(entry)
    if entry.subresources:
        line["subresources"] = [
            _build_aggregated_subresource(name, sub, group, version)
            for name, sub in entry.subresources
        ]
    return line


def _build_aggregated_subresource(name: str, sub: Object, group: str, version: str) -> Object:
    kind = {
        "group": sub.get("group", group),
        "version": sub.get("version", version),
        "kind": sub["kind"],
    }
    return {"subresource": name, "responseKind": kind, "verbs": sub["verbs"]}

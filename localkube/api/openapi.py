"""/openapi: enough of the documents for `kubectl apply` to validate and `kubectl explain` to
explain.

Per group and version: for each kind its paths with the operations' kinds and the patch operation's
parameters, and its schema. A document is built when it is first asked for.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from localkube import errors, schemas
from localkube.api import negotiation
from localkube.api.http_messages import ApiCall, Response
from localkube.metadata import Object
from localkube.resources.resource import Resource

PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
"""The media types of a patch that the documents name.

Strategic merge is left out: kubectl would compute it from the schema, whose merge keys are not
carried; it knows the kinds itself.
"""

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_PROTOBUF_CONTENT = V2_PROTOBUF.replace("@", ".")
"""What kubectl asks for before it applies or creates a `kind: List`, and what names the answer.

An `@` in a Content-Type is refused by Go's parser.
"""

PATCH_PARAMETERS = (
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
)

ACTIONS = {"create": "post", "update": "put"}
"""The action that a document names for a verb; the others are called as the verb."""


class OpenApiHandler:
    """Answers the OpenAPI paths for `resources`."""

    def __init__(self, resources: Iterable[Resource], version: str) -> None:
        self._info = {"title": "localkube", "version": version}
        self._groups: dict[str, list[Resource]] = {}
        for resource in resources:
            self._groups.setdefault(_build_root_path(resource), []).append(resource)
        self._document = cache(self._build_document)

    def answer(self, call: ApiCall) -> Response:
        """Answer the GET of /openapi/v2, the /openapi/v3 index, or one of its documents.

        Raises ApiError: 404, 405, 406.
        """
        if call.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed_error()
        _, *rest = call.parts
        if rest == ["v2"]:
            return self._answer_v2(call.headers.get("accept", ""))
        if rest == ["v3"]:
            paths = {
                root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={self._document(root)[1]}"}
                for root in self._groups
            }
            return Response(body=msgspec.json.encode({"paths": paths}))
        root = "/".join(rest[1:])
        if rest[:1] != ["v3"] or root not in self._groups:
            raise errors.no_such_path_error()
        negotiation.choose_media(call.headers.get("accept", ""))
        body, digest = self._document(root)
        headers = [("etag", f'"{digest}"'), ("vary", "Accept")]
        if call.headers.get("if-none-match", "").strip() == f'"{digest}"':
            return Response(304, content_type="", headers=headers)
        return Response(body=body, headers=headers)

    def _answer_v2(self, accept: str) -> Response:
        """Answer with a document without kinds: clients then leave validation to the server."""
        if V2_PROTOBUF in (media.partition(";")[0].strip() for media in accept.split(",")):
            return Response(body=_encode_v2_document(self._info), content_type=V2_PROTOBUF_CONTENT)
        negotiation.choose_media(accept)
        document = {"swagger": "2.0", "info": self._info, "paths": {}, "definitions": {}}
        return Response(body=msgspec.json.encode(document))

    def _build_document(self, root: str) -> tuple[bytes, str]:
        """Build the document of a group and version, with its digest."""
        paths: Object = {}
        components: Object = {}
        for resource in self._groups[root]:
            paths |= _build_paths(root, resource)
            components[_build_schema_name(resource)] = _build_schema(resource)
        document = {
            "openapi": "3.0.0",
            "info": self._info,
            "paths": paths,
            "components": {"schemas": components},
        }
        body = msgspec.json.encode(document)
        return body, hashlib.sha512(body).hexdigest().upper()


def _encode_v2_document(info: Mapping[str, str]) -> bytes:
    """Encode the Document of gnostic's `openapi_v2`: its version, and the Info of the server."""
    title_and_version = _encode_field(1, info["title"].encode()) + _encode_field(
        2, info["version"].encode()
    )
    return _encode_field(1, b"2.0") + _encode_field(2, title_and_version)


def _encode_field(number: int, content: bytes) -> bytes:
    """Encode a field of protobuf that holds a text or a message, as short as these are."""
    assert len(content) < 128
    return bytes((number << 3 | 2, len(content))) + content


def _build_root_path(resource: Resource) -> str:
    return (
        f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"
    )


def _build_paths(root: str, resource: Resource) -> Object:
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"/{root}{scope}/{resource.plural}"
    paths: Object = {collection: _build_operations(resource, {"get": "list", "post": "create"})}
    paths[f"{collection}/{{name}}"] = _build_operations(
        resource, {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
    )
    return paths


def _build_operations(resource: Resource, verbs: dict[str, str]) -> Object:
    """Build the operations of a path.

    The patch has its parameters: kubectl looks there for fieldValidation before it trusts the
    server.
    """
    operations: Object = {}
    for method, verb in verbs.items():
        if verb not in resource.verbs:
            continue
        operation: dict[str, Any] = {
            "x-kubernetes-action": ACTIONS.get(verb, verb),
            "x-kubernetes-group-version-kind": _build_group_version_kind(resource),
            "responses": {"200": {"description": "OK"}},
        }
        if method in ("patch", "post", "put"):
            operation["parameters"] = [
                {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}
                for name, kind in PATCH_PARAMETERS
            ]
        if method == "patch":
            operation["requestBody"] = {
                "content": {media: {"schema": {"type": "object"}} for media in PATCH_TYPES}
            }
        operations[method] = operation
    return operations


def _build_group_version_kind(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _build_schema_name(resource: Resource) -> str:
    if "." in resource.group:
        prefix = ".".join(reversed(resource.group.split(".")))
    else:
        prefix = f"io.k8s.api.{resource.group or 'core'}"
    return f"{prefix}.{resource.version}.{resource.kind}"


def _build_schema(resource: Resource) -> Object:
    root: Object = (
        schemas.load_schema(resource.schema).root if resource.schema else {"type": "object"}
    )
    return {**root, "x-kubernetes-group-version-kind": [_build_group_version_kind(resource)]}

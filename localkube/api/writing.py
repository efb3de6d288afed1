"""The verbs create, update and patch: from a body to a verb of `objects`, and its result back.

A patch reads, applies and stores without giving up the loop in between, so it cannot conflict with
anybody and retries nothing.
"""

from dataclasses import replace
from typing import Any, Literal, cast

import msgspec

from localkube import errors, field_ownership, patch, schemas, strategic_merge
from localkube.api import bodies, negotiation, protobuf
from localkube.api.http_messages import ApiCall, Response
from localkube.api.negotiation import SUPPORTED_MEDIA_TYPES
from localkube.api.paging import check_options
from localkube.api.reading import ITEM_FORMS, build_object_response
from localkube.errors import Cause
from localkube.metadata import Object, deep_copy
from localkube.objects import Objects, WriteRequest
from localkube.resources.resource import Resource

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
CUSTOM_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
"""The patches of a custom kind; a built-in kind takes a strategic merge patch, too."""

MAX_MANAGER_BYTES = 128
FIELD_VALIDATIONS = ("Ignore", "Strict", "Warn")
MAX_WARNED_BYTES = 64 << 10
"""Most bytes of a body whose keys that come twice are warned about.

To find them takes up to twice as long as to decode the body, and everybody waits meanwhile: 40 to
80 ms for each MB.
"""


class WriteHandler:
    """Answers create, update and patch."""

    def __init__(self, objects: Objects, reader: bodies.BodyReader) -> None:
        self._objects = objects
        self._body_reader = reader

    async def create(
        self, call: ApiCall, resource: Resource, namespace: str, name: str = ""
    ) -> Response:
        """Answer a POST.

        `name` is that of the path: on one of a custom resource a POST creates (recorded
        `409-post-on-named-resource`).
        """
        request = parse_write_request(call, "CreateOptions")
        check_acceptable(call)
        obj = await self._read_object(call, resource, request)
        if name and isinstance(obj.setdefault("metadata", {}), dict):
            obj["metadata"].setdefault("name", name)
        created = self._objects.create(resource, namespace, obj, request)
        return await build_object_response(call, resource, created, 201)

    async def update(
        self, call: ApiCall, resource: Resource, namespace: str, name: str, subresource: str
    ) -> Response:
        """Answer a PUT."""
        request = parse_write_request(call, "UpdateOptions")
        check_acceptable(call)
        obj = await self._read_object(call, resource, request)
        _check_name(obj, name)
        updated = self._objects.update(
            resource, namespace, name, obj, subresource=subresource, request=request
        )
        return await build_object_response(call, resource, updated)

    async def patch(
        self, call: ApiCall, resource: Resource, namespace: str, name: str, subresource: str
    ) -> Response:
        """Answer a PATCH of any of the four types; an apply creates an absent object."""
        media = get_patch_type(call, resource)
        request = parse_write_request(call, "PatchOptions", is_apply=media == APPLY_PATCH)
        check_acceptable(call)
        raw = await self._body_reader.read_body(call)
        change = await decode_patch(raw, media, resource)
        if media != JSON_PATCH:
            check_duplicates(raw, resource, request)
        # No await from here on: nobody writes between read and update, so nothing is retried.
        if media == APPLY_PATCH:
            return await self._apply_configuration(
                call, resource, namespace, name, subresource, change, request
            )
        current = self._objects.get(resource, namespace, name)
        patched = apply_patch(resource, current, change, media)
        try:
            updated = self._objects.update(
                resource, namespace, name, patched, subresource=subresource, request=request
            )
        except errors.StrictDecodingError as error:
            # A real server blames the patch, not the object (apiserver `handlers/patch.go`).
            quoted = msgspec.json.encode(patched).decode()
            raise errors.invalid_error(
                "", "", "", [errors.invalid_cause("patch", f'"{quoted}"', error.detail)]
            ) from error
        return await build_object_response(call, resource, updated)

    async def _apply_configuration(
        self,
        call: ApiCall,
        resource: Resource,
        namespace: str,
        name: str,
        subresource: str,
        intent: Object,
        request: WriteRequest,
    ) -> Response:
        _check_intent(resource, intent, namespace, name)
        _check_declared(resource, intent, namespace, name)
        current = self._objects.find(resource, namespace, name)
        if current is None and subresource:
            raise errors.not_found_error(resource.group, resource.plural, name)
        if current is None:
            _check_may_create(resource, intent, name)
        merged = field_ownership.apply_configuration(
            current,
            intent,
            manager=request.field_manager,
            force=call.query.flag("force"),
            subresource=subresource,
            api_version=resource.api_version,
            schema=schemas.load_schema(resource.schema).root if resource.schema else None,
        )
        # The merged object has its managedFields already: the verbs must not track them again.
        untracked = replace(request, field_manager="", has_final_owners=True)
        if current is None:
            return await build_object_response(
                call, resource, self._objects.create(resource, namespace, merged, untracked), 201
            )
        updated = self._objects.update(
            resource, namespace, name, merged, subresource=subresource, request=untracked
        )
        return await build_object_response(call, resource, updated)

    async def _read_object(
        self, call: ApiCall, resource: Resource, request: WriteRequest
    ) -> Object:
        media = bodies.get_media_type(call)
        if resource.custom and media == protobuf.MEDIA_TYPE:
            raise errors.unsupported_media_type_error(SUPPORTED_MEDIA_TYPES[:2])
        raw = await self._body_reader.read_body(call)
        obj = await bodies.decode_body(raw, media, resource.kind)
        if not isinstance(obj, dict):
            why = (
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{_name_go_type(obj)} into Go value"
            )
            raise bodies.unrecognized_error(resource.kind, why, raw)
        if resource.custom and not obj.get("kind"):
            raise bodies.unrecognized_error(
                resource.kind, f"Object 'Kind' is missing in '{bodies.summarize_body(raw)}'", raw
            )
        if media in ("", *bodies.JSON_TYPES):
            check_duplicates(raw, resource, request)
        return obj


def parse_write_request(call: ApiCall, options: str, *, is_apply: bool = False) -> WriteRequest:
    """Parse the query that every write shares.

    Raises ApiError 422 about `options`, a kind such as CreateOptions, for what it forbids.
    """
    query = call.query
    causes: list[Cause] = []
    dry_run = query.texts("dryRun")
    if any(value != "All" for value in dry_run):
        quoted = ", ".join(f'"{value[:64]}"' for value in dry_run)
        causes.append(
            Cause(
                "FieldValueNotSupported",
                f'Unsupported value: []string{{{quoted}}}: supported values: "All"',
                "dryRun",
            )
        )
    validation = query.text("fieldValidation") or "Warn"
    if validation not in FIELD_VALIDATIONS:
        causes.append(
            errors.unsupported_cause("fieldValidation", validation[:64], ("", *FIELD_VALIDATIONS))
        )
    manager = query.text("fieldManager")
    if len(manager.encode()) > MAX_MANAGER_BYTES:
        causes.append(
            Cause(
                "FieldValueTooLong",
                f"Too long: may not be more than {MAX_MANAGER_BYTES} bytes",
                "fieldManager",
            )
        )
    elif not manager.isprintable():
        causes.append(
            errors.invalid_cause(
                "fieldManager", f'"{manager}"', "should only contain printable characters"
            )
        )
    if is_apply and not manager:
        causes.append(errors.required_cause("fieldManager", "is required for apply patch"))
    if options == "PatchOptions" and not is_apply and "force" in query:
        causes.append(errors.forbidden_cause("force", "may not be specified for non-apply patch"))
    check_options(causes, options)
    return WriteRequest(
        field_manager=manager or default_field_manager(call),
        dry_run=bool(dry_run),
        field_validation=cast(Literal["Ignore", "Warn", "Strict"], validation),
        warnings=call.warnings,
    )


def default_field_manager(call: ApiCall) -> str:
    """Return the manager of a write that names none: the User-Agent up to its slash.

    The source is apiserver `prefixFromUserAgent`.
    """
    agent = call.headers.get("user-agent", "").partition("/")[0]
    return (
        "".join(character for character in agent if character.isprintable())[:MAX_MANAGER_BYTES]
        or "unknown"
    )


def check_acceptable(call: ApiCall) -> None:
    """Check, before a write is done, that the client accepts its answer. Raises ApiError 406."""
    negotiation.choose_media(call.headers.get("accept", ""), ITEM_FORMS)


def get_patch_type(call: ApiCall, resource: Resource) -> str:
    """Return the media type of a patch.

    Raises ApiError 415, which for a custom kind lists the supported types.
    """
    media = bodies.get_media_type(call)
    if resource.custom:
        if media not in CUSTOM_PATCHES:
            raise errors.unsupported_media_type_error(CUSTOM_PATCHES)
    elif media not in (*CUSTOM_PATCHES, STRATEGIC_MERGE_PATCH):
        raise errors.unroutable_media_type_error()
    return media


async def decode_patch(raw: bytes, media: str, resource: Resource) -> Any:
    """Decode a patch. Raises ApiError 400."""
    if media == APPLY_PATCH:
        return await bodies.decode_yaml(raw, resource.kind)
    try:
        change = bodies.parse_json(raw)
    except ValueError as error:
        raise errors.bad_request_error(f"error decoding patch: {error}") from error
    if media != JSON_PATCH and not isinstance(change, dict):
        why = (
            f"json: cannot unmarshal {_name_go_type(change)} into Go value of type "
            f"map[string]interface {{}}"
        )
        raise errors.bad_request_error(f"error decoding patch: {why}")
    return change


def apply_patch(resource: Resource, current: Object, change: Any, media: str) -> Object:
    """Apply a merge, JSON or strategic patch to an object. Raises ApiError: 400, 413, 422."""
    if media == JSON_PATCH:
        patched = patch.apply_json_patch(current, change)
    elif media == STRATEGIC_MERGE_PATCH:
        patched = strategic_merge.apply_strategic_merge_patch(current, change)
    else:
        patched = patch.apply_merge_patch(current, change)
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise errors.unprocessable_error()
    return patched


def check_duplicates(raw: bytes, resource: Resource, request: WriteRequest) -> None:
    """Refuse or report keys that come twice in one JSON object, as the request says.

    Strict validation looks at every body, a warning comes for one of MAX_WARNED_BYTES at most.
    Raises ApiError 400 for strict validation.
    """
    is_warned = request.field_validation == "Warn" and len(raw) <= MAX_WARNED_BYTES
    if not is_warned and request.field_validation != "Strict":
        return
    # Not in a thread: requests that wait for one keep body and object, which no bound counts.
    problems = [f'duplicate field "{path}"' for path in bodies.find_duplicate_fields(raw)]
    if problems and request.field_validation == "Strict":
        raise errors.StrictDecodingError(resource.kind, resource.version, problems)
    request.warnings.extend(problems)


def _check_name(obj: Object, name: str) -> None:
    """Check that the object of a PUT has the name of the URL (apiserver `checkName`)."""
    metadata = obj.get("metadata")
    body_name = metadata.get("name") if isinstance(metadata, dict) else None
    if not body_name:
        raise errors.bad_request_error(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if body_name != name:
        raise errors.bad_request_error(
            f"the name of the object ({body_name}) does not match the name on the URL ({name})"
        )


def _check_intent(resource: Resource, intent: Any, namespace: str, name: str) -> None:
    """Check that an applied object says what it is and claims no ownership. Raises ApiError 400."""
    if not isinstance(intent, dict) or not intent.get("kind") or not intent.get("apiVersion"):
        raise errors.bad_request_error(
            "error decoding YAML: Object 'Kind' and 'apiVersion' must be set in an applied "
            "configuration"
        )
    if (intent["apiVersion"], intent["kind"]) != (resource.api_version, resource.kind):
        raise errors.wrong_object_type_error(
            str(intent["apiVersion"]), str(intent["kind"]), resource.api_version, resource.kind
        )
    metadata = intent.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise errors.bad_request_error("error decoding YAML: metadata must be an object")
    if metadata.get("managedFields") is not None:
        raise errors.bad_request_error("metadata.managedFields must be nil")
    if metadata.setdefault("name", name) != name:
        raise errors.bad_request_error(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})"
        )
    if resource.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise errors.bad_request_error(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_declared(resource: Resource, intent: Object, namespace: str, name: str) -> None:
    """Refuse an applied object that has fields unknown to its kind.

    The API server merges by the schema, so it cannot drop them, whatever fieldValidation says.
    Raises ApiError 500.
    """
    if not resource.schema:
        return
    unknown = schemas.load_schema(resource.schema).prune(deep_copy(intent))
    if unknown:
        raise errors.undeclared_fields_error(
            resource.api_version, resource.kind, namespace, name, unknown
        )


def _check_may_create(resource: Resource, intent: Object, name: str) -> None:
    """Check that an apply may create what it names: not one object of old.

    Raises ApiError 409 for a uid, which nothing has (apiserver `applyPatch`). A version is not
    looked at.
    """
    uid = intent["metadata"].get("uid")
    if uid:
        why = (
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was "
            "found"
        )
        raise errors.conflict_error(resource.group, resource.plural, name, why)
    intent["metadata"].pop("resourceVersion", None)


def _name_go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {str: "string", int: "number", float: "number", list: "array"}.get(type(value), "null")

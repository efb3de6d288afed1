"""The verbs delete and deletecollection, and the eviction of a pod."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, cast

from localkube import errors, lifecycle
from localkube.api import bodies, negotiation
from localkube.api.http_messages import (
    ApiCall,
    QueryParameters,
    Response,
    created_response,
    json_response,
)
from localkube.api.negotiation import AcceptedMedia
from localkube.api.paging import check_options, parse_page_request, wait_for_version
from localkube.api.reading import (
    build_object_response,
    cut_page,
    join_chunks,
    list_stored_records,
)
from localkube.api.representations import (
    Representation,
    choose_representation,
    encode_bare_object,
)
from localkube.api.selection import parse_selection
from localkube.api.writing import check_acceptable, default_field_manager, parse_write_request
from localkube.disruption import mark_disrupted
from localkube.errors import Cause
from localkube.lifecycle import DeleteOptions, PropagationPolicy
from localkube.metadata import Object
from localkube.objects import Deletion, Objects, WriteRequest
from localkube.resources.resource import Resource
from localkube.store import Record

BATCH_SIZE = 25
"""Objects of a collection that are deleted in one transaction.

Other requests run between two transactions.
"""

PROPAGATION_POLICIES = ("Background", "Foreground", "Orphan")
EVICTION_VERSIONS = ("policy/v1", "policy/v1beta1")
"""The versions of an Eviction that a real server takes (`EvictionREST.AcceptsGroupVersion`)."""


class DeleteHandler:
    """Answers delete, deletecollection and the eviction of a pod."""

    def __init__(self, objects: Objects, reader: bodies.BodyReader) -> None:
        self._objects = objects
        self._body_reader = reader

    async def delete(
        self, call: ApiCall, resource: Resource, namespace: str, name: str
    ) -> Response:
        """Delete an object; answer with a Status when it is removed, else with the object.

        Pods, namespaces and services are always answered themselves.
        """
        check_acceptable(call)
        options, request = await self._read_delete_options(call)
        deletion = self._objects.delete(resource, namespace, name, options, request)
        return await _answer_deletion(call, resource, deletion)

    async def delete_collection(
        self, call: ApiCall, resource: Resource, namespace: str | None
    ) -> Response:
        """Delete what a list with the same query shows, page by page too, and answer with it.

        Raises ApiError: what a list and what a delete raise.
        """
        negotiation.choose_media(call.headers.get("accept", ""))
        selection = parse_selection(resource, namespace, call.query)
        page = parse_page_request(call.query, namespace)
        options, request = await self._read_delete_options(call)
        store = self._objects.store
        await wait_for_version(store, max(page.minimum_version, page.exact_version or 0))
        records = list_stored_records(store, resource, namespace, page)
        chosen, meta = cut_page(records, selection, page, page.exact_version or store.rv)
        form = choose_representation(resource, AcceptedMedia(), "Metadata")
        items = await self._delete_all(resource, chosen, options, request, form)
        opening = form.encode_list_start(meta)
        separated = (b"," + item if index else item for index, item in enumerate(items))
        return Response(stream=join_chunks(chain((opening,), separated, (form.encode_list_end(),))))

    async def _delete_all(
        self,
        resource: Resource,
        records: Sequence[Record],
        options: DeleteOptions,
        request: WriteRequest,
        form: Representation,
    ) -> list[bytes]:
        """Delete batch by batch, and return the encoded objects.

        Only the encoded form is kept: it takes a tenth of the memory.
        """
        items: list[bytes] = []
        for start in range(0, len(records), BATCH_SIZE):
            deleted = self._objects.delete_all(
                resource, records[start : start + BATCH_SIZE], options, request
            )
            items += [form.encode_item(encode_bare_object(obj)) for obj in deleted]
            await asyncio.sleep(0)
        return items

    async def evict(self, call: ApiCall, resource: Resource, namespace: str, name: str) -> Response:
        """Answer the POST of an Eviction: say so on the pod, then delete it with its options.

        No budget forbids that here: there are none.
        """
        body = await self._read_object(call, "Eviction")
        _check_eviction(body, name)
        options, dry_run = _parse_body_options(body.get("deleteOptions") or {})
        request = parse_write_request(call, "CreateOptions")
        request.dry_run = request.dry_run or dry_run
        pod = self._objects.get(resource, namespace, name)
        lifecycle.check_preconditions(resource, pod, options)
        with self._objects.store.transaction():
            if not request.dry_run:
                mark_disrupted(
                    self._objects, pod, "EvictionByEvictionAPI", "Eviction API: evicting"
                )
                # Our own write has made the version of the precondition, which held, an old one.
                options = replace(options, resource_version=None)
            self._objects.delete(resource, namespace, name, options, request)
        return created_response()

    async def _read_delete_options(self, call: ApiCall) -> tuple[DeleteOptions, WriteRequest]:
        """Read DeleteOptions from the body when there is one, else from the query.

        The source is apiserver `DeleteResource`.
        """
        body = await self._read_object(call, "DeleteOptions")
        # Any apiVersion will do: clients send DeleteOptions in the group of what they delete.
        _check_kind(body, "DeleteOptions")
        if body:
            options, dry_run = _parse_body_options(body)
            return options, WriteRequest(
                field_manager=default_field_manager(call), dry_run=dry_run, warnings=call.warnings
            )
        return _parse_query_options(call.query), parse_write_request(call, "DeleteOptions")

    async def _read_object(self, call: ApiCall, kind: str) -> Object:
        raw = await self._body_reader.read_body(call)
        if not raw:
            return {}
        value = await bodies.decode_body(raw, bodies.get_media_type(call), kind)
        if not isinstance(value, dict):
            raise errors.bad_request_error(
                f"the object provided is unrecognized (must be of type {kind}): it is not a JSON "
                "object"
            )
        return value


def _check_kind(body: Object, kind: str, api_versions: Collection[str] = ()) -> None:
    """Check what a body says that it is; what it leaves out is right. Raises ApiError 400."""
    own_kind, own_version = body.get("kind") or kind, body.get("apiVersion") or ""
    if own_kind == kind and (not (own_version and api_versions) or own_version in api_versions):
        return
    version = str(own_version)[:64].rpartition("/")[2]
    wanted = f"kind {kind}" + (f" in {' or '.join(api_versions)}" if api_versions else "")
    raise errors.bad_request_error(
        f'{str(own_kind)[:64]} in version "{version}" cannot be handled as a {kind}: the body '
        f"must be of {wanted}"
    )


def _check_eviction(body: Object, name: str) -> None:
    """Check that a body is the Eviction of this pod. Raises ApiError 400."""
    _check_kind(body, "Eviction", EVICTION_VERSIONS)
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != name:
        raise errors.bad_request_error("name in URL does not match name in Eviction object")
    if not isinstance(body.get("deleteOptions"), dict | None):
        raise errors.bad_request_error("deleteOptions must be an object")


async def _answer_deletion(call: ApiCall, resource: Resource, deletion: Deletion) -> Response:
    if not deletion.is_removed or resource.returns_deleted:
        return await build_object_response(call, resource, deletion.object)
    metadata = deletion.object["metadata"]
    details = {
        "name": metadata["name"],
        "group": resource.group,
        "kind": resource.plural,
        "uid": metadata["uid"],
    }
    if not resource.group:
        del details["group"]
    return json_response(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
    )


def _parse_query_options(query: QueryParameters) -> DeleteOptions:
    orphan = query.flag("orphanDependents") if "orphanDependents" in query else None
    return _build_delete_options(
        query.integer("gracePeriodSeconds"), query.text("propagationPolicy") or None, orphan, {}
    )


def _parse_body_options(body: Object) -> tuple[DeleteOptions, bool]:
    """Parse the options, and whether they ask for a dry run.

    Raises ApiError 400 for a wrong type, 422 for what is forbidden.
    """
    grace = _get_typed_field(body, "gracePeriodSeconds", int)
    policy = _get_typed_field(body, "propagationPolicy", str)
    orphan = _get_typed_field(body, "orphanDependents", bool)
    preconditions = _get_typed_field(body, "preconditions", dict) or {}
    dry_run = _get_typed_field(body, "dryRun", list) or []
    if any(value != "All" for value in dry_run):
        quoted = ", ".join(f'"{str(value)[:64]}"' for value in dry_run)
        message = f'Unsupported value: []string{{{quoted}}}: supported values: "All"'
        check_options([Cause("FieldValueNotSupported", message, "dryRun")], "DeleteOptions")
    return _build_delete_options(grace, policy, orphan, preconditions), bool(dry_run)


def _get_typed_field(body: Object, field: str, kind: type) -> Any:
    value = body.get(field)
    if value is not None and (
        not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    ):
        message = (
            f"json: cannot unmarshal into Go struct field DeleteOptions.{field} of another type"
        )
        raise errors.bad_request_error(
            f'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: {message}'
        )
    return value


def _build_delete_options(
    grace: int | None, policy: str | None, orphan: bool | None, preconditions: Object
) -> DeleteOptions:
    """Build checked options, by the rules of apimachinery `ValidateDeleteOptions`.

    A negative grace period means one second. Raises ApiError 422.
    """
    causes = []
    if policy is not None and orphan is not None:
        message = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(errors.invalid_cause("propagationPolicy", f'"{policy}"', message))
    if policy is not None and policy not in PROPAGATION_POLICIES:
        causes.append(
            errors.unsupported_cause(
                "propagationPolicy", policy[:64], (*PROPAGATION_POLICIES, "nil")
            )
        )
    check_options(causes, "DeleteOptions")
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        grace_seconds=1 if grace is not None and grace < 0 else grace,
        propagation_policy=cast(PropagationPolicy | None, policy),
        uid=_get_typed_field(preconditions, "uid", str),
        resource_version=_get_typed_field(preconditions, "resourceVersion", str),
    )

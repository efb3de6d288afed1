"""delete, deletecollection and eviction."""

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

from localkube import errors
from localkube.api import bodies, negotiation
from localkube.api.exchange import Call, Query, Response, json_response
from localkube.api.forms import Form, ListMeta, bare_json, form_of
from localkube.api.negotiation import Accepted
from localkube.api.paging import read_page, refuse_options
from localkube.api.reading import answer_object, joined
from localkube.api.selection import select
from localkube.api.writing import check_acceptable, default_manager, read_request
from localkube.errors import Cause
from localkube.lifecycle import DeleteOptions, Policy
from localkube.metadata import Object
from localkube.objects import Deletion, Objects, Request
from localkube.resources.resource import Resource
from localkube.store import Record

BATCH = 100
"""Objects of a collection that are deleted in one transaction; others get a turn between two of
them.
"""

POLICIES = ("Background", "Foreground", "Orphan")


class Deleter:
    """Answers delete, deletecollection and the eviction of a pod."""

    def __init__(self, objects: Objects, reader: bodies.Reader) -> None:
        self._objects = objects
        self._bodies = reader

    async def delete(self, call: Call, resource: Resource, namespace: str, name: str) -> Response:
        """A Status when the object is gone, else the object as it waits; pods, namespaces and
        services always come back themselves.
        """
        check_acceptable(call)
        options, request = await self._read(call)
        deletion = self._objects.delete(resource, namespace, name, options, request)
        return _answer(call, resource, deletion)

    async def delete_collection(
        self, call: Call, resource: Resource, namespace: str | None
    ) -> Response:
        """Delete what the selectors choose, and answer with a list of it."""
        negotiation.choose(call.headers.get("accept", ""))
        selection = select(resource, namespace, call.query)
        limit = read_page(call.query, namespace).limit
        options, request = await self._read(call)
        records = list(
            selection.filter(
                self._objects.store.list((resource.storage or resource).key, namespace)
            )
        )
        if limit:
            records = records[:limit]
        form = form_of(resource, Accepted(), "Metadata")
        items = await self._delete_all(resource, records, options, request, form)
        opening = form.opening(ListMeta(str(self._objects.store.rv)))
        separated = (b"," + item if index else item for index, item in enumerate(items))
        return Response(stream=joined(chain((opening,), separated, (form.closing(),))))

    async def _delete_all(
        self,
        resource: Resource,
        records: Sequence[Record],
        options: DeleteOptions,
        request: Request,
        form: Form,
    ) -> list[bytes]:
        """Delete batch by batch, and keep of what was deleted only its encoded form: a tenth of the
        memory.
        """
        items: list[bytes] = []
        for start in range(0, len(records), BATCH):
            deleted = self._objects.delete_all(
                resource, records[start : start + BATCH], options, request
            )
            items += [form.item(bare_json(obj)) for obj in deleted]
            await asyncio.sleep(0)
        return items

    async def evict(self, call: Call, resource: Resource, namespace: str, name: str) -> Response:
        """POST of an Eviction: a deletion with its options, which no budget forbids here."""
        body = await self._value(call, "Eviction")
        if body.get("kind", "Eviction") != "Eviction":
            raise errors.bad_request(f"{body['kind']} cannot be handled as a Eviction")
        options, dry_run = _from_body(body.get("deleteOptions") or {})
        request = read_request(call, "CreateOptions")
        request.dry_run = request.dry_run or dry_run
        self._objects.delete(resource, namespace, name, options, request)
        return json_response(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "code": 201,
            },
            201,
        )

    async def _read(self, call: Call) -> tuple[DeleteOptions, Request]:
        """DeleteOptions of the body when there is one, else of the query (apiserver
        `DeleteResource`).
        """
        body = await self._value(call, "DeleteOptions")
        if body:
            options, dry_run = _from_body(body)
            return options, Request(
                manager=default_manager(call), dry_run=dry_run, warnings=call.warnings
            )
        return _from_query(call.query), read_request(call, "DeleteOptions")

    async def _value(self, call: Call, kind: str) -> Object:
        raw = await self._bodies.read(call)
        if not raw:
            return {}
        value = await bodies.decode(raw, bodies.media_type(call), kind)
        if not isinstance(value, dict):
            raise errors.bad_request(
                f"the object provided is unrecognized (must be of type {kind}): it is not a JSON "
                "object"
            )
        return value


def _answer(call: Call, resource: Resource, deletion: Deletion) -> Response:
    if not deletion.gone or resource.returns_deleted:
        return answer_object(call, resource, deletion.object)
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


def _from_query(query: Query) -> DeleteOptions:
    orphan = query.flag("orphanDependents") if "orphanDependents" in query else None
    return _options(
        query.whole("gracePeriodSeconds"), query.text("propagationPolicy") or None, orphan, {}
    )


def _from_body(body: Object) -> tuple[DeleteOptions, bool]:
    """The options and whether they ask for a dry run. Raises ApiError 400 for a wrong type, 422 for
    what is forbidden.
    """
    grace = _typed(body, "gracePeriodSeconds", int)
    policy = _typed(body, "propagationPolicy", str)
    orphan = _typed(body, "orphanDependents", bool)
    preconditions = _typed(body, "preconditions", dict) or {}
    dry_run = _typed(body, "dryRun", list) or []
    if any(value != "All" for value in dry_run):
        shown = ", ".join(f'"{str(value)[:64]}"' for value in dry_run)
        message = f'Unsupported value: []string{{{shown}}}: supported values: "All"'
        refuse_options([Cause("FieldValueNotSupported", message, "dryRun")], "DeleteOptions")
    return _options(grace, policy, orphan, preconditions), bool(dry_run)


def _typed(body: Object, field: str, kind: type) -> Any:
    value = body.get(field)
    if value is not None and (
        not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    ):
        message = (
            f"json: cannot unmarshal into Go struct field DeleteOptions.{field} of another type"
        )
        raise errors.bad_request(
            f'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: {message}'
        )
    return value


def _options(
    grace: int | None, policy: str | None, orphan: bool | None, preconditions: Object
) -> DeleteOptions:
    """Checked options, by the rules of apimachinery `ValidateDeleteOptions`; a negative grace
    period means one second.
    """
    causes = []
    if policy is not None and orphan is not None:
        message = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(errors.wrong("propagationPolicy", f'"{policy}"', message))
    if policy is not None and policy not in POLICIES:
        causes.append(errors.unsupported("propagationPolicy", policy[:64], (*POLICIES, "nil")))
    refuse_options(causes, "DeleteOptions")
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        grace=1 if grace is not None and grace < 0 else grace,
        policy=cast(Policy | None, policy),
        uid=_typed(preconditions, "uid", str),
        rv=_typed(preconditions, "resourceVersion", str),
    )

"""The verbs get and list: from the store's records to a response, with as little decoding as
possible.

A list is cut out of one moment's records and sent as it is put together, so its memory is bounded
however long it is.
"""

import asyncio
import bisect
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from localkube import errors
from localkube.api import negotiation, paging, yaml_text
from localkube.api.http_messages import ApiCall, QueryParameters, Response
from localkube.api.negotiation import AcceptedMedia
from localkube.api.paging import PageRequest
from localkube.api.representations import (
    ListMeta,
    Representation,
    choose_representation,
    encode_bare_object,
    encode_record,
)
from localkube.api.selection import Selection, parse_selection
from localkube.errors import ApiError
from localkube.metadata import Object
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.store import Record, Store

CHUNK_BYTES = 1 << 20
CHUNK_ITEMS = 128
"""Items encoded before other requests run: about 10 ms of work for the rows of a Table."""
MAX_LIST_BYTES = 256 << 20
MAX_YAML_BYTES = 8 << 20
"""Most bytes of a list in YAML, which is built whole, at about a second per MB."""

YAML_IN_LOOP_BYTES = 4 << 10
"""Up to which size one object is made YAML at once, within about 5 ms, and not in a thread."""

ITEM_FORMS = (*negotiation.TABLES, *negotiation.PARTIALS)
LIST_FORMS = (*negotiation.TABLES, *negotiation.PARTIAL_LISTS, *negotiation.PARTIALS)
YAML = "application/yaml"

VirtualRecords = Mapping[Resource, Callable[[], Sequence[Record]]]


class ReadHandler:
    """Answers get and list.

    `virtual` gives the records of resources that are measured and not stored.
    """

    def __init__(self, objects: Objects, virtual: VirtualRecords) -> None:
        self._objects = objects
        self._store = objects.store
        self._virtual = virtual

    async def get(self, call: ApiCall, resource: Resource, namespace: str, name: str) -> Response:
        """Answer with one object.

        Raises ApiError: 404, 406, 504 for a resource version that is not reached.
        """
        accepted = negotiation.choose_media(call.headers.get("accept", ""), ITEM_FORMS)
        form = choose_representation(resource, accepted, parse_include(call.query))
        await paging.wait_for_version(
            self._store, paging.parse_version(call.query.text("resourceVersion")) or 0
        )
        record = self._find_record(resource, namespace, name)
        if record is None:
            raise errors.not_found_error(resource.group, resource.plural, name)
        return await build_response(
            form.encode_object(encode_record(self._objects, resource, record)), accepted
        )

    async def list(self, call: ApiCall, resource: Resource, namespace: str | None) -> Response:
        """Answer with a list or a page of one.

        Raises ApiError: 400, 406, 410 for a version that is no longer known, 413 beyond the bound,
        422, 504.
        """
        accepted = negotiation.choose_media(call.headers.get("accept", ""), LIST_FORMS)
        form = choose_representation(resource, accepted, parse_include(call.query))
        selection = parse_selection(resource, namespace, call.query)
        page = paging.parse_page_request(call.query, namespace)
        await paging.wait_for_version(
            self._store, max(page.minimum_version, page.exact_version or 0)
        )
        records = self._list_records(resource, namespace, page)
        version = page.exact_version or self._store.rv
        chosen, meta = cut_page(records, selection, page, version)
        _check_size(chosen, MAX_YAML_BYTES if accepted.yaml else MAX_LIST_BYTES)
        pieces = self._encode_list(form, meta, chosen, resource)
        if accepted.yaml:
            return Response(
                body=await asyncio.to_thread(_convert_to_yaml, b"".join(pieces)), content_type=YAML
            )
        if len(chosen) <= CHUNK_ITEMS and sum(len(record.raw) for record in chosen) <= CHUNK_BYTES:
            return Response(body=b"".join(pieces))
        return Response(stream=join_chunks(pieces))

    def _find_record(self, resource: Resource, namespace: str, name: str) -> Record | None:
        if resource in self._virtual:
            return next(
                (
                    r
                    for r in self._virtual[resource]()
                    if (r.namespace, r.name) == (namespace, name)
                ),
                None,
            )
        return self._store.find((resource.storage or resource).key, namespace, name)

    def _list_records(
        self, resource: Resource, namespace: str | None, page: PageRequest
    ) -> Sequence[Record]:
        if resource in self._virtual:
            return self._virtual[resource]()
        return list_stored_records(self._store, resource, namespace, page)

    def _encode_list(
        self, form: Representation, meta: ListMeta, records: Sequence[Record], resource: Resource
    ) -> Iterator[bytes]:
        yield form.encode_list_start(meta)
        comma = b""
        for record in records:
            yield comma + form.encode_item(encode_record(self._objects, resource, record))
            comma = b","
        yield form.encode_list_end()


def parse_include(query: QueryParameters) -> str:
    """Parse the `includeObject` of a Table. Raises ApiError 400."""
    include = query.text("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise errors.bad_request_error(f'unrecognized includeObject value: "{include[:64]}"')
    return include


async def build_response(body: bytes, accepted: AcceptedMedia, status: int = 200) -> Response:
    """Build the response with one encoded object, as JSON or as YAML."""
    if not accepted.yaml:
        return Response(status, body + b"\n")
    if len(body) <= YAML_IN_LOOP_BYTES:
        return Response(status, _convert_to_yaml(body), YAML)
    return Response(status, await asyncio.to_thread(_convert_to_yaml, body), YAML)


async def build_object_response(
    call: ApiCall, resource: Resource, obj: Object, status: int = 200
) -> Response:
    """Build the response with an object, in the form that the client accepts.

    Raises ApiError 406: call `check_acceptable` before writing, too.
    """
    accepted = negotiation.choose_media(call.headers.get("accept", ""), ITEM_FORMS)
    return await build_response(
        choose_representation(resource, accepted, parse_include(call.query)).encode_object(
            encode_bare_object(obj)
        ),
        accepted,
        status,
    )


def list_stored_records(
    store: Store, resource: Resource, namespace: str | None, page: PageRequest
) -> Sequence[Record]:
    """Return all records of a resource, or of one namespace, at the version that a page shows.

    Raises ApiError 410 for a version that is no longer known.
    """
    key = (resource.storage or resource).key
    if page.exact_version is None:
        return store.list(key, namespace)
    try:
        return store.list_at_version(key, page.exact_version, namespace)
    except ApiError as refusal:
        if refusal.code != 410:
            raise
        if page.after:
            raise paging.expired_token_error(page.after, namespace) from refusal
        raise errors.expired_error(paging.TOO_OLD_LIST) from refusal


def cut_page(
    records: Sequence[Record], selection: Selection, page: PageRequest, version: int
) -> tuple[Sequence[Record], ListMeta]:
    """Return the records of a page and the metadata of its list.

    A selective list does not say how much remains.
    """
    start = 0
    if page.after is not None:
        start = bisect.bisect_right(
            records, page.after, key=lambda record: (record.namespace, record.name)
        )
    matching_records = selection.filter_records(records[start:])
    if not page.limit:
        return list(matching_records), ListMeta(str(version))
    chosen = list(islice(matching_records, page.limit))
    if len(chosen) < page.limit or next(matching_records, None) is None:
        return chosen, ListMeta(str(version))
    last = chosen[-1]
    token = paging.encode_token(version, (last.namespace, last.name), selection.namespace)
    remaining = None if selection.is_selective else 1 + sum(1 for _ in matching_records)
    return chosen, ListMeta(str(version), token, remaining)


def _check_size(records: Iterable[Record], limit: int) -> None:
    size = sum(len(record.raw) for record in records)
    if size > limit:
        message = (
            f"the list has {size} bytes, at most {limit} are sent at once: ask for pages with "
            "limit, or for fewer objects"
        )
        raise ApiError(413, "RequestEntityTooLarge", message)


async def join_chunks(pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Pieces in chunks of a bounded size; others get a turn after each."""
    pending: list[bytes] = []
    size = 0
    for piece in pieces:
        pending.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES or len(pending) >= CHUNK_ITEMS:
            chunk = b"".join(pending)
            # Before the yield: a slow client would keep the pieces in memory beside the chunk.
            pending, size = [], 0
            yield chunk
            await asyncio.sleep(0)
    if pending:
        yield b"".join(pending)


def _convert_to_yaml(body: bytes) -> bytes:
    return yaml_text.dump_yaml(msgspec.json.decode(body))

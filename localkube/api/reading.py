"""get and list: from the store's records to an answer, without decoding what nobody looks at.

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
from localkube.api.exchange import Call, Query, Response
from localkube.api.forms import Form, ListMeta, bare_json, form_of, stored_json
from localkube.api.negotiation import Accepted
from localkube.api.paging import Page
from localkube.api.selection import Selection, select
from localkube.errors import ApiError
from localkube.metadata import Object
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.store import Record

CHUNK_BYTES = 1 << 20
CHUNK_ITEMS = 256
"""Items put together before others get a turn: about 10 ms of work for the rows of a Table."""
MAX_LIST = 256 << 20
MAX_YAML = 8 << 20
"""A list in YAML is built whole, at about a second per MB."""

ITEM_FORMS = (negotiation.TABLE, negotiation.PARTIAL)
LIST_FORMS = (negotiation.TABLE, negotiation.PARTIAL_LIST, negotiation.PARTIAL)
YAML = "application/yaml"

Virtual = Mapping[Resource, Callable[[], Sequence[Record]]]


class Reader:
    """Answers get and list. `virtual` gives the records of resources that are measured and not
    stored.
    """

    def __init__(self, objects: Objects, virtual: Virtual) -> None:
        self._objects = objects
        self._store = objects.store
        self._virtual = virtual

    async def get(self, call: Call, resource: Resource, namespace: str, name: str) -> Response:
        """One object. Raises ApiError: 404, 406, 504 for a resource version that does not come."""
        accepted = negotiation.choose(call.headers.get("accept", ""), ITEM_FORMS)
        form = form_of(resource, accepted, read_include(call.query))
        await paging.reach(
            self._store, paging.read_version(call.query.text("resourceVersion")) or 0
        )
        record = self._find(resource, namespace, name)
        if record is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return answer(form.one(stored_json(self._objects, resource, record)), accepted)

    async def list(self, call: Call, resource: Resource, namespace: str | None) -> Response:
        """A list or a page of one. Raises ApiError: 400, 406, 410 for what is no longer known, 413
        beyond the bound, 422, 504.
        """
        accepted = negotiation.choose(call.headers.get("accept", ""), LIST_FORMS)
        form = form_of(resource, accepted, read_include(call.query))
        selection = select(resource, namespace, call.query)
        page = paging.read_page(call.query, namespace)
        await paging.reach(self._store, max(page.least, page.exact or 0))
        records = self._records(resource, namespace, page)
        version = page.exact or self._store.rv
        chosen, meta = _cut(records, selection, page, version)
        _check_size(chosen, MAX_YAML if accepted.yaml else MAX_LIST)
        pieces = self._pieces(form, meta, chosen, resource)
        if accepted.yaml:
            return Response(
                body=await asyncio.to_thread(_to_yaml, b"".join(pieces)), content_type=YAML
            )
        if len(chosen) <= CHUNK_ITEMS and sum(len(record.raw) for record in chosen) <= CHUNK_BYTES:
            return Response(body=b"".join(pieces))
        return Response(stream=joined(pieces))

    def _find(self, resource: Resource, namespace: str, name: str) -> Record | None:
        if resource in self._virtual:
            return next(
                (
                    r
                    for r in self._virtual[resource]()
                    if (r.namespace, r.name) == (namespace, name)
                ),
                None,
            )
        return self._store.get((resource.storage or resource).key, namespace, name)

    def _records(self, resource: Resource, namespace: str | None, page: Page) -> Sequence[Record]:
        if resource in self._virtual:
            return self._virtual[resource]()
        key = (resource.storage or resource).key
        if page.exact is None:
            return self._store.list(key, namespace)
        try:
            return self._store.at(key, page.exact)
        except ApiError as refusal:
            if refusal.code != 410:
                raise
            raise (
                paging.expired_token(page.after, namespace)
                if page.after
                else errors.expired(paging.TOO_OLD_LIST)
            ) from refusal

    def _pieces(
        self, form: Form, meta: ListMeta, records: Sequence[Record], resource: Resource
    ) -> Iterator[bytes]:
        yield form.opening(meta)
        comma = b""
        for record in records:
            yield comma + form.item(stored_json(self._objects, resource, record))
            comma = b","
        yield form.closing()


def read_include(query: Query) -> str:
    """The `includeObject` of a Table. Raises ApiError 400."""
    include = query.text("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise errors.bad_request(f'unrecognized includeObject value: "{include[:64]}"')
    return include


def answer(body: bytes, accepted: Accepted, status: int = 200) -> Response:
    """One encoded object as JSON, or as YAML for who wants that."""
    if accepted.yaml:
        return Response(status, _to_yaml(body), YAML)
    return Response(status, body + b"\n")


def answer_object(call: Call, resource: Resource, obj: Object, status: int = 200) -> Response:
    """An object as a verb returned it, in the form that the client accepts. Raises ApiError 406:
    ask before writing, too.
    """
    accepted = negotiation.choose(call.headers.get("accept", ""), ITEM_FORMS)
    return answer(
        form_of(resource, accepted, read_include(call.query)).one(bare_json(obj)), accepted, status
    )


def _cut(
    records: Sequence[Record], selection: Selection, page: Page, version: int
) -> tuple[Sequence[Record], ListMeta]:
    """The records of a page and the metadata of its list. A selective list does not say how much
    remains.
    """
    start = 0
    if page.after is not None:
        start = bisect.bisect_right(
            records, page.after, key=lambda record: (record.namespace, record.name)
        )
    matching = selection.filter(records[start:])
    if not page.limit:
        return list(matching), ListMeta(str(version))
    chosen = list(islice(matching, page.limit))
    if len(chosen) < page.limit or next(matching, None) is None:
        return chosen, ListMeta(str(version))
    last = chosen[-1]
    token = paging.write_token(version, (last.namespace, last.name), selection.namespace)
    remaining = None if selection.selective else 1 + sum(1 for _ in matching)
    return chosen, ListMeta(str(version), token, remaining)


def _check_size(records: Iterable[Record], limit: int) -> None:
    size = sum(len(record.raw) for record in records)
    if size > limit:
        message = (
            f"the list has {size} bytes, at most {limit} are sent at once: ask for pages with "
            "limit, or for fewer objects"
        )
        raise ApiError(413, "RequestEntityTooLarge", message)


async def joined(pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Pieces in chunks of a bounded size; others get a turn after each."""
    pending: list[bytes] = []
    size = 0
    for piece in pieces:
        pending.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES or len(pending) >= CHUNK_ITEMS:
            yield b"".join(pending)
            pending, size = [], 0
            await asyncio.sleep(0)
    if pending:
        yield b"".join(pending)


def _to_yaml(body: bytes) -> bytes:
    return yaml_text.dump(msgspec.json.decode(body))

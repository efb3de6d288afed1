"""The representations of an object: the object itself, its metadata alone, or a row of a Table.

Each is sent alone, in a list and in a watch event. A representation works on the JSON that the
store keeps (without kind and apiVersion) and decodes as little as it can: the object itself is
never decoded, and of PartialObjectMetadata only where its metadata begins and ends.
"""

import functools
from dataclasses import dataclass
from typing import Any

import msgspec

from localkube.api import negotiation
from localkube.api.negotiation import AcceptedMedia
from localkube.metadata import Object
from localkube.objects import Objects
from localkube.resources.resource import Column, Resource
from localkube.store import Record

NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request "
    "the generation of an appropriate name automatically. Name is primarily intended for "
    "creation idempotence and configuration "
    "definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)


@dataclass(frozen=True, slots=True)
class ListMeta:
    """The metadata of a list. `remaining` is None where the API does not tell it."""

    rv: str
    token: str = ""
    remaining: int | None = None

    def encode(self, *, with_empty_token: bool) -> bytes:
        fields: dict[str, Any] = {"resourceVersion": self.rv}
        if self.token or with_empty_token:
            fields["continue"] = self.token
        if self.remaining is not None:
            fields["remainingItemCount"] = self.remaining
        return msgspec.json.encode(fields)


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


class _Version(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the name on the wire


_metadata_decoder = msgspec.json.Decoder(_Metadata)
_version_decoder = msgspec.json.Decoder(_Version)


class FullObject:
    """The object itself."""

    has_columns = False

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        kind, version = (
            msgspec.json.encode(resource.kind),
            msgspec.json.encode(resource.api_version),
        )
        if resource.custom:
            self._head = b'{"apiVersion":' + version + b',"kind":' + kind + b","
        else:
            self._head = b'{"kind":' + kind + b',"apiVersion":' + version + b","

    def encode_object(self, raw: bytes, *, with_columns: bool = True) -> bytes:
        """Encode the answer to a request for one object, and the object of a watch event."""
        return self._head + raw[1:]

    def encode_item(self, raw: bytes) -> bytes:
        """Encode an item of a list.

        Items of built-in kinds carry no kind and apiVersion, those of custom kinds do.
        """
        return self._head + raw[1:] if self.resource.custom else raw

    def encode_list_start(self, meta: ListMeta) -> bytes:
        """Encode what comes before the first item of a list."""
        kind = msgspec.json.encode(self.resource.list_kind)
        version = msgspec.json.encode(self.resource.api_version)
        metadata = meta.encode(with_empty_token=self.resource.custom)
        return (
            b'{"kind":'
            + kind
            + b',"apiVersion":'
            + version
            + b',"metadata":'
            + metadata
            + b',"items":['
        )

    def encode_list_end(self) -> bytes:
        return b"]}\n"

    def encode_bookmark(self, metadata: Object) -> bytes:
        return self._head + b'"metadata":' + msgspec.json.encode(metadata) + b"}"


class PartialMetadata(FullObject):
    """PartialObjectMetadata of a version of meta.k8s.io: kind, apiVersion and metadata."""

    def __init__(self, resource: Resource, meta_version: str) -> None:
        super().__init__(resource)
        self._partial_head = _encode_meta_head("PartialObjectMetadata", meta_version)
        self._list_head = _encode_meta_head("PartialObjectMetadataList", meta_version)

    def encode_object(self, raw: bytes, *, with_columns: bool = True) -> bytes:
        return self._partial_head + bytes(_metadata_decoder.decode(raw).metadata) + b"}"

    def encode_item(self, raw: bytes) -> bytes:
        return self.encode_object(raw)

    def encode_list_start(self, meta: ListMeta) -> bytes:
        return self._list_head + meta.encode(with_empty_token=False) + b',"items":['

    def encode_bookmark(self, metadata: Object) -> bytes:
        return self._partial_head + msgspec.json.encode(metadata) + b"}"


class Table(FullObject):
    """A Table of the kind's columns in a version of meta.k8s.io, one row per object.

    `include` is what a row carries of the object: Metadata, Object or None.
    """

    has_columns = True

    def __init__(self, resource: Resource, include: str, meta_version: str) -> None:
        super().__init__(resource)
        self._include = include
        self._table_head = _encode_meta_head("Table", meta_version)
        self._partial = PartialMetadata(resource, meta_version)
        self._encoded_columns = msgspec.json.encode(
            [_build_column_definition(column) for column in resource.columns]
        )

    def encode_object(self, raw: bytes, *, with_columns: bool = True) -> bytes:
        version = _version_decoder.decode(_metadata_decoder.decode(raw).metadata).resourceVersion
        return (
            self._encode_table_start(ListMeta(version), with_columns)
            + self.encode_item(raw)
            + b"]}"
        )

    def encode_item(self, raw: bytes) -> bytes:
        obj = {
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
        } | msgspec.json.decode(raw)
        cells = msgspec.json.encode(
            [_compute_cell(column, obj) for column in self.resource.columns]
        )
        return b'{"cells":' + cells + b',"object":' + self._encode_included_object(raw) + b"}"

    def encode_list_start(self, meta: ListMeta) -> bytes:
        return self._encode_table_start(meta, with_columns=True)

    def encode_bookmark(self, metadata: Object) -> bytes:
        head = self._encode_table_start(ListMeta(metadata["resourceVersion"]), with_columns=False)
        cells = msgspec.json.encode([None] * len(self.resource.columns))
        return (
            head
            + b'{"cells":'
            + cells
            + b',"object":'
            + self._partial.encode_bookmark(metadata)
            + b"}]}"
        )

    def _encode_table_start(self, meta: ListMeta, with_columns: bool) -> bytes:
        definitions = self._encoded_columns if with_columns else b"null"
        return (
            self._table_head
            + meta.encode(with_empty_token=False)
            + b',"columnDefinitions":'
            + definitions
            + b',"rows":['
        )

    def _encode_included_object(self, raw: bytes) -> bytes:
        if self._include == "None":
            return b"null"
        if self._include == "Object":
            return super().encode_object(raw)
        return self._partial.encode_object(raw)


Representation = FullObject


def _encode_meta_head(kind: str, version: str) -> bytes:
    """Encode the beginning of an object of meta.k8s.io, up to its metadata."""
    head = {"kind": kind, "apiVersion": f"meta.k8s.io/{version}"}
    return msgspec.json.encode(head)[:-1] + b',"metadata":'


def _build_column_definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or (NAME_DESCRIPTION if column.format == "name" else ""),
        "priority": column.priority,
    }


def _compute_cell(column: Column, obj: Object) -> Any:
    """Return a cell's value.

    Returns None when a client wrote a status of another form than the column reads.
    """
    try:
        return column.cell(obj)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


@functools.lru_cache(maxsize=512)
def choose_representation(
    resource: Resource, accepted: AcceptedMedia, include: str
) -> Representation:
    """Return the representation that a client accepts.

    The same arguments give the same instance, so that watchers share encoded events.
    """
    meta_version = accepted.form[2]
    if accepted.form in negotiation.TABLES:
        return Table(resource, include, meta_version)
    if accepted.form in (*negotiation.PARTIALS, *negotiation.PARTIAL_LISTS):
        return PartialMetadata(resource, meta_version)
    return FullObject(resource)


def encode_record(objects: Objects, resource: Resource, record: Record) -> bytes:
    """Return a record's JSON without kind and apiVersion, in the form of `resource`.

    The resource may be another group's view of the record.
    """
    if resource.from_stored is None:
        return record.raw
    return encode_bare_object(objects.decode_record(resource, record))


def encode_bare_object(obj: Object) -> bytes:
    """Encode an object as the store would keep it: JSON without kind and apiVersion."""
    return msgspec.json.encode(
        {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    )

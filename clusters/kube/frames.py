"""What lists and watches look like on the wire, and how they are parsed: the envelope here, each
object by the caller's decoder.

An object that the caller's decoder refuses spoils no other: it is reported as UnreadableObject,
with what is known of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from clusters.kube import errors
from clusters.kube.errors import ListMeta, Unavailable

Object = dict[str, Any]
T = TypeVar("T")

MAX_LINE = 16 << 20
"""Bytes of one frame of a watch. An object in etcd has at most about 1.5 MiB."""

OBJECT_DECODER: msgspec.json.Decoder[Object] = msgspec.json.Decoder(Object)
DECODE_ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class ObjectMeta(msgspec.Struct):
    """The metadata that identify an object and one state of it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's spelling


class _ObjectHead(msgspec.Struct):
    metadata: ObjectMeta


class _List(msgspec.Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] | None


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


_head_decoder = msgspec.json.Decoder(_ObjectHead)
_list_decoder = msgspec.json.Decoder(_List)
_frame_decoder = msgspec.json.Decoder(_Frame)


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """An object that exists but that the caller's decoder refuses. `type` is "" in a listing, else
    as in ObjectChange.
    """

    type: str
    namespace: str
    name: str
    uid: str
    version: str
    reason: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `version` is the list's; `token` asks for the next page and is "" on the
    last.

    With `first`, forget the pages before: it starts a list. `consistent` is False once the pages
    are not of one moment.
    """

    items: list[T]
    unreadable: list[UnreadableObject]
    version: str
    token: str = ""
    first: bool = True
    consistent: bool = True


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a watch, its object still bytes."""

    type: str
    object: msgspec.Raw
    meta: ObjectMeta


def parse_page(body: bytes, decoder: msgspec.json.Decoder[T]) -> Page[T]:
    """Parse the page that a list request answered. Raises Unavailable when it is no list."""
    try:
        page = _list_decoder.decode(body)
    except DECODE_ERRORS as error:
        raise Unavailable(
            "the cluster's answer is no list", status=200, detail=str(error)
        ) from error
    items: list[T] = []
    unreadable: list[UnreadableObject] = []
    for raw in page.items or ():
        try:
            items.append(decoder.decode(raw))
        except DECODE_ERRORS as error:
            unreadable.append(build_unreadable("", parse_meta(raw), error))
    return Page(items, unreadable, page.metadata.resourceVersion, page.metadata.continue_)


def parse_frame(line: bytes) -> Frame:
    """Parse one line of a watch. Raises Unavailable for a line that is no frame, and the error of
    an ERROR frame.
    """
    try:
        frame = _frame_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise Unavailable(
            "the cluster sent something that is no change", status=200, detail=str(error)
        ) from error
    if frame.type == "ERROR":
        raise errors.error_from_frame(bytes(frame.object))
    return Frame(frame.type, frame.object, parse_meta(frame.object))


def parse_meta(raw: msgspec.Raw | bytes) -> ObjectMeta:
    """Parse the metadata of one object. Raises Unavailable when it has none."""
    try:
        return _head_decoder.decode(raw).metadata
    except DECODE_ERRORS as error:
        raise Unavailable(
            "the cluster sent an object without metadata", status=200, detail=str(error)
        ) from error


def build_unreadable(kind: str, meta: ObjectMeta, error: BaseException) -> UnreadableObject:
    return UnreadableObject(
        kind,
        meta.namespace,
        meta.name,
        meta.uid,
        meta.resourceVersion,
        errors.limit_text(str(error)),
    )


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream, without their ends and without empty ones.

    Holds one line and one chunk at a time. Raises Unavailable for a line longer than MAX_LINE and
    for a last line that was cut off.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join([*parts, end]) if parts else end
            parts, size = [], 0
            if line.strip():
                yield line
        if rest:
            parts.append(rest)
            size += len(rest)
        if size > MAX_LINE:
            raise Unavailable(
                f"the cluster sent a change longer than {MAX_LINE >> 20} MiB", status=200
            )
    if size:
        raise Unavailable("the cluster broke off in the middle of a change")

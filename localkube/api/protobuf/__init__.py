"""Reading objects that clients send as protobuf: kubectl does for what it makes itself (`create
namespace`, `auth can-i`).

Only reading: every such client also takes JSON. The result is what the same object is in JSON;
`messages.json` holds the numbers.
"""

import base64
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from localkube import clock

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
"""Every message on the wire begins with this (apimachinery `serializer/protobuf`)."""
MAX_DEPTH = 100

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_DATA = Path(__file__).parent / "messages.json"


class BadProtobuf(Exception):
    """Bytes that are no message of a kind that is known here; the text says why."""


@dataclass(frozen=True, slots=True)
class _MessageField:
    """One field of a message. `name` is "" when the message's own fields are those of its parent in
    JSON.
    """

    name: str
    kind: str
    is_pointer: bool
    omits_empty: bool


def decode_object(raw: bytes) -> dict[str, Any]:
    """The object in an envelope, with its kind and apiVersion. Raises BadProtobuf."""
    if not raw.startswith(MAGIC):
        raise BadProtobuf(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    envelope = _group_values(raw[len(MAGIC) :])
    type_meta = _group_values(_check_bytes(envelope.get(1, [b""])[-1]))
    api_version, kind = (_decode_text(type_meta.get(number, [b""])[-1]) for number in (1, 2))
    message = _load_kinds().get(f"{api_version}/{kind}")
    if message is None:
        raise BadProtobuf(f'no kind "{kind[:64]}" is registered for version "{api_version[:64]}"')
    return {"kind": kind, "apiVersion": api_version} | _decode_message(
        _check_bytes(envelope.get(2, [b""])[-1]), message, 0
    )


@cache
def _load_messages() -> Any:
    return json.loads(_DATA.read_bytes())


@cache
def _load_kinds() -> dict[str, str]:
    kinds: dict[str, str] = _load_messages()["kinds"]
    return kinds


@cache
def _load_fields(message: str) -> dict[int, _MessageField]:
    return {
        number: _MessageField(name, kind, "p" in flags, "o" in flags)
        for number, name, kind, flags in _load_messages()["messages"][message]
    }


def _decode_message(raw: bytes, message: str, depth: int) -> dict[str, Any]:
    """A message as JSON has it: what Go leaves out of JSON when it is empty is left out."""
    if depth > MAX_DEPTH:
        raise BadProtobuf(f"nested more than {MAX_DEPTH} levels deep")
    found: dict[str, Any] = {}
    values = _group_values(raw)
    for number, field in _load_fields(message).items():
        if number not in values:
            continue
        value = _decode_field(values[number], field.kind, depth)
        if field.name == "":
            found |= value
        elif value is not None and not (
            field.omits_empty and not field.is_pointer and value in ("", 0, False, [])
        ):
            found[field.name] = value
    return found


def _decode_field(occurrences: list[int | bytes], kind: str, depth: int) -> Any:
    container, _, inner = kind.rpartition(":")
    if container == "list":
        return [_decode_value(value, inner, depth) for value in occurrences]
    if container == "map":
        entries = (_group_values(_check_bytes(value)) for value in occurrences)
        return {
            _decode_text(entry.get(1, [b""])[-1]): _decode_value(
                entry.get(2, [b""])[-1], inner, depth
            )
            for entry in entries
        }
    return _decode_value(occurrences[-1], kind, depth)


def _decode_value(value: int | bytes, kind: str, depth: int) -> Any:
    if kind in ("int", "bool", "double"):
        return _decode_number(value, kind)
    raw = _check_bytes(value)
    match kind:
        case "string":
            return _decode_text(raw)
        case "bytes":
            return base64.b64encode(raw).decode()
        case "quantity":
            return _decode_text(_group_values(raw).get(1, [b""])[-1])
        case "fields":
            return _decode_json(_check_bytes(_group_values(raw).get(1, [b"{}"])[-1]))
        case "time" | "microtime":
            return _decode_time(raw, kind)
        case "duration":
            return f"{_decode_number(_group_values(raw).get(1, [0])[-1], 'int') / 10**9:g}s"
        case "int-or-string":
            parts = _group_values(raw)
            is_text = bool(parts.get(1, [0])[-1])
            return (
                _decode_text(parts.get(3, [b""])[-1])
                if is_text
                else _decode_number(parts.get(2, [0])[-1], "int")
            )
        case _:
            return _decode_message(raw, kind, depth + 1)


def _decode_number(value: int | bytes, kind: str) -> int | bool | float:
    if kind == "double":
        raw = _check_bytes(value)
        if len(raw) != 8:
            raise BadProtobuf("a number has the wrong size")
        number: float = struct.unpack("<d", raw)[0]
        return number
    if isinstance(value, bytes):
        raise BadProtobuf("a number was expected")
    if kind == "bool":
        return value != 0
    return value - (1 << 64) if value >> 63 else value


def _decode_time(raw: bytes, kind: str) -> str | None:
    """RFC 3339, or None for the zero time, which is sent as an empty message."""
    if not raw:
        return None
    parts = _group_values(raw)
    seconds, nanos = (int(_decode_number(parts.get(number, [0])[-1], "int")) for number in (1, 2))
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanos // 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise BadProtobuf("a time is out of range") from error
    return clock.format_time(moment) if kind == "time" else clock.format_micro_time(moment)


def _decode_json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadProtobuf("a field set is not JSON") from error


def _decode_text(value: int | bytes) -> str:
    try:
        return _check_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise BadProtobuf("a text is not UTF-8") from error


def _check_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise BadProtobuf("a message or text was expected, not a number")
    return value


def _group_values(raw: bytes) -> dict[int, list[int | bytes]]:
    """The values of a message by field number, in their order on the wire."""
    found: dict[int, list[int | bytes]] = {}
    for number, value in _iterate_wire(raw):
        found.setdefault(number, []).append(value)
    return found


def _iterate_wire(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The wire format: tag and value by turns. Raises BadProtobuf for bytes that end too early or
    types that Kubernetes has not.
    """
    at = 0
    while at < len(raw):
        tag, at = _decode_varint(raw, at)
        wire = tag & 7
        if wire == VARINT:
            value, at = _decode_varint(raw, at)
            yield tag >> 3, value
            continue
        if wire == BYTES:
            size, at = _decode_varint(raw, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise BadProtobuf(f"illegal wireType {wire}")
        if at + size > len(raw):
            raise BadProtobuf("unexpected EOF")
        yield tag >> 3, raw[at : at + size]
        at += size


def _decode_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise BadProtobuf("unexpected EOF" if at >= len(raw) else "integer overflow")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7

"""Decoding of objects that clients send as protobuf.

kubectl does so for what it makes itself (`create namespace`, `auth can-i`). Nothing is encoded:
every such client also takes JSON. The result is what the same object is in JSON; `messages.json`
holds the field numbers.
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
from localkube.api.yaml_text import MAX_NODES

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
"""The bytes that begin every message on the wire (apimachinery `serializer/protobuf`)."""
MAX_DEPTH = 100

MAX_VALUES = MAX_NODES
"""Most values in one object, as for the other media types; an empty text takes two bytes."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_DATA = Path(__file__).parent / "messages.json"


class BadProtobuf(Exception):
    """Bytes that are no message of a known kind; the message says why."""


@dataclass(frozen=True, slots=True)
class _MessageField:
    """One field of a message.

    `name` is "" when the message's own fields are those of its parent in JSON.
    """

    name: str
    kind: str
    is_pointer: bool
    omits_empty: bool


@dataclass(slots=True)
class _Budget:
    """How many values an object may still have."""

    values_left: int = MAX_VALUES

    def spend(self, count: int) -> None:
        self.values_left -= count
        if self.values_left < 0:
            raise BadProtobuf(f"document contains more than {MAX_VALUES} values")


def decode_object(raw: bytes) -> dict[str, Any]:
    """Decode the object in an envelope, with its kind and apiVersion. Raises BadProtobuf."""
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
        _check_bytes(envelope.get(2, [b""])[-1]), message, 0, _Budget()
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


def _decode_message(raw: bytes, message: str, depth: int, budget: _Budget) -> dict[str, Any]:
    """Decode a message as JSON has it.

    Empty values that Go leaves out of JSON are left out.
    """
    if depth > MAX_DEPTH:
        raise BadProtobuf(f"nested more than {MAX_DEPTH} levels deep")
    decoded: dict[str, Any] = {}
    values = _group_values(raw)
    for number, field in _load_fields(message).items():
        if number not in values:
            continue
        budget.spend(len(values[number]))
        value = _decode_field(values[number], field.kind, depth, budget)
        if field.name == "":
            decoded |= value
        elif value is not None and not (
            field.omits_empty and not field.is_pointer and value in ("", 0, False, [])
        ):
            decoded[field.name] = value
    return decoded


def _decode_field(occurrences: list[int | bytes], kind: str, depth: int, budget: _Budget) -> Any:
    container, _, inner = kind.rpartition(":")
    if container == "list":
        return [_decode_value(value, inner, depth, budget) for value in occurrences]
    if container == "map":
        entries = (_group_values(_check_bytes(value)) for value in occurrences)
        return {
            _decode_text(entry.get(1, [b""])[-1]): _decode_value(
                entry.get(2, [b""])[-1], inner, depth, budget
            )
            for entry in entries
        }
    return _decode_value(occurrences[-1], kind, depth, budget)


def _decode_value(value: int | bytes, kind: str, depth: int, budget: _Budget) -> Any:
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
            if is_text:
                return _decode_text(parts.get(3, [b""])[-1])
            return _decode_number(parts.get(2, [0])[-1], "int")
        case _:
            return _decode_message(raw, kind, depth + 1, budget)


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
    """Decode a time as RFC 3339, or as None for the zero time.

    The zero time is sent as an empty message.
    """
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
    """Return the values of a message by field number, in their order on the wire."""
    values: dict[int, list[int | bytes]] = {}
    budget = _Budget()
    for number, value in _iterate_wire(raw):
        budget.spend(1)
        values.setdefault(number, []).append(value)
    return values


def _iterate_wire(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the field numbers and values of the wire format.

    Raises BadProtobuf for bytes that end too early or types that Kubernetes has not.
    """
    position = 0
    while position < len(raw):
        tag, position = _decode_varint(raw, position)
        wire_type = tag & 7
        if wire_type == VARINT:
            value, position = _decode_varint(raw, position)
            yield tag >> 3, value
            continue
        if wire_type == BYTES:
            size, position = _decode_varint(raw, position)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise BadProtobuf(f"illegal wireType {wire_type}")
        if position + size > len(raw):
            raise BadProtobuf("unexpected EOF")
        yield tag >> 3, raw[position : position + size]
        position += size


def _decode_varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise BadProtobuf("unexpected EOF" if position >= len(raw) else "integer overflow")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, position
        shift += 7

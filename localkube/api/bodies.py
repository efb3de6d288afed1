"""Request bodies: read within bounds, and decoded from JSON, YAML or protobuf. No kind is known
here.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec

from localkube import errors
from localkube.api import protobuf, yaml_text
from localkube.api.http_messages import ApiCall
from localkube.api.negotiation import SUPPORTED_MEDIA_TYPES
from localkube.errors import MAX_CAUSES, ApiError, join_field_path

MAX_BODY = 3 << 20
MAX_DRAINED = 16 << 20
"""Most bytes of a body that is too large which are read and dropped.

A client that is still sending would not see the error otherwise.
"""
MAX_BUFFERED = 96 << 20
"""Most bytes of all bodies that are being read at once."""
READ_TIMEOUT = 30.0
MAX_DEPTH = 200
"""Most levels of nesting.

Real objects have about twenty; a real server allows 10,000, which no recursive walk of ours would
survive.
"""
MAX_VALUES = yaml_text.MAX_NODES
"""Most values in one body; a value takes two bytes, and each is walked and checked several times.

Real objects have about one in 25 bytes.
"""
THREAD_FROM_BYTES = 4 << 10
"""From which size YAML and protobuf are parsed in a thread: they take up to 3 seconds per MB."""

JSON_TYPES = ("application/json",)
YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")


class BodyReader:
    """Reads bodies and counts the bytes that they hold together."""

    def __init__(self) -> None:
        self.buffered_bytes = 0

    async def read_body(self, call: ApiCall) -> bytes:
        """Read the body.

        Raises ApiError: 413 above the bound, 429 while too much is being read already, 408 for a
        client that stalls.
        """
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                return await self._receive_body(call)
        except TimeoutError:
            raise ApiError(
                408,
                "Timeout",
                f"the request body did not arrive within {READ_TIMEOUT:.0f} seconds",
                {},
            ) from None

    async def _receive_body(self, call: ApiCall) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            while True:
                message = await call.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                chunk = message.get("body", b"")
                size += len(chunk)
                # What comes beyond the bound is dropped and not kept: see MAX_DRAINED.
                if size <= MAX_BODY:
                    self.buffered_bytes += len(chunk)
                    chunks.append(chunk)
                if self.buffered_bytes > MAX_BUFFERED:
                    raise errors.too_many_requests_error(
                        "Too many requests, please try again later."
                    )
                if not message.get("more_body") or size > MAX_DRAINED:
                    break
        finally:
            self.buffered_bytes -= sum(map(len, chunks))
        if size > MAX_BODY:
            raise errors.too_large_error(MAX_BODY)
        return b"".join(chunks)


class ClientGone(Exception):
    """The client closed the connection before its request was whole; nobody waits for an answer."""


def get_media_type(call: ApiCall) -> str:
    return call.headers.get("content-type", "").partition(";")[0].strip().lower()


async def decode_body(raw: bytes, media_type: str, kind: str) -> Any:
    """Decode the body of one object; `kind` is what an error names.

    Raises ApiError 400, or 415 for another media type.
    """
    if media_type in YAML_TYPES:
        return await decode_yaml(raw, kind)
    if media_type == protobuf.MEDIA_TYPE:
        return await decode_protobuf(raw, kind)
    if media_type and media_type not in JSON_TYPES:
        raise errors.unsupported_media_type_error(SUPPORTED_MEDIA_TYPES)
    return decode_json(raw, kind)


def decode_json(raw: bytes, kind: str) -> Any:
    """Decode a JSON body. Raises ApiError 400, worded as Go's decoder words it."""
    try:
        return parse_json(raw)
    except ValueError as error:
        raise unrecognized_error(
            kind, f"couldn't get version/kind; json parse error: {error}", raw
        ) from error


async def decode_protobuf(raw: bytes, kind: str) -> Any:
    """Decode a protobuf body. Raises ApiError 400."""
    try:
        if len(raw) > THREAD_FROM_BYTES:
            return await asyncio.to_thread(protobuf.decode_object, raw)
        return protobuf.decode_object(raw)
    except protobuf.BadProtobuf as error:
        raise unrecognized_error(kind, str(error), raw) from error


async def decode_yaml(raw: bytes, kind: str) -> Any:
    """Decode YAML, or JSON, which most clients send under YAML's name. Raises ApiError 400."""
    if raw.lstrip()[:1] in (b"{", b"["):
        try:
            return parse_json(raw)
        except ValueError:
            pass
    try:
        # A few aliases make MAX_VALUES of a small body.
        if len(raw) > THREAD_FROM_BYTES or b"*" in raw:
            return await asyncio.to_thread(yaml_text.parse_yaml, raw)
        return yaml_text.parse_yaml(raw)
    except yaml_text.BadYaml as error:
        raise unrecognized_error(
            kind, f"error converting YAML to JSON: yaml: {error}", raw
        ) from error


def parse_json(raw: bytes) -> Any:
    """Parse JSON; bytes that are no UTF-8 become the replacement character.

    Raises ValueError with the words of Go's decoder.
    """
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    except UnicodeDecodeError:
        return parse_json(raw.decode("utf-8", "replace").encode())
    except msgspec.DecodeError as error:
        raise ValueError(_describe_json_error(raw)) from error
    # Counting brackets is cheap and rules out nearly every body, so few are walked.
    openings = raw.count(b"{") + raw.count(b"[")
    if openings > MAX_DEPTH and _is_too_deep(value):
        raise ValueError("exceeded max depth")
    if openings + raw.count(b",") >= MAX_VALUES and _count_values(value) > MAX_VALUES:
        raise ValueError(f"document contains more than {MAX_VALUES} values")
    return value


def unrecognized_error(kind: str, why: str, raw: bytes) -> ApiError:
    """Build a 400 for a body that is no object of a kind.

    The message quotes the start of the body.
    """
    return errors.bad_request_error(
        f"the object provided is unrecognized (must be of type {kind}): {why} "
        f"({summarize_body(raw)})"
    )


def summarize_body(raw: bytes) -> str:
    """Return the start of a body as an error quotes it (apiserver `summarizeData`)."""
    if not raw:
        return "<empty>"
    if raw[:1] == b"{":
        return raw[:30].decode("utf-8", "replace") + (" ..." if len(raw) > 30 else "")
    return raw[:30].hex() + (" ..." if len(raw) > 30 else "")


def find_duplicate_fields(raw: bytes) -> list[str]:
    """Return the paths of keys that come twice in one JSON object, as `spec.replicas`.

    They are MAX_CAUSES at most, of the first objects that have such keys. Returns [] for a body
    that is no JSON.
    """
    object_count = 0

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal object_count
        values = dict(items)
        # Each such object has one such key or more, so MAX_CAUSES of them are enough.
        if len(values) != len(items) and object_count < MAX_CAUSES:
            object_count += 1
            counts = Counter(key for key, _ in items)
            duplicate_keys = sorted(key for key, count in counts.items() if count > 1)
            return _DuplicateKeyDict(values, duplicate_keys)
        return values

    try:
        value = json.loads(raw, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    return _find_duplicate_paths(value) if object_count else []


class _DuplicateKeyDict(dict[str, Any]):
    """An object some of whose keys came twice."""

    def __init__(self, values: dict[str, Any], duplicate_keys: list[str]) -> None:
        super().__init__(values)
        self.duplicate_keys = duplicate_keys


def _find_duplicate_paths(root: Any) -> list[str]:
    paths: list[str] = []
    stack: list[tuple[str, Any]] = [("", root)]
    while stack and len(paths) < MAX_CAUSES:
        path, value = stack.pop()
        if isinstance(value, _DuplicateKeyDict):
            paths += [
                join_field_path(path, key)
                for key in value.duplicate_keys[: MAX_CAUSES - len(paths)]
            ]
        if isinstance(value, dict):
            stack += [
                (join_field_path(path, key), child)
                for key, child in value.items()
                if isinstance(child, dict | list)
            ]
        elif isinstance(value, list):
            stack += [
                (f"{path}[{index}]", child)
                for index, child in enumerate(value)
                if isinstance(child, dict | list)
            ]
    return sorted(paths)


def _is_too_deep(root: Any) -> bool:
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in _list_containers(value)]
        if not level:
            return False
    return True


def _count_values(root: Any) -> int:
    """Return how many values there are in a value, itself included."""
    count, level = 1, [root]
    while level:
        children = [child for value in level for child in _list_children(value)]
        count += len(children)
        level = [child for child in children if isinstance(child, dict | list)]
    return count


def _list_children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _list_containers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [child for child in value.values() if isinstance(child, dict | list)]
    if isinstance(value, list):
        return [child for child in value if isinstance(child, dict | list)]
    return []


_GO_MESSAGES = (
    (re.compile("Expecting value"), "looking for beginning of value"),
    (re.compile("Expecting property name"), "looking for beginning of object key string"),
    (re.compile("Extra data"), "after top-level value"),
    (re.compile("Expecting ':'"), "after object key"),
    (re.compile("Expecting ','"), "after array element or object key:value pair"),
    (re.compile("control character"), "in string literal"),
    (re.compile("escape"), "in string escape code"),
)


def _describe_json_error(raw: bytes) -> str:
    """Return what Go's decoder says about JSON that does not parse.

    The place is found by asking Python's decoder, whose errors carry it.
    """
    text = raw.decode("utf-8", "replace")
    try:
        json.loads(text)
    except RecursionError:
        return "exceeded max depth"
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            return "unexpected end of JSON input"
        words = next(
            (words for pattern, words in _GO_MESSAGES if pattern.search(error.msg)), "in the text"
        )
        return f"invalid character {text[error.pos]!r} {words}"
    return "invalid value"

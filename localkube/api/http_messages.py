"""HTTP requests and responses as the handlers see them.

They are plain data, so that only `application` speaks ASGI.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote

import msgspec

from localkube import errors

MAX_QUERY_FIELDS = 64

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

ABORT = "abort"
"""The entry of a scope's state with the function that cuts its connection."""

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class QueryParameters:
    """The query parameters, parsed as the real server parses them.

    Every method raises ApiError 400 for a value that does not parse.
    """

    def __init__(self, text: str) -> None:
        try:
            self._values = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
        except ValueError as error:
            raise errors.bad_request_error(f"the query cannot be read: {error}") from error

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """Return the first value, or ""."""
        return self._values.get(name, [""])[0]

    def texts(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def flag(self, name: str) -> bool:
        """Return whether a parameter is present and is neither "false" nor "0".

        The source is apimachinery `Convert_Slice_string_To_bool`.
        """
        return name in self and self.text(name).lower() not in ("false", "0")

    def integer(self, name: str) -> int | None:
        """Return a 64-bit number, or None for a parameter that is absent or empty."""
        text = self.text(name)
        if not text:
            return None
        digits = text[1:] if text[0] in "+-" else text
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
            raise errors.bad_request_error(
                f'strconv.ParseInt: parsing "{text[:64]}": invalid syntax'
            )
        return int(text)


@dataclass(slots=True)
class ApiCall:
    """One request.

    `parts` are the decoded segments of the path; header names are in lower case.
    """

    method: str
    path: str
    parts: tuple[str, ...]
    query: QueryParameters
    headers: Mapping[str, str]
    receive: Receive
    warnings: list[str] = field(default_factory=list)
    user: str = ""
    groups: tuple[str, ...] = ()

    @classmethod
    def from_scope(cls, scope: Mapping[str, Any], receive: Receive) -> "ApiCall":
        """Build a call from an ASGI scope.

        Raises ApiError 400 for a path or query that is no text.
        """
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]},{text}" if key in headers else text
        try:
            path = scope["raw_path"].decode("ascii")
            segments = path.strip("/").split("/") if path.strip("/") else []
            parts = tuple(unquote(segment, errors="strict") for segment in segments)
            query = scope["query_string"].decode("ascii")
        except UnicodeDecodeError as error:
            raise errors.bad_request_error("the path or the query is not valid text") from error
        return cls(scope["method"], path, parts, QueryParameters(query), headers, receive)


class Stream(Protocol):
    """The chunks of a response, as they come; an async generator is one."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def aclose(self) -> Awaitable[None]:
        """Release what the chunks come from; also called when no chunk was ever asked for."""
        ...


@dataclass(slots=True)
class Response:
    """A response: a whole `body`, or a `stream` of chunks that is sent as it comes.

    A `live` stream has no end of its own: it is not compressed and ends when the server stops.
    `max_seconds` is the longest that it may take all the same: the connection of a client that has
    not taken the stream by then is cut. `release` is called once after the last byte, however the
    response ended.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: Stream | None = None
    live: bool = False
    max_seconds: float | None = None
    release: Callable[[], None] | None = None


def json_response(value: Any, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(value))


def created_response() -> Response:
    """Return the response of a create that makes no object: a Status of success."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return json_response(body, 201)


def text_response(text: str, status: int = 200) -> Response:
    return Response(status, text.encode(), TEXT, [("x-content-type-options", "nosniff")])

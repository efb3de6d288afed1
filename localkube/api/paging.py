"""Resource versions and pages of a list.

These are the query's `resourceVersion`, `resourceVersionMatch`, `limit` and `continue`.
"""

import asyncio
import base64
import binascii
import time
from dataclasses import dataclass

import msgspec

from localkube import errors
from localkube.api.http_messages import QueryParameters
from localkube.errors import ApiError, Cause
from localkube.store import Store

TOKEN_ENCODING = "meta.k8s.io/v1"  # noqa: S105 - an API version
INCONSISTENT_VERSION = -1
"""The resource version in a token that continues with whatever is there now."""

FUTURE_WAIT_SECONDS = 3.0
"""Seconds that a read waits for a resource version of the future (control-plane facts, item 5)."""
POLL_SECONDS = 0.05

TOO_OLD_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided "
    "token results in an inconsistent list - objects that were created, modified, or deleted "
    "between the time the first chunk was "
    "returned and now may show up in the list."
)
TOO_OLD_LIST = "The resourceVersion for the provided list is too old."

ListPosition = tuple[str, str]


class _TokenFields(msgspec.Struct):
    """The fields of a continue token (apiserver `storage/continue.go`)."""

    v: str = ""
    rv: int = 0
    start: str = ""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a list asks for.

    `exact_version` is the version that it must show, None for the newest; `minimum_version` must be
    reached first. `after` is the (namespace, name) that the page before ended with. A `limit` of 0
    means all.
    """

    limit: int = 0
    exact_version: int | None = None
    minimum_version: int = 0
    after: ListPosition | None = None


def parse_page_request(query: QueryParameters, namespace: str | None) -> PageRequest:
    """Parse the page that a query asks for.

    Raises ApiError 400 for values that do not parse, 422 for combinations that the API forbids.
    """
    limit = max(query.integer("limit") or 0, 0)
    text, match, token = (
        query.text("resourceVersion"),
        query.text("resourceVersionMatch"),
        query.text("continue"),
    )
    _check_match(query, text, match, token)
    version = parse_version(text)
    if token:
        if version:
            raise errors.bad_request_error(
                "specifying resource version is not allowed when using continue"
            )
        rv, after = decode_token(token, namespace)
        return PageRequest(
            limit, exact_version=None if rv == INCONSISTENT_VERSION else rv, after=after
        )
    if match == "Exact":
        return PageRequest(limit, exact_version=version)
    if text == "0":
        return PageRequest(0)
    if limit and version and not match:
        return PageRequest(limit, exact_version=version)
    return PageRequest(limit, minimum_version=version or 0)


def parse_version(text: str) -> int | None:
    """Parse a resource version; return None when there is none. Raises ApiError 400."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        why = (
            f'resourceVersion: Invalid value: "{text[:64]}": strconv.ParseUint: parsing '
            f'"{text[:64]}": invalid syntax'
        )
        raise errors.bad_request_error(why)
    return int(text)


def _check_match(query: QueryParameters, version: str, match: str, token: str) -> None:
    """Check the rules of apimachinery `ValidateListOptions`. Raises ApiError 422."""
    causes = []
    field = "resourceVersionMatch"
    if match:
        if not version:
            causes.append(
                errors.forbidden_cause(
                    field, "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if token:
            causes.append(
                errors.forbidden_cause(
                    field, "resourceVersionMatch is forbidden when continue is provided"
                )
            )
        if match not in ("Exact", "NotOlderThan"):
            causes.append(errors.unsupported_cause(field, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            causes.append(
                errors.forbidden_cause(
                    field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
                )
            )
    if "sendInitialEvents" in query:
        causes.append(
            errors.forbidden_cause("sendInitialEvents", "sendInitialEvents is forbidden for list")
        )
    check_options(causes)


def check_options(causes: list[Cause], kind: str = "ListOptions") -> None:
    """Raise ApiError 422 about the options of a request when there are causes."""
    if causes:
        raise errors.invalid_error("meta.k8s.io", kind, "", causes)


async def wait_for_version(store: Store, version: int) -> None:
    """Wait until the store has reached `version`.

    Raises ApiError 504 when it does not within three seconds.
    """
    deadline = time.monotonic() + FUTURE_WAIT_SECONDS
    while store.rv < version:
        if time.monotonic() >= deadline:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            raise errors.timeout_error(
                f"Timeout: Too large resource version: {version}, current: {store.rv}", [cause]
            )
        await asyncio.sleep(POLL_SECONDS)


def encode_token(rv: int, last_position: ListPosition, namespace: str | None) -> str:
    """Encode a continue token that starts after `last_position`.

    With `namespace` the list is of that one alone, and the token holds only the name.
    """
    last_namespace, last_name = last_position
    prefix = ""
    if namespace is not None:
        prefix = "/"
    elif last_namespace:
        prefix = f"{last_namespace}/"
    # The first key after the last object's: "\0" sorts before any character of a longer name.
    start = f"{prefix}{last_name}\0"
    raw = msgspec.json.encode({"v": TOKEN_ENCODING, "rv": rv, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_token(token: str, namespace: str | None) -> tuple[int, ListPosition]:
    """Decode the resource version and the position in a token. Raises ApiError 400."""
    fields = _decode_fields(_decode_base64(token))
    if fields.v != TOKEN_ENCODING:
        raise _bad_token_error(f'server does not recognize this encoded version "{fields.v}"')
    if fields.rv <= 0 and fields.rv != INCONSISTENT_VERSION:
        raise _bad_token_error(
            f"incorrect encoded start resourceVersion (version {TOKEN_ENCODING})"
        )
    start = fields.start.rstrip("\0")
    if not start:
        raise _bad_token_error(f"encoded start key is empty (version {TOKEN_ENCODING})")
    token_namespace, _, name = start.lstrip("/").rpartition("/")
    return fields.rv, (token_namespace if namespace is None else namespace, name)


def expired_token_error(last_position: ListPosition, namespace: str | None) -> ApiError:
    """Build a 410 with a token that continues without consistency."""
    return errors.expired_error(
        TOO_OLD_PAGE, {"continue": encode_token(INCONSISTENT_VERSION, last_position, namespace)}
    )


def _decode_fields(raw: bytes) -> _TokenFields:
    """Decode the JSON of a token. Raises ApiError 400.

    Not `json.loads`: that takes half of a surrogate pair, which no answer could hold.
    """
    try:
        return msgspec.json.decode(raw, type=_TokenFields)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if raw.startswith(b"{"):
            why = "it is no JSON object with the texts v and start and the whole number rv"
        else:
            why = f"invalid character '{_format_go_rune(raw)}' looking for beginning of value"
        raise _bad_token_error(why) from None


def _decode_base64(token: str) -> bytes:
    """Decode unpadded URL-safe base64. Raises ApiError 400 at the first wrong byte, as Go does."""
    text = token.rstrip("=")
    for index, character in enumerate(text):
        if not (character.isascii() and (character.isalnum() or character in "-_")):
            raise _bad_token_error(f"illegal base64 data at input byte {index}")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise _bad_token_error(f"illegal base64 data at input byte {len(text) - 1}") from None


def _format_go_rune(raw: bytes) -> str:
    first = raw[0] if raw else 0
    return chr(first) if 32 <= first < 127 else f"\\u{first:04x}"


def _bad_token_error(why: str) -> ApiError:
    return errors.bad_request_error(f"invalid continue token: continue key is not valid: {why}")

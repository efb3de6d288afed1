"""Resource versions and pages: what `resourceVersion`, `resourceVersionMatch`, `limit` and
`continue` ask of a list.
"""

import asyncio
import base64
import binascii
import json
import time
from dataclasses import dataclass

import msgspec

from localkube import errors
from localkube.api.exchange import Query
from localkube.errors import ApiError, Cause
from localkube.store import Store

ENCODING = "meta.k8s.io/v1"
INCONSISTENT = -1
"""The resource version in a token that goes on with whatever is there now."""

FUTURE_WAIT = 3.0
"""Seconds that a read waits for a resource version that is not there yet (control-plane facts, item
5).
"""
POLL = 0.05

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

Position = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """What a list asks for. `exact` is the version that it must show, None for the newest; `least`
    one that must be reached first.

    `after` is the (namespace, name) that the page before ended with. A `limit` of 0 means all.
    """

    limit: int = 0
    exact: int | None = None
    least: int = 0
    after: Position | None = None


def read_page(query: Query, namespace: str | None) -> Page:
    """Raises ApiError 400 for values that are none, 422 for combinations that the API forbids."""
    limit = max(query.whole("limit") or 0, 0)
    text, match, token = (
        query.text("resourceVersion"),
        query.text("resourceVersionMatch"),
        query.text("continue"),
    )
    _check_match(query, text, match, token)
    version = read_version(text)
    if token:
        if version:
            raise errors.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        rv, after = read_token(token, namespace)
        return Page(limit, exact=None if rv == INCONSISTENT else rv, after=after)
    if match == "Exact":
        return Page(limit, exact=version)
    if text == "0":
        return Page(0)
    if limit and version and not match:
        return Page(limit, exact=version)
    return Page(limit, least=version or 0)


def read_version(text: str) -> int | None:
    """A resource version, or None for none. Raises ApiError 400."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        why = (
            f'resourceVersion: Invalid value: "{text[:64]}": strconv.ParseUint: parsing '
            f'"{text[:64]}": invalid syntax'
        )
        raise errors.bad_request(why)
    return int(text)


def _check_match(query: Query, version: str, match: str, token: str) -> None:
    """The rules of apimachinery `ValidateListOptions`."""
    causes = []
    field = "resourceVersionMatch"
    if match:
        if not version:
            causes.append(
                errors.frozen(
                    field, "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if token:
            causes.append(
                errors.frozen(field, "resourceVersionMatch is forbidden when continue is provided")
            )
        if match not in ("Exact", "NotOlderThan"):
            causes.append(errors.unsupported(field, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            causes.append(
                errors.frozen(
                    field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
                )
            )
    if "sendInitialEvents" in query:
        causes.append(errors.frozen("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    refuse_options(causes)


def refuse_options(causes: list[Cause], kind: str = "ListOptions") -> None:
    """Raises ApiError 422 about the options of a request when there is anything wrong with them."""
    if causes:
        raise errors.invalid("meta.k8s.io", kind, "", causes)


async def reach(store: Store, version: int) -> None:
    """Wait until the store has come to `version`. Raises ApiError 504 when it does not within three
    seconds.
    """
    deadline = time.monotonic() + FUTURE_WAIT
    while store.rv < version:
        if time.monotonic() >= deadline:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            raise errors.timeout(
                f"Timeout: Too large resource version: {version}, current: {store.rv}", [cause]
            )
        await asyncio.sleep(POLL)


def write_token(rv: int, last: Position, namespace: str | None) -> str:
    """A continue token that starts after `last`; with `namespace` the list is of that one alone and
    the token says only the name.
    """
    start = ("/" if namespace is not None else f"{last[0]}/" if last[0] else "") + last[1] + "\0"
    raw = msgspec.json.encode({"v": ENCODING, "rv": rv, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def read_token(token: str, namespace: str | None) -> tuple[int, Position]:
    """The resource version and position in a token. Raises ApiError 400."""
    raw = _decoded(token)
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise _bad_token(
            f"invalid character '{_go_rune(raw)}' looking for beginning of value"
        ) from None
    if not isinstance(value, dict) or value.get("v") != ENCODING:
        raise _bad_token(
            "server does not recognize this encoded version "
            f'"{value.get("v") if isinstance(value, dict) else ""}"'
        )
    rv, start = value.get("rv"), value.get("start")
    if not isinstance(rv, int) or (rv <= 0 and rv != INCONSISTENT):
        raise _bad_token(f"incorrect encoded start resourceVersion (version {ENCODING})")
    if not isinstance(start, str) or not start.rstrip("\0"):
        raise _bad_token(f"encoded start key is empty (version {ENCODING})")
    home, _, name = start.rstrip("\0").lstrip("/").rpartition("/")
    return rv, (home if namespace is None else namespace, name)


def expired_token(last: Position, namespace: str | None) -> ApiError:
    """410 with a token that goes on without consistency."""
    return errors.expired(TOO_OLD_PAGE, {"continue": write_token(INCONSISTENT, last, namespace)})


def _decoded(token: str) -> bytes:
    """Unpadded URL-safe base64, refused as Go refuses it: at the first byte that does not
    belong.
    """
    text = token.rstrip("=")
    for index, character in enumerate(text):
        if not (character.isascii() and (character.isalnum() or character in "-_")):
            raise _bad_token(f"illegal base64 data at input byte {index}")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise _bad_token(f"illegal base64 data at input byte {len(text) - 1}") from None


def _go_rune(raw: bytes) -> str:
    first = raw[0] if raw else 0
    return chr(first) if 32 <= first < 127 else f"\\u{first:04x}"


def _bad_token(why: str) -> ApiError:
    return errors.bad_request(f"invalid continue token: continue key is not valid: {why}")

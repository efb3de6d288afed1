"""The audit log. `record` and `record_all` are the only ways to add entries.

Who asks, and from where, is taken from the request that is being answered.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from projects.models import AuditEntry, User
from projects.scopes import TENANT, Scope

Event = AuditEntry.Event

CHANGED = "changed"
"""The text recorded in place of a secret."""
MAX_TEXT = 500
"""Characters of one text value."""
MAX_NAME = 150
"""Characters of a name that somebody typed to sign in."""
MAX_ITEMS = 60
"""Entries of one list or mapping."""
MAX_JSON = 32_768
"""Characters of one state as JSON."""
MAX_DEPTH = 6
"""Levels of nested values."""
BATCH_SIZE = 200
"""Entries that one statement adds."""
_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|token|kubeconfig|private|api.?key|access.?key|authorization|cookie|totp|otp\b",
    re.IGNORECASE,
)
"""Names whose values are never recorded, at any depth."""
_NOT_SECRET = re.compile(
    r"access.?key.?id|.*_(at|by|id|seconds)|must_change_password", re.IGNORECASE
)
_URL_LOGIN = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*@")
"""A user's name and password in an address."""


@dataclass(slots=True)
class Origin:
    """Where a request came from.

    `impersonator` is the name of an administrator who looks at the console as another user;
    `record_impersonator` sets it.
    """

    address: str | None = None
    request_id: str = ""
    method: str = ""
    path: str = ""
    impersonator: str = ""


origin: ContextVar[Origin | None] = ContextVar("muster_audit_origin", default=None)


def record_impersonator(impersonator: User) -> None:
    """Note that `impersonator` makes this request as another user, so that entries name both."""
    if (request_origin := origin.get()) is not None:
        request_origin.impersonator = impersonator.username


def record(
    event: Event,
    entity: str,
    *,
    by: User | None,
    id: object = "",
    name: str = "",
    scope: Scope = TENANT,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    succeeded: bool = True,
    text: str = "",
    claimed: str = "",
) -> None:
    """Add an entry in the caller's transaction: what is rolled back is not recorded.

    `entity` is a kind such as "project". `before` and `after` are the values that changed, without
    secrets: a changed secret has the value "changed". `by` None is Muster itself, or, with
    `claimed`, somebody who gave this name and is not signed in.
    """
    fields = _build_fields(event, entity, AuditedObject(id, name, scope, before), by, text, claimed)
    AuditEntry.objects.create(
        **fields, succeeded=succeeded, after=None if after is None else redact(after)
    )


@dataclass(frozen=True, slots=True)
class AuditedObject:
    """The object of an entry, for `record_all`."""

    id: object
    name: str
    scope: Scope
    before: Mapping[str, Any] | None = None


def record_all(
    event: Event, entity: str, objects: Iterable[AuditedObject], *, by: User | None, text: str = ""
) -> None:
    """Add the same entry for many objects, at most BATCH_SIZE in a statement."""
    AuditEntry.objects.bulk_create(
        (AuditEntry(**_build_fields(event, entity, item, by, text)) for item in objects),
        batch_size=BATCH_SIZE,
    )


def _build_fields(
    event: Event, entity: str, audited: AuditedObject, by: User | None, text: str, claimed: str = ""
) -> dict[str, Any]:
    """Return the column values of an entry, cut to what the columns hold."""
    origin_now = origin.get() or Origin()
    if origin_now.impersonator and by is not None and origin_now.impersonator != by.username:
        text = f"{text} Done by {origin_now.impersonator}, who looked as {by.username}.".strip()
    return {
        "event": event,
        "entity": entity[:32],
        "entity_id": _clean_text(str(audited.id))[:64],
        "entity_name": _clean_text(audited.name)[:253],
        "scope": str(audited.scope)[:64],
        "user": by,
        "subject": _clean_text(by.username if by else claimed or "Muster")[:200],
        "subject_kind": _describe_subject_kind(by, claimed),
        "address": origin_now.address,
        "request_id": origin_now.request_id[:64],
        "method": origin_now.method[:8],
        "path": _clean_text(origin_now.path)[:300],
        "before": None if audited.before is None else redact(audited.before),
        "text": _clean_text(text)[:500],
    }


def record_failed_sign_in(name: str, reason: str, user: User | None = None) -> None:
    """Record a failed attempt to sign in or to get a token.

    Only the name is recorded, as it was typed; nothing else that was typed is.
    """
    name = name[:MAX_NAME]
    record(
        Event.SIGN_IN,
        "user",
        by=None,
        claimed=name,
        id=user.pk if user else "",
        name=name,
        succeeded=False,
        text=reason,
    )


def select_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts of two states that differ, as (before, after) for `record`."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def redact(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as an entry stores them: bounded JSON without secrets.

    A value whose name says that it is a secret becomes "changed".
    """
    redacted = _truncate(values, MAX_DEPTH)
    assert isinstance(redacted, dict)
    # Lists of lists can still be too large: then only the names are recorded.
    return redacted if len(json.dumps(redacted)) <= MAX_JSON else dict.fromkeys(redacted, "...")


def _describe_subject_kind(by: User | None, claimed: str) -> str:
    if by is None:
        return "unknown" if claimed else "system"
    if by.is_service:
        return "service account"
    return "personal key" if by.personal_key is not None else "user"


def is_secret(name: str) -> bool:
    """Tell whether a value of this name is a secret, which is never recorded."""
    return bool(_SECRET.search(name)) and not _NOT_SECRET.fullmatch(name)


def _truncate(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if depth == 0:
        return "..."
    if isinstance(value, Mapping):
        hidden = _find_secret_values(value)
        items = [(str(name), inner) for name, inner in list(value.items())[:MAX_ITEMS]]
        return {
            _clean_text(name)[:100]: _redact_named(
                "secret" if name in hidden else name, inner, depth
            )
            for name, inner in items
        }
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_truncate(inner, depth - 1) for inner in list(value)[:MAX_ITEMS]]
    return _clean_text(str(value))[:MAX_TEXT]


def _find_secret_values(pairs: Mapping[Any, Any]) -> set[str]:
    """Return the names of values whose neighbours call them secret.

    A variable is `name` and `value`; typed into a row of a form it is `variables-0-name` and
    `variables-0-value`.
    """
    names = [
        (name, inner)
        for name, inner in pairs.items()
        if isinstance(name, str) and (name == "name" or name.endswith("-name"))
    ]
    called = [(name, inner if isinstance(inner, list) else [inner]) for name, inner in names]
    return {
        f"{name.removesuffix('name')}value"
        for name, texts in called
        if any(is_secret(str(text)) for text in texts)
    }


def _redact_named(name: str, value: Any, depth: int) -> Any:
    is_harmless = value in (None, "", CHANGED) or isinstance(value, bool)
    if not is_secret(name):
        return _truncate(value, depth - 1)
    return value if is_harmless else CHANGED


def _clean_text(text: str) -> str:
    """Return text that every database can store, without logins in addresses."""
    return _URL_LOGIN.sub("", text.replace("\x00", "")).encode(errors="replace").decode()

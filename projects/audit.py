"""The audit log: `record` is the only way in. Who asks, and from where, is known from the request
that is being answered.
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
"""What stands for a secret."""
MAX_TEXT = 500
MAX_NAME = 150
MAX_ITEMS = 60
MAX_JSON = 32_768
"""Characters of one state as JSON."""
MAX_DEPTH = 6
BATCH_SIZE = 200
"""Entries that one statement adds."""
_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|token|kubeconfig|private|api.?key|access.?key|authorization|cookie|totp|otp\b",
    re.IGNORECASE,
)
"""Names of what is never recorded, wherever it stands."""
_NOT_SECRET = re.compile(
    r"access.?key.?id|.*_(at|by|id|seconds)|must_change_password", re.IGNORECASE
)
_URL_LOGIN = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*@")
"""A user's name and password in an address."""


@dataclass(slots=True)
class Origin:
    """Where a request came from; `really` is learnt later, by `looking_as`."""

    address: str | None = None
    request_id: str = ""
    method: str = ""
    path: str = ""
    impersonator: str = ""


origin: ContextVar[Origin | None] = ContextVar("muster_audit_origin", default=None)


def record_impersonator(impersonator: User) -> None:
    """The request that is being answered is made by `really`, who looks at the console as another:
    entries name both.
    """
    if (here := origin.get()) is not None:
        here.impersonator = impersonator.username


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
    """Add an entry, in the caller's transaction: what is rolled back was not done.

    `entity` is a kind of thing as "project". `before` and `after` are what changed, without
    secrets: one that changed is named with the value "changed". `by` None is Muster itself, or with
    `claimed` somebody who gave this name and is not signed in.
    """
    said = _build_fields(event, entity, AuditedObject(id, name, scope, before), by, text, claimed)
    AuditEntry.objects.create(
        **said, succeeded=succeeded, after=None if after is None else redact(after)
    )


@dataclass(frozen=True, slots=True)
class AuditedObject:
    """What an entry is of: one of many to which the same was done."""

    id: object
    name: str
    scope: Scope
    before: Mapping[str, Any] | None = None


def record_all(
    event: Event, entity: str, objects: Iterable[AuditedObject], *, by: User | None, text: str = ""
) -> None:
    """`record` for each of many, as many in a statement as the database takes, and AT_ONCE at
    most.
    """
    AuditEntry.objects.bulk_create(
        (AuditEntry(**_build_fields(event, entity, each, by, text)) for each in objects),
        batch_size=BATCH_SIZE,
    )


def _build_fields(
    event: Event, entity: str, audited: AuditedObject, by: User | None, text: str, claimed: str = ""
) -> dict[str, Any]:
    here = origin.get() or Origin()
    if here.impersonator and by is not None and here.impersonator != by.username:
        text = f"{text} Done by {here.impersonator}, who looked as {by.username}.".strip()
    return {
        "event": event,
        "entity": entity[:32],
        "entity_id": _clean_text(str(audited.id))[:64],
        "entity_name": _clean_text(audited.name)[:253],
        "scope": str(audited.scope)[:64],
        "user": by,
        "subject": _clean_text(by.username if by else claimed or "Muster")[:200],
        "subject_kind": _describe_subject_kind(by, claimed),
        "address": here.address,
        "request_id": here.request_id[:64],
        "method": here.method[:8],
        "path": _clean_text(here.path)[:300],
        "before": None if audited.before is None else redact(audited.before),
        "text": _clean_text(text)[:500],
    }


def record_failed_sign_in(name: str, reason: str, user: User | None = None) -> None:
    """Note an attempt to sign in, or to get a token, that failed: with the name as it was typed and
    nothing else that was.
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
    """The parts of two states that differ, for `record`."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def redact(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as an entry keeps them: JSON, of a bounded size, and "changed" for every secret by
    its name.
    """
    found = _truncate(values, MAX_DEPTH)
    assert isinstance(found, dict)
    # Lists of lists can still be large: then only what it is of is told.
    return found if len(json.dumps(found)) <= MAX_JSON else dict.fromkeys(found, "...")


def _describe_subject_kind(by: User | None, claimed: str) -> str:
    if by is None:
        return "unknown" if claimed else "system"
    if by.is_service:
        return "service account"
    return "personal key" if by.personal_key is not None else "user"


def is_secret(name: str) -> bool:
    """Whether what is called so is never recorded."""
    return bool(_SECRET.search(name)) and not _NOT_SECRET.fullmatch(name)


def _truncate(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if depth == 0:
        return "..."
    if isinstance(value, Mapping):
        hidden = _find_secret_values(value)
        some = [(str(name), inner) for name, inner in list(value.items())[:MAX_ITEMS]]
        return {
            _clean_text(name)[:100]: _redact_named(
                "secret" if name in hidden else name, inner, depth
            )
            for name, inner in some
        }
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_truncate(inner, depth - 1) for inner in list(value)[:MAX_ITEMS]]
    return _clean_text(str(value))[:MAX_TEXT]


def _find_secret_values(pairs: Mapping[Any, Any]) -> set[str]:
    """The names of values whose neighbours call them secret: a variable is `name` and `value`,
    typed into a row of a form it is `variables-0-name` and `variables-0-value`.
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
    is_told = value in (None, "", CHANGED) or isinstance(value, bool)
    return (
        value
        if is_secret(name) and is_told
        else CHANGED
        if is_secret(name)
        else _truncate(value, depth - 1)
    )


def _clean_text(text: str) -> str:
    """Text that every database keeps, without passwords of addresses."""
    return _URL_LOGIN.sub("", text.replace("\x00", "")).encode(errors="replace").decode()

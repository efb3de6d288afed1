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
LONGEST_TEXT = 500
LONGEST_NAME = 150
MOST_ITEMS = 60
LARGEST = 32_768
"""Characters of one state as JSON."""
DEEPEST = 6
AT_ONCE = 200
"""Entries that one statement adds."""
_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|token|kubeconfig|private|api.?key|access.?key|authorization|cookie|totp|otp\b",
    re.IGNORECASE,
)
"""Names of what is never recorded, wherever it stands."""
_NOT_SECRET = re.compile(
    r"access.?key.?id|.*_(at|by|id|seconds)|must_change_password", re.IGNORECASE
)
_LOGIN = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*@")
"""A user's name and password in an address."""


@dataclass(slots=True)
class Origin:
    """Where a request came from; `really` is learnt later, by `looking_as`."""

    address: str | None = None
    request_id: str = ""
    method: str = ""
    path: str = ""
    really: str = ""


origin: ContextVar[Origin | None] = ContextVar("muster_audit_origin", default=None)


def looking_as(really: User) -> None:
    """The request that is being answered is made by `really`, who looks at the console as another:
    entries name both.
    """
    if (here := origin.get()) is not None:
        here.really = really.username


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
    said = _said(event, entity, Of(id, name, scope, before), by, text, claimed)
    AuditEntry.objects.create(
        **said, succeeded=succeeded, after=None if after is None else shown(after)
    )


@dataclass(frozen=True, slots=True)
class Of:
    """What an entry is of: one of many to which the same was done."""

    id: object
    name: str
    scope: Scope
    before: Mapping[str, Any] | None = None


def record_all(
    event: Event, entity: str, of: Iterable[Of], *, by: User | None, text: str = ""
) -> None:
    """`record` for each of many, as many in a statement as the database takes, and AT_ONCE at
    most.
    """
    AuditEntry.objects.bulk_create(
        (AuditEntry(**_said(event, entity, each, by, text)) for each in of), batch_size=AT_ONCE
    )


def _said(
    event: Event, entity: str, of: Of, by: User | None, text: str, claimed: str = ""
) -> dict[str, Any]:
    here = origin.get() or Origin()
    if here.really and by is not None and here.really != by.username:
        text = f"{text} Done by {here.really}, who looked as {by.username}.".strip()
    return {
        "event": event,
        "entity": entity[:32],
        "entity_id": _plain(str(of.id))[:64],
        "entity_name": _plain(of.name)[:253],
        "scope": str(of.scope)[:64],
        "user": by,
        "subject": _plain(by.username if by else claimed or "Muster")[:200],
        "subject_kind": _kind(by, claimed),
        "address": here.address,
        "request_id": here.request_id[:64],
        "method": here.method[:8],
        "path": _plain(here.path)[:300],
        "before": None if of.before is None else shown(of.before),
        "text": _plain(text)[:500],
    }


def sign_in_failed(name: str, why: str, user: User | None = None) -> None:
    """Note an attempt to sign in, or to get a token, that failed: with the name as it was typed and
    nothing else that was.
    """
    name = name[:LONGEST_NAME]
    record(
        Event.SIGN_IN,
        "user",
        by=None,
        claimed=name,
        id=user.pk if user else "",
        name=name,
        succeeded=False,
        text=why,
    )


def changed(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of two states that differ, for `record`."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def shown(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as an entry keeps them: JSON, of a bounded size, and "changed" for every secret by
    its name.
    """
    found = _bounded(values, DEEPEST)
    assert isinstance(found, dict)
    # Lists of lists can still be large: then only what it is of is told.
    return found if len(json.dumps(found)) <= LARGEST else dict.fromkeys(found, "...")


def _kind(by: User | None, claimed: str) -> str:
    if by is None:
        return "unknown" if claimed else "system"
    if by.is_service:
        return "service account"
    return "personal key" if by.personal_key is not None else "user"


def is_secret(name: str) -> bool:
    """Whether what is called so is never recorded."""
    return bool(_SECRET.search(name)) and not _NOT_SECRET.fullmatch(name)


def _bounded(value: Any, levels: int) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if levels == 0:
        return "..."
    if isinstance(value, Mapping):
        hidden = _values_of_secrets(value)
        some = [(str(name), inner) for name, inner in list(value.items())[:MOST_ITEMS]]
        return {
            _plain(name)[:100]: _named("secret" if name in hidden else name, inner, levels)
            for name, inner in some
        }
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_bounded(inner, levels - 1) for inner in list(value)[:MOST_ITEMS]]
    return _plain(str(value))[:LONGEST_TEXT]


def _values_of_secrets(pairs: Mapping[Any, Any]) -> set[str]:
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


def _named(name: str, value: Any, levels: int) -> Any:
    is_told = value in (None, "", CHANGED) or isinstance(value, bool)
    return (
        value
        if is_secret(name) and is_told
        else CHANGED
        if is_secret(name)
        else _bounded(value, levels - 1)
    )


def _plain(text: str) -> str:
    """Text that every database keeps, without passwords of addresses."""
    return _LOGIN.sub("", text.replace("\x00", "")).encode(errors="replace").decode()

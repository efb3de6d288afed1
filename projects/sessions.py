"""Sessions of browsers: their list, their extension while used, and their end."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from console.errors import UserError
from projects import access, audit, granting
from projects.audit import Event
from projects.models import SignInRequest, User
from projects.permissions import Entity, Verb

MAX_SESSIONS = 50
"""Sessions of one person; the longest unused end when there are more."""
# Nothing listens there, it stands for an address that is not known.
UNKNOWN_ADDRESS = "0.0.0.0"  # noqa: S104
LAST_USED_KEY = "seen"
"""The session's key for the approximate time of its last use."""
NOTE_SECONDS = 300.0
"""Seconds between two notes of the last use: not every request has to write."""
_POLLING_SUFFIXES = ("-live", "-changes", "-stream")
"""Ends of the URL names that an open page requests by itself.

Such requests do not extend a session: a page that nobody looks at must not keep it alive.
"""
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One session as the account page lists it."""

    pk: int
    browser: str
    address: str
    started_at: datetime
    last_used_at: datetime
    is_current: bool


def list_sessions(user: User, current_key: str | None) -> Sequence[BrowserSession]:
    """Return the user's open sessions, that of `current_key` first, then the last used."""
    rows = list(
        UserSession.objects.filter(user=user).order_by("-last_seen_at", "-pk")[:MAX_SESSIONS]
    )
    open_keys = _find_open_keys(user, [row.session_key for row in rows])
    listed = [
        BrowserSession(
            row.pk,
            describe_browser(row.user_agent),
            "" if row.ip == UNKNOWN_ADDRESS else row.ip,
            row.created_at,
            row.last_seen_at,
            row.session_key == current_key,
        )
        for row in rows
        if row.session_key in open_keys
    ]
    return sorted(listed, key=lambda each: not each.is_current)


def record_session(request: HttpRequest) -> None:
    """Record the session of a user who signed in; the longest unused beyond MAX_SESSIONS end."""
    UserSession.objects.create_from_request(request)
    rows = UserSession.objects.filter(user=request.user).order_by("-last_seen_at", "-pk")
    _delete_sessions(
        list(rows.values_list("session_key", flat=True)[MAX_SESSIONS : 2 * MAX_SESSIONS])
    )


def extend_session(request: HttpRequest) -> None:
    """Extend the session because the user made a request.

    Requests that an open page makes by itself do not count.
    """
    match = request.resolver_match
    if not request.user.is_authenticated or (
        match is not None and (match.url_name or "").endswith(_POLLING_SUFFIXES)
    ):
        return
    now = time.time()
    # Where sessions are short, they are noted more often.
    if now - float(request.session.get(LAST_USED_KEY, 0)) < min(
        NOTE_SECONDS, settings.SESSION_COOKIE_AGE / 20
    ):
        return
    request.session[LAST_USED_KEY] = now
    # Who looks as another does so in their own session.
    if request.session.session_key and request.session.get(SESSION_KEY) == str(request.user.pk):
        record_session(request)


def update_session_key(request: HttpRequest, old_key: str | None) -> None:
    """Store the session's new key, so that it stays the same session in the list."""
    UserSession.objects.filter(session_key=old_key).update(session_key=request.session.session_key)


def end_session(user: User, pk: int) -> bool:
    """End one of the user's sessions; tell whether it existed."""
    keys = list(UserSession.objects.filter(user=user, pk=pk).values_list("session_key", flat=True))
    _delete_sessions(keys)
    return bool(keys)


def end_all_sessions(user: User, *, except_key: str | None = None) -> int:
    """End the user's sessions but that of `except_key`; return how many there were.

    Tokens that programs got with their password or by a code end with them, and so do codes that
    were confirmed and not claimed yet.
    """
    User.objects.filter(pk=user.pk).update(sign_outs=F("sign_outs") + 1)
    SignInRequest.objects.filter(user=user).delete()
    keys = list(
        UserSession.objects.filter(user=user)
        .exclude(session_key=except_key or "")
        .values_list("session_key", flat=True)[: 10 * MAX_SESSIONS]
    )
    _delete_sessions(keys)
    return len(keys)


def sign_out_everywhere(user: User, by: User) -> None:
    """End all sessions of a user for an administrator."""
    access.require(by, Verb.EDIT, Entity.USERS)
    if user.is_service:
        raise UserError("This is a service account: it has no sessions.")
    granting.require_not_above(user, by)
    with transaction.atomic():
        ended = end_all_sessions(user)
        audit.record(
            Event.SIGN_OUT,
            "user",
            by=by,
            id=user.pk,
            name=user.username,
            text=f"Ended all of their sessions ({ended}).",
        )


def forget_session(key: str | None) -> None:
    """Delete the record of a session that has ended."""
    UserSession.objects.filter(session_key=key or "").delete()


def describe_browser(agent: str) -> str:
    """Describe a browser in two words from its User-Agent.

    The User-Agent is hostile text: nothing of it is shown.
    """
    name = next((words for mark, words in _BROWSERS if mark in agent), "Unknown browser")
    system = next((words for mark, words in _SYSTEMS if mark in agent), "")
    return f"{name} on {system}" if system else name


def _find_open_keys(user: User, keys: Sequence[str]) -> frozenset[str]:
    """Return the keys of valid sessions: not ended or expired, and of the present password."""
    present_hash = user.get_session_auth_hash()
    rows = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    sessions = {row.session_key: row.get_decoded() for row in rows}
    return frozenset(
        key
        for key, session in sessions.items()
        if session.get(SESSION_KEY) == str(user.pk)
        and constant_time_compare(str(session.get(HASH_SESSION_KEY, "")), present_hash)
    )


def _delete_sessions(keys: Sequence[str]) -> None:
    Session.objects.filter(session_key__in=keys).delete()
    UserSession.objects.filter(session_key__in=keys).delete()


@receiver(user_logged_in)
def _note_sign_in(request: HttpRequest, **_: object) -> None:
    request.session[LAST_USED_KEY] = time.time()

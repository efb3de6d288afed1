"""Looking at Muster as another user sees it: begun and ended by an administrator, read-only, and in
the audit log.

While it lasts `request.user` is whom one looks as, and `request.looker` is who really asks. The
REST API knows nothing of it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.contrib.auth import SESSION_KEY, get_user
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin

from console.errors import NotAllowed, UserError, refused
from projects import access, audit, granting
from projects.audit import Event
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import TENANT

KEY = "muster_looking_as"
"""In the session: the id of whom one looks as."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_THEIRS = ("/account", "/sign-in", "/sign-on")
"""What is nobody's but the person's own: passwords, second factors, keys, sessions, and who they
are at the single sign-on.
"""
_WRITES = "writes_when_asked"
"""On a view: what `writes` says of it."""

View = TypeVar("View", bound=Callable[..., Any])


def writes(view: View) -> View:
    """Says of a view that it stores something although it is only asked for, so that nobody comes
    there who looks as another.
    """
    setattr(view, _WRITES, True)
    return view


def start(request: HttpRequest, pk: int, by: User) -> User:
    """From now on this browser looks as the user. Raises NotAllowed for who may not, and for a user
    who may do what they may not.
    """
    access.require(by, Verb.EDIT, Entity.USERS, TENANT)
    user = get_object_or_404(User, pk=pk, is_service=False)
    if user == by:
        raise UserError("This is you. Choose somebody else to look as.")
    if not user.is_active:
        raise UserError(f"{user} is deactivated, and sees nothing. Activate them first.")
    granting.require_not_above(user, by)
    audit.record(
        Event.LOOK_AS,
        "user",
        by=by,
        id=user.pk,
        name=user.username,
        text="Began to look as this user.",
    )
    request.session[KEY] = user.pk
    return user


def end(request: HttpRequest, by: User) -> None:
    """Look as oneself again."""
    user = User.objects.filter(pk=request.session.pop(KEY, None)).first()
    if user is not None:
        audit.record(
            Event.LOOK_AS,
            "user",
            by=by,
            id=user.pk,
            name=user.username,
            text="Looked as this user no more.",
        )


def seen_by(looker: User, session: SessionBase) -> User | None:
    """Whom the one who is signed in looks as, as their session says; None for nobody, or for one as
    whom they may not look any more.
    """
    seen = User.objects.filter(pk=session.get(KEY, 0), is_active=True, is_service=False).first()
    return seen if seen is not None and _may_look(looker, seen) else None


def asking(request: HttpRequest) -> Callable[[], User | None]:
    """For a stream, which outlives its request: tells at any later time whose page it is by then,
    as `request.user` would be.

    None once the session has ended or expired, or its user may not come in any more.
    """
    store, key = type(request.session), request.session.session_key

    def now() -> User | None:
        later = HttpRequest()
        later.session = store(key)
        # An empty session is nobody's, and is not to be asked for: that would make one.
        found = get_user(later) if SESSION_KEY in later.session else None
        if not isinstance(found, User) or not found.is_active:
            return None
        return seen_by(found, later.session) if KEY in later.session else found

    return now


class Looking(MiddlewareMixin):
    """Puts whom one looks as in the place of who is signed in, and refuses everything but
    looking.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path.startswith("/api/") or KEY not in request.session:
            return None
        if request.path in (reverse("sign-out"), reverse("look-as-end")):
            return None
        looker = request.user
        seen = seen_by(looker, request.session) if isinstance(looker, User) else None
        if seen is None or not isinstance(looker, User):
            del request.session[KEY]
            return None
        request.looker = looker  # type: ignore[attr-defined]
        request.user = seen
        audit.looking_as(looker)

        async def as_seen() -> User:
            return seen

        request.auser = as_seen
        return _refusal(request, seen)

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> HttpResponse | None:
        if not hasattr(request, "looker") or not getattr(view, _WRITES, False):
            return None
        assert isinstance(request.user, User)
        return refused(request, NotAllowed(_told(request.user)))


def _may_look(looker: User, seen: User) -> bool:
    """What they may was asked when it began; it may have been taken from them meanwhile."""
    if not access.may(looker, Verb.EDIT, Entity.USERS):
        return False
    try:
        granting.require_not_above(seen, looker)
    except NotAllowed:
        return False
    return True


def _refusal(request: HttpRequest, seen: User) -> HttpResponse | None:
    if request.method not in _SAFE:
        return refused(request, NotAllowed(_told(seen)))
    if request.path.startswith(_THEIRS):
        return refused(
            request,
            NotAllowed(
                f"This page is {seen.username}'s own, and nobody else's to see. {_told(seen)}"
            ),
        )
    return None


def _told(seen: User) -> str:
    return (
        f"You look at Muster as {seen.username}, and can only look. End that first, at the top of "
        "the page."
    )

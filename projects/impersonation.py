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

from console.errors import NotAllowed, UserError, render_refusal
from projects import access, audit, granting
from projects.audit import Event
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import TENANT

SESSION_USER_KEY = "muster_looking_as"
"""In the session: the id of whom one looks as."""
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PRIVATE_PATHS = ("/account", "/sign-in", "/sign-on")
"""What is nobody's but the person's own: passwords, second factors, keys, sessions, and who they
are at the single sign-on.
"""
_WRITES_ATTRIBUTE = "writes_when_asked"
"""On a view: what `writes` says of it."""

View = TypeVar("View", bound=Callable[..., Any])


def writes_on_get(view: View) -> View:
    """Says of a view that it stores something although it is only asked for, so that nobody comes
    there who looks as another.
    """
    setattr(view, _WRITES_ATTRIBUTE, True)
    return view


def start_impersonation(request: HttpRequest, pk: int, by: User) -> User:
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
    request.session[SESSION_USER_KEY] = user.pk
    return user


def end_impersonation(request: HttpRequest, by: User) -> None:
    """Look as oneself again."""
    user = User.objects.filter(pk=request.session.pop(SESSION_USER_KEY, None)).first()
    if user is not None:
        audit.record(
            Event.LOOK_AS,
            "user",
            by=by,
            id=user.pk,
            name=user.username,
            text="Looked as this user no more.",
        )


def find_impersonated_user(looker: User, session: SessionBase) -> User | None:
    """Whom the one who is signed in looks as, as their session says; None for nobody, or for one as
    whom they may not look any more.
    """
    seen = User.objects.filter(
        pk=session.get(SESSION_USER_KEY, 0), is_active=True, is_service=False
    ).first()
    return seen if seen is not None and _may_impersonate(looker, seen) else None


def make_user_lookup(request: HttpRequest) -> Callable[[], User | None]:
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
        return (
            find_impersonated_user(found, later.session)
            if SESSION_USER_KEY in later.session
            else found
        )

    return now


class ImpersonationMiddleware(MiddlewareMixin):
    """Puts whom one looks as in the place of who is signed in, and refuses everything but
    looking.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path.startswith("/api/") or SESSION_USER_KEY not in request.session:
            return None
        if request.path in (reverse("sign-out"), reverse("look-as-end")):
            return None
        looker = request.user
        seen = find_impersonated_user(looker, request.session) if isinstance(looker, User) else None
        if seen is None or not isinstance(looker, User):
            del request.session[SESSION_USER_KEY]
            return None
        request.looker = looker  # type: ignore[attr-defined]
        request.user = seen
        audit.record_impersonator(looker)

        async def as_seen() -> User:
            return seen

        request.auser = as_seen
        return _find_refusal(request, seen)

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> HttpResponse | None:
        if not hasattr(request, "looker") or not getattr(view, _WRITES_ATTRIBUTE, False):
            return None
        assert isinstance(request.user, User)
        return render_refusal(request, NotAllowed(_describe_read_only(request.user)))


def _may_impersonate(looker: User, impersonated: User) -> bool:
    """What they may was asked when it began; it may have been taken from them meanwhile."""
    if not access.may(looker, Verb.EDIT, Entity.USERS):
        return False
    try:
        granting.require_not_above(impersonated, looker)
    except NotAllowed:
        return False
    return True


def _find_refusal(request: HttpRequest, impersonated: User) -> HttpResponse | None:
    if request.method not in _SAFE_METHODS:
        return render_refusal(request, NotAllowed(_describe_read_only(impersonated)))
    if request.path.startswith(_PRIVATE_PATHS):
        return render_refusal(
            request,
            NotAllowed(
                f"This page is {impersonated.username}'s own, and nobody else's to see. "
                f"{_describe_read_only(impersonated)}"
            ),
        )
    return None


def _describe_read_only(impersonated: User) -> str:
    return (
        f"You look at Muster as {impersonated.username}, and can only look. End that first, at the "
        "top of the page."
    )

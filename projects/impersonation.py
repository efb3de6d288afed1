"""Impersonation: an administrator looks at Muster as another user, read-only and audited.

Meanwhile `request.user` is the impersonated user and `request.looker` is the administrator. The
REST API has no impersonation.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, get_user
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin

from console.errors import NotAllowed, UserError, render_refusal
from projects import access, audit, granting
from projects.audit import Event
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import TENANT

SESSION_USER_KEY = "muster_looking_as"
"""The session's key for the id of the impersonated user."""
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PRIVATE_PATHS = ("/account", "/sign-in", "/sign-on")
"""Pages that belong to the person alone: passwords, second factors, keys, sessions and single
sign-on.
"""
_WRITES_ATTRIBUTE = "writes_when_asked"
"""The attribute that `writes_on_get` sets on a view."""
_WHY_ENDED = "they are deactivated, or may do what you may not, or your own rights have changed."

View = TypeVar("View", bound=Callable[..., Any])


def writes_on_get(view: View) -> View:
    """Mark a view that stores something even on GET; impersonators are refused there."""
    setattr(view, _WRITES_ATTRIBUTE, True)
    return view


def start_impersonation(request: HttpRequest, pk: int, by: User) -> User:
    """Let this browser look as the user.

    Raises NotAllowed where `by` may not, or where the user may do what `by` may not.
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
    """End the impersonation of this browser."""
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
    """Return the user whom the session impersonates.

    None where there is none, or where `looker` may not impersonate them any more.
    """
    user = User.objects.filter(
        pk=session.get(SESSION_USER_KEY, 0), is_active=True, is_service=False
    ).first()
    return user if user is not None and _may_impersonate(looker, user) else None


def make_user_lookup(request: HttpRequest) -> Callable[[], User | None]:
    """Return a function that tells the current user of this request's session.

    For a stream, which outlives its request. The function returns what `request.user` would be by
    then: None once the session has ended or expired, or its user is deactivated.
    """
    store, key = type(request.session), request.session.session_key

    def find_current_user() -> User | None:
        later_request = HttpRequest()
        later_request.session = store(key)
        # An empty session is nobody's, and is not to be asked for: that would make one.
        user = get_user(later_request) if SESSION_KEY in later_request.session else None
        if not isinstance(user, User) or not user.is_active:
            return None
        return (
            find_impersonated_user(user, later_request.session)
            if SESSION_USER_KEY in later_request.session
            else user
        )

    return find_current_user


class ImpersonationMiddleware(MiddlewareMixin):
    """Replace `request.user` by the impersonated user, and refuse every write."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path.startswith("/api/") or SESSION_USER_KEY not in request.session:
            return None
        # These end the administrator's own session, or the impersonation.
        if request.path in (reverse("sign-out"), reverse("look-as-end")):
            return None
        looker = request.user
        if not isinstance(looker, User):
            del request.session[SESSION_USER_KEY]
            return None
        impersonated = find_impersonated_user(looker, request.session)
        if impersonated is None:
            return _end_or_refuse(request, looker)
        request.looker = looker  # type: ignore[attr-defined]
        request.user = impersonated
        audit.record_impersonator(looker)

        async def as_seen() -> User:
            return impersonated

        request.auser = as_seen
        return _find_refusal(request, impersonated)

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
    """Tell whether the looker may still do so: rights may have changed since the start."""
    if not access.is_permitted(looker, Verb.EDIT, Entity.USERS):
        return False
    try:
        granting.require_not_above(impersonated, looker)
    except NotAllowed:
        return False
    return True


def _end_or_refuse(request: HttpRequest, looker: User) -> HttpResponse:
    """End an impersonation that may not go on: with the next page, and with nothing else.

    What an open page sends was meant as the impersonated user. It must not be done as the
    administrator, nor fill that page with what the administrator sees.
    """
    if not _is_page_request(request):
        return render_refusal(
            request,
            NotAllowed(
                f"You looked at Muster as somebody else, and that has ended: {_WHY_ENDED} Nothing "
                "was done by this. Load the page again to go on as yourself."
            ),
        )
    end_impersonation(request, looker)
    messages.warning(request, f"You look as yourself again: {_WHY_ENDED}")
    # Not to the page that was asked for: some begin a draft, and some are files.
    return redirect(settings.LOGIN_REDIRECT_URL)


def _is_page_request(request: HttpRequest) -> bool:
    """Tell whether a browser goes to a page; scripts and streams of a page accept no HTML."""
    return (
        request.method == "GET"
        and not getattr(request, "htmx", False)
        and "text/html" in request.headers.get("Accept", "text/html")
    )


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

"""A temporary password opens one page only: the one where it is changed. So it is with a second
factor that is asked of everybody.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from console.errors import UserError, render_refusal
from projects import second_factor, sessions

_OPEN_URL_NAMES = frozenset({"account", "sign-in", "sign-out", "healthz", "readyz"})
_SETUP_URL_NAME = "second-factor"


class RequireSetupMiddleware(MiddlewareMixin):
    """Who has to change their password, or to set up a second factor, is sent to do so from every
    page but the way out.
    """

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        match = request.resolver_match
        if not getattr(view, "login_required", True) or request.path.startswith("/api/"):
            return None
        # An administrator looks as somebody else: what that person has to do first is not theirs,
        # nor is the session that person's.
        if hasattr(request, "looker"):
            return None
        sessions.extend_session(request)
        name = match.url_name if match is not None else ""
        # Who looks as another sees what that one will see, and can set up nothing for them.
        if name in _OPEN_URL_NAMES or hasattr(request, "looker"):
            return None
        if getattr(request.user, "must_change_password", False):
            return _send_to_account(
                request,
                "Your password is a temporary one. Choose your own on the account page first.",
            )
        if name != _SETUP_URL_NAME and second_factor.is_missing(request.user):
            return _send_to_account(
                request,
                "Everybody needs a second factor here. Set up yours on the account page first.",
            )
        return None


def _send_to_account(request: HttpRequest, text: str) -> HttpResponse:
    if request.method != "GET" or getattr(request, "htmx", None):
        return render_refusal(request, UserError(text, status=403))
    return redirect("account")

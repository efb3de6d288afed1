"""The middleware that sends users to a required setup first.

A temporary password opens only the page where it is changed; the same holds for a second factor
that everybody needs.
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
    """Send users with a temporary password or a missing second factor to the page for it."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        match = request.resolver_match
        if not getattr(view, "login_required", True) or request.path.startswith("/api/"):
            return None
        # An administrator who impersonates can set up nothing for that user, and their use of the
        # session does not extend that user's.
        if hasattr(request, "looker"):
            return None
        sessions.extend_session(request)
        name = match.url_name if match is not None else ""
        if name in _OPEN_URL_NAMES:
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

"""A temporary password opens one page only: the one where it is changed."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from console.errors import UserError, refused

_OPEN = frozenset({"account", "sign-in", "sign-out", "healthz", "readyz"})


class ChangeFirst(MiddlewareMixin):
    """Who has to change their password is sent to do so from every page but the way out."""

    def process_view(self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any) -> HttpResponse | None:
        match = request.resolver_match
        if not getattr(view, "login_required", True) or (match is not None and match.url_name in _OPEN) or request.path.startswith("/api/"):
            return None
        if not getattr(request.user, "must_change_password", False):
            return None
        if request.method != "GET" or getattr(request, "htmx", None):
            return refused(request, UserError("Your password is a temporary one. Choose your own on the account page first.", status=403))
        return redirect("account")

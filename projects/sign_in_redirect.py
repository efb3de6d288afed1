"""Sends whoever is not signed in to the sign-in page."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme

_NOTHING_DONE = "You were signed out, so nothing was done. Sign in, and do it again."


class SignInRedirectMiddleware(LoginRequiredMiddleware):
    """Send to the sign-in page, and from there back to the page that asked."""

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponseRedirect:
        """Redirect to the sign-in page; a request that would change something says it did not.

        It leads back to the page that sent it: its own address may answer to nothing but POST.
        """
        if request.method in ("GET", "HEAD"):
            return super().handle_no_permission(request, view_func)
        messages.error(request, _NOTHING_DONE)
        page = request.headers.get("Referer", "")
        if not url_has_allowed_host_and_scheme(page, request.get_host()):
            return super().handle_no_permission(request, view_func)
        parts = urlsplit(page)
        return redirect_to_login(parts._replace(scheme="", netloc="", fragment="").geturl())

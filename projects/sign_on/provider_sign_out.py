"""Signing out at the provider, whose own session goes on when that of Muster ends."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest

from projects.sign_on import provider_http

_SESSION_KEY = "provider_sign_out"
"""The session's key for the address; "" where the provider has none."""


def store_url(request: HttpRequest, description: Mapping[str, Any]) -> None:
    """Store in the session where to sign out at the provider that it began with."""
    endpoint = description.get("end_session_endpoint")
    is_usable = isinstance(endpoint, str) and not provider_http.find_url_problem(endpoint)
    request.session[_SESSION_KEY] = _build_url(str(endpoint)) if is_usable else ""


def find_url(request: HttpRequest) -> str | None:
    """Return where the session's person signs out at the provider, "" where that is not known.

    None where the session did not begin with single sign-on, or where there is none any more.
    """
    url: str | None = request.session.get(_SESSION_KEY)
    return url if settings.OPTIONS.oidc_issuer else None


def _build_url(endpoint: str) -> str:
    # OpenID Connect RP-Initiated Logout, 2: without an ID token, which is not stored, the provider
    # asks the person. The address to come back to would have to be registered there as well.
    separator = "&" if "?" in endpoint else "?"
    return f"{endpoint}{separator}{urlencode({'client_id': settings.OPTIONS.oidc_client_id})}"

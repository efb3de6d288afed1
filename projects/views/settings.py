"""The page of the installation's settings, read-only: they are changed in the environment."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from projects import access
from projects.http import Request
from projects.permissions import Entity, Verb
from projects.sign_on import discovery, trial


@never_cache
@require_safe
def overview(request: Request) -> HttpResponse:
    """Show the settings of signing in, without any secret."""
    access.require(request.user, Verb.VIEW, Entity.SETTINGS)
    return _render_settings(request)


@never_cache
@require_POST
def try_sign_on(request: Request) -> HttpResponse:
    """Test the provider of single sign-on and show what is wrong."""
    access.require(request.user, Verb.EDIT, Entity.SETTINGS)
    has_provider = bool(settings.OPTIONS.oidc_issuer)
    return _render_settings(
        request, steps=trial.run_trial(_build_callback_url(request)) if has_provider else ()
    )


def _build_callback_url(request: Request) -> str:
    """Return the address that is to be registered at the provider."""
    return request.build_absolute_uri(reverse("sign-on-callback"))


def _render_settings(request: Request, **more: Any) -> HttpResponse:
    options = settings.OPTIONS
    context = {
        "options": options,
        "discovery": discovery.get_discovery_url() if options.oidc_issuer else "",
        "callback": _build_callback_url(request),
        "may_test": access.is_permitted(request.user, Verb.EDIT, Entity.SETTINGS),
    }
    return render(request, "settings/settings.html", context | more)

"""The user's own access keys, a part of the account page."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import UserError
from console.http import redirect_with_message, render_form
from projects import actions, personal_keys
from projects.access_forms import KeyForm
from projects.http import Request
from projects.models import PersonalKey, User
from projects.views.service_accounts import render_secret

KEYS_FRAGMENT = "#keys"
"""The fragment of the account page where the keys are."""


def build_context(user: User) -> dict[str, Any]:
    """Return the context of the access keys in templates/account/account.html."""
    keys = personal_keys.list_keys(user)
    return {
        "keys": keys,
        "most_keys": personal_keys.MAX_KEYS,
        "may_add_key": len(keys) < personal_keys.MAX_KEYS,
    }


@never_cache
@require_http_methods(["GET", "POST"])
def key_new(request: Request) -> HttpResponse:
    """Create a key and show its secret once."""
    form = KeyForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            expires_at = actions.parse_expiry(form.cleaned_data["expires"])
            key, secret = personal_keys.create_key(
                form.cleaned_data["name"], owner=request.user, expires_at=expires_at
            )
            return _render_secret(request, key, secret, f"Access key {key.name} is created")
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    context = {
        "title": "New access key",
        "intro": "A program that has the key may do what you may. Give it to nobody.",
        "yes": "Create access key",
        "back": reverse("account") + KEYS_FRAGMENT,
        "back_words": "Account",
    }
    return render_form(request, form, context)


@never_cache
@require_POST
def key_secret(request: Request, pk: int) -> HttpResponse:
    """Replace a key's secret and show the new one once."""
    key = _get_own_key(request, pk)
    return _render_secret(
        request, key, personal_keys.rotate_secret(key), f"{key.name} has a new secret"
    )


@require_POST
def key_delete(request: Request, pk: int) -> HttpResponse:
    """Delete a key; its secret and tokens end."""
    key = _get_own_key(request, pk)
    personal_keys.revoke_key(key, request.user)
    return redirect_with_message(
        request, reverse("account") + KEYS_FRAGMENT, f"Access key {key.name} is deleted."
    )


def _get_own_key(request: Request, pk: int) -> PersonalKey:
    key: PersonalKey = get_object_or_404(
        PersonalKey.objects.select_related("user"), pk=pk, user=request.user
    )
    return key


def _render_secret(request: Request, key: PersonalKey, secret: str, title: str) -> HttpResponse:
    # With a fragment the way back would be the address that the dialog is open on, and nothing
    # would be loaded.
    return render_secret(request, key, secret, title, reverse("account"), "Account")

"""Forms about one's own way in, which ask for the password once more."""

from typing import Any

from django.urls import reverse

from console.errors import NotAllowed
from projects import throttle
from projects.forms import PasswordForm
from projects.http import Request
from projects.sign_on.forms import PresentPasswordForm


def verify_form(request: Request, form: PresentPasswordForm | PasswordForm) -> bool:
    """Whether the form is right, its password among that. Who found an open session may not try out
    what the password is, either.
    """
    address = throttle.client_address(request)
    throttle.record_attempt(request.user.username, address)
    good = form.is_valid()
    # A form that nothing was typed into has no errors, and proves nothing.
    if form.is_bound and "present" not in form.errors:
        throttle.record_success(request.user.username, address)
    return good


def require_password(request: Request) -> None:
    """Raises NotAllowed for who comes by single sign-on only: what a password guards is the
    provider's to guard for them.
    """
    if not request.user.has_usable_password():
        raise NotAllowed(
            "You sign in by single sign-on, so your password and second factor are kept there. "
            "Change them there."
        )


def build_context(
    form: PresentPasswordForm, title: str, intro: str, name: str, yes: str
) -> dict[str, Any]:
    """For templates parts/form.html and parts/_form.html."""
    return {
        "form": form,
        "title": title,
        "intro": intro,
        "url": reverse(name),
        "yes": yes,
        "back": reverse("account"),
        "back_words": "Account",
    }

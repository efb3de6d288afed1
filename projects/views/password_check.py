"""Forms about the user's own ways to sign in, which ask for the password again."""

from typing import Any

from django.urls import reverse

from console.errors import NotAllowed
from projects import throttle
from projects.forms import PasswordForm
from projects.http import Request
from projects.sign_on.forms import PresentPasswordForm


def verify_form(request: Request, form: PresentPasswordForm | PasswordForm) -> bool:
    """Tell whether the form is valid, its password included.

    Attempts are throttled: whoever finds an open session may not guess the password here either.
    """
    attempt = throttle.record_attempt(request.user.username, throttle.client_address(request))
    is_valid = form.is_valid()
    # A form that nothing was typed into has no errors, and proves nothing.
    if form.is_bound and "present" not in form.errors:
        throttle.record_success(attempt)
    return is_valid


def require_password(request: Request) -> None:
    """Check that the user has a password. Raises NotAllowed.

    Users of single sign-on only are protected by their provider.
    """
    if not request.user.has_usable_password():
        raise NotAllowed(
            "You sign in by single sign-on, so your password and second factor are kept there. "
            "Change them there."
        )


def build_context(form: PresentPasswordForm, title: str, intro: str, yes: str) -> dict[str, Any]:
    """Return the context of parts/form.html and parts/_form.html."""
    return {
        "form": form,
        "title": title,
        "intro": intro,
        "yes": yes,
        "back": reverse("account"),
        "back_words": "Account",
    }

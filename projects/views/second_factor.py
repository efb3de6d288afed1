"""The pages of the user's own second factor, and its reset by an administrator."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console import encryption
from console.errors import UserError
from console.http import redirect_with_message, render_form, render_page
from projects import access, second_factor, sessions, throttle
from projects.http import Request
from projects.models import User
from projects.permissions import Entity, Verb
from projects.sign_on.forms import PresentPasswordForm, SetUpForm
from projects.views import password_check

PENDING = "second_factor_secret"
"""The session's key for the encrypted secret. It ends with the first code, which shows that an app
has it.
"""


@sensitive_post_parameters("present", "code")
@never_cache
@require_http_methods(["GET", "POST"])
def set_up(request: Request) -> HttpResponse:
    """Show the secret as picture and text; turn the factor on with a first code."""
    password_check.require_password(request)
    if second_factor.is_set(request.user):
        return redirect("account")
    secret = _get_pending_secret(request)
    form = SetUpForm(request.POST or None, user=request.user)
    if request.method == "POST" and password_check.verify_form(request, form):
        attempt = throttle.record_attempt(f"second factor:{request.user.pk}", throttle.ANY_ADDRESS)
        try:
            codes = second_factor.set_up_factor(request.user, secret, form.cleaned_data["code"])
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
        else:
            throttle.record_success(attempt)
            request.session.pop(PENDING, None)
            sessions.end_all_sessions(request.user, except_key=request.session.session_key)
            return _render_codes(request, codes, "Your second factor is set up")
    groups = [secret[start : start + 4] for start in range(0, len(secret), 4)]
    context = {
        "form": form,
        "picture": second_factor.render_qr_code(request.user, secret),
        "secret": " ".join(groups),
    }
    return render(
        request, "account/second_factor.html", context, status=422 if form.errors else 200
    )


@sensitive_post_parameters("present")
@never_cache
@require_http_methods(["GET", "POST"])
def remove(request: Request) -> HttpResponse:
    """Turn the second factor off, after the password is given again."""
    password_check.require_password(request)
    form = PresentPasswordForm(request.POST or None, user=request.user)
    if request.method == "POST" and password_check.verify_form(request, form):
        second_factor.remove_factor(request.user)
        return redirect_with_message(request, reverse("account"), "Your second factor is removed.")
    words = "Your password alone opens your account then. The recovery codes are void."
    context = password_check.build_context(form, "Remove your second factor?", words, "Remove")
    return render_form(request, form, context)


@sensitive_post_parameters("present")
@never_cache
@require_http_methods(["GET", "POST"])
def renew_codes(request: Request) -> HttpResponse:
    """Make new recovery codes, shown once."""
    password_check.require_password(request)
    form = PresentPasswordForm(request.POST or None, user=request.user)
    if request.method == "POST" and password_check.verify_form(request, form):
        return _render_codes(
            request,
            second_factor.replace_recovery_codes(request.user),
            "You have new recovery codes",
        )
    words = "The codes that you have are void then, and you get ten others."
    context = password_check.build_context(
        form, "Make new recovery codes?", words, "Make new codes"
    )
    return render_form(request, form, context)


@require_POST
def reset(request: Request, pk: int) -> HttpResponse:
    """Turn off the second factor of a user who lost it."""
    access.require(request.user, Verb.EDIT, Entity.USERS)
    user = get_object_or_404(User, pk=pk, is_service=False)
    second_factor.reset_factor(user, request.user)
    return redirect_with_message(
        request,
        reverse("users"),
        f"The second factor of {user.username} is reset, and they are signed out everywhere.",
    )


def _get_pending_secret(request: Request) -> str:
    try:
        return encryption.decrypt(request.session[PENDING])
    except (KeyError, encryption.Unreadable):
        secret = second_factor.generate_totp_secret()
        request.session[PENDING] = encryption.encrypt(secret)
        return secret


def _render_codes(request: Request, recovery_codes: object, title: str) -> HttpResponse:
    context = {
        "title": title,
        "body": "account/_codes.html",
        "codes": recovery_codes,
        "back": reverse("account"),
        "back_words": "Account",
    }
    return render_page(request, "parts/secret.html", "parts/_secret.html", context)

"""One's own second factor, and that of somebody who has lost it."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console import encryption
from console.errors import UserError
from console.http import onward, page
from projects import access, second_factor, sessions, throttle
from projects.http import Request
from projects.models import User
from projects.permissions import Entity, Verb
from projects.sign_on.forms import PresentPasswordForm, SetUpForm
from projects.views import proving

PENDING = "second_factor_secret"
"""Where the session keeps the secret, encrypted, until the first code shows that the app has it."""


@sensitive_post_parameters("present", "code")
@never_cache
@require_http_methods(["GET", "POST"])
def set_up(request: Request) -> HttpResponse:
    """The secret as a picture and as text, and the code that shows that an app has it."""
    proving.require_password(request)
    if second_factor.is_set(request.user):
        return redirect("account")
    secret = _pending(request)
    form = SetUpForm(request.POST or None, user=request.user)
    if request.method == "POST" and proving.proved(request, form):
        counted = f"second factor:{request.user.pk}"
        throttle.attempt(counted, throttle.EVERYWHERE)
        try:
            codes = second_factor.set_up(request.user, secret, form.cleaned_data["code"])
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
        else:
            throttle.succeeded(counted, throttle.EVERYWHERE)
            request.session.pop(PENDING, None)
            sessions.end_all(request.user, but=request.session.session_key)
            return _codes(request, codes, "Your second factor is set up")
    groups = [secret[start : start + 4] for start in range(0, len(secret), 4)]
    context = {
        "form": form,
        "picture": second_factor.picture(request.user, secret),
        "secret": " ".join(groups),
    }
    return render(
        request, "account/second_factor.html", context, status=422 if form.errors else 200
    )


@sensitive_post_parameters("present")
@never_cache
@require_http_methods(["GET", "POST"])
def remove(request: Request) -> HttpResponse:
    """Sign in with the password only from now on."""
    proving.require_password(request)
    form = PresentPasswordForm(request.POST or None, user=request.user)
    if request.method == "POST" and proving.proved(request, form):
        second_factor.remove(request.user)
        return onward(request, reverse("account"), "Your second factor is removed.")
    words = "Your password alone opens your account then. The recovery codes are void."
    context = proving.context(
        form, "Remove your second factor?", words, "second-factor-remove", "Remove"
    )
    return page(
        request, "parts/form.html", "parts/_form.html", context, status=422 if form.errors else 200
    )


@sensitive_post_parameters("present")
@never_cache
@require_http_methods(["GET", "POST"])
def codes(request: Request) -> HttpResponse:
    """Other recovery codes, shown once."""
    proving.require_password(request)
    form = PresentPasswordForm(request.POST or None, user=request.user)
    if request.method == "POST" and proving.proved(request, form):
        return _codes(request, second_factor.new_codes(request.user), "You have new recovery codes")
    words = "The codes that you have are void then, and you get ten others."
    context = proving.context(
        form, "Make new recovery codes?", words, "second-factor-codes", "Make new codes"
    )
    return page(
        request, "parts/form.html", "parts/_form.html", context, status=422 if form.errors else 200
    )


@require_POST
def reset(request: Request, pk: int) -> HttpResponse:
    """Somebody has lost theirs: they sign in with the password alone, until they set up another
    one.
    """
    access.require(request.user, Verb.EDIT, Entity.USERS)
    user = get_object_or_404(User, pk=pk, is_service=False)
    second_factor.reset(user, request.user)
    return onward(
        request,
        reverse("users"),
        f"The second factor of {user.username} is reset, and they are signed out everywhere.",
    )


def _pending(request: Request) -> str:
    try:
        return encryption.decrypt(request.session[PENDING])
    except (KeyError, encryption.Unreadable):
        secret = second_factor.made()
        request.session[PENDING] = encryption.encrypt(secret)
        return secret


def _codes(request: Request, made: object, title: str) -> HttpResponse:
    context = {"title": title, "codes": made, "back": reverse("account"), "back_words": "Account"}
    return page(request, "account/recovery_codes.html", "account/_recovery_codes.html", context)

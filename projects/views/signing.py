"""In and out."""

import logging
from typing import Any

from allauth.account.internal.stagekit import clear_login
from allauth.account.stages import LoginStageController
from allauth.account.utils import perform_login
from django.contrib.auth import authenticate, logout
from django.contrib.auth.decorators import login_not_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import UserError
from projects import audit, second_factor, sessions, throttle
from projects.audit import Event
from projects.forms import SignInForm
from projects.models import User
from projects.sign_on import provider
from projects.sign_on.adapters import is_ours
from projects.sign_on.forms import CodeForm
from projects.sign_on.stages import SecondFactor

log = logging.getLogger(__name__)

WRONG = "The name or the password is not right. Check both, and that Caps Lock is off."


@login_not_required
@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Name and password for a session. A wrong one and an unknown one are told in the same
    words.
    """
    if request.user.is_authenticated:
        return redirect(onward(request))
    form = SignInForm(request.POST or None)
    if request.method != "POST":
        return door(request, form, status=200)
    if not form.is_valid():
        return door(request, form)
    name, address = form.cleaned_data["username"], throttle.address_of(request)
    try:
        throttle.attempt(name, address)
        user = authenticate(request, username=name, password=form.cleaned_data["password"])
        if not isinstance(user, User) or user.is_service:
            audit.sign_in_failed(name, "The name or the password was wrong.")
            raise UserError(WRONG)
    except UserError as refusal:
        form.add_error(None, refusal.text)
        return door(request, form, status=refusal.status)
    throttle.succeeded(name, address)
    return arrived(request, perform_login(request, user, redirect_url=onward(request)))


@login_not_required
@sensitive_post_parameters("code")
@never_cache
@require_http_methods(["GET", "POST"])
def code(request: HttpRequest) -> HttpResponse:
    """The second factor of who has shown the first one a moment ago."""
    stage = _waiting(request)
    if stage is None:
        return redirect("sign-in")
    form, status = CodeForm(request.POST or None), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                second_factor.try_code(
                    stage.login.user, form.cleaned_data["code"], throttle.address_of(request)
                )
            except UserError as refusal:
                audit.sign_in_failed(
                    stage.login.user.username,
                    "The code of the second factor was wrong.",
                    stage.login.user,
                )
                form.add_error(refusal.field or None, refusal.text)
                status = refusal.status
            else:
                return arrived(request, stage.exit())
    return render(request, "registration/code.html", {"form": form}, status=status)


@login_not_required
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends this browser's session."""
    user = request.user
    if isinstance(user, User):
        audit.record(Event.SIGN_OUT, "user", by=user, id=user.pk, name=user.username)
    sessions.forget(request.session.session_key)
    logout(request)
    return redirect("sign-in")


def door(
    request: HttpRequest, form: Form | None = None, *, status: int = 422, refusal: str = ""
) -> HttpResponse:
    """The sign-in page."""
    context: dict[str, Any] = {
        "form": form or SignInForm(),
        "next": wanted(request),
        "sign_on": provider.app(),
        "refusal": refusal,
    }
    return render(request, "registration/sign_in.html", context, status=status)


def arrived(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """The answer to a proof of who one is; where it was the last one, their session is noted."""
    if request.user.is_authenticated:
        sessions.begun(request)
    return answer


def onward(request: HttpRequest) -> str:
    """Where they wanted to go, if that is a page of ours."""
    return wanted(request) if is_ours(wanted(request)) else resolve_url("workloads")


def wanted(request: HttpRequest) -> str:
    return request.POST.get("next", request.GET.get("next", ""))


def _waiting(request: HttpRequest) -> SecondFactor | None:
    """The sign-in that waits for its code; None where there is none, or its user may not come in
    any more.
    """
    if request.user.is_authenticated:
        return None
    stage: SecondFactor | None = LoginStageController.enter(request, SecondFactor.key)
    if stage is None or stage.is_void():
        clear_login(request)
        return None
    return stage

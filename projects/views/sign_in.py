"""The pages to sign in and out."""

import logging
from typing import Any

from allauth.account.internal.stagekit import clear_login
from allauth.account.stages import LoginStageController
from allauth.account.utils import perform_login
from django.conf import settings
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
from projects.sign_on import provider, provider_sign_out
from projects.sign_on.adapters import is_own_url
from projects.sign_on.forms import CodeForm
from projects.sign_on.stages import SecondFactor

log = logging.getLogger(__name__)

WRONG_PASSWORD = "The name or the password is not right. Check both, and that Caps Lock is off."  # noqa: S105


@login_not_required
@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in by name and password. A wrong and an unknown name get the same answer."""
    if request.user.is_authenticated:
        return redirect(resolve_next_url(request))
    form = SignInForm(request.POST or None)
    if request.method != "POST":
        return render_sign_in(request, form, status=200)
    if not form.is_valid():
        return render_sign_in(request, form)
    name = form.cleaned_data["username"]
    try:
        attempt = throttle.record_attempt(name, throttle.client_address(request))
        user = authenticate(request, username=name, password=form.cleaned_data["password"])
        if not isinstance(user, User) or user.is_service:
            audit.record_failed_sign_in(name, "The name or the password was wrong.")
            raise UserError(WRONG_PASSWORD)
    except UserError as refusal:
        form.add_error(None, refusal.text)
        return render_sign_in(request, form, status=refusal.status)
    throttle.record_success(attempt)
    return finish_sign_in(
        request, perform_login(request, user, redirect_url=resolve_next_url(request))
    )


@login_not_required
@sensitive_post_parameters("code")
@never_cache
@require_http_methods(["GET", "POST"])
def enter_code(request: HttpRequest) -> HttpResponse:
    """Ask for the second factor after the password."""
    stage = _find_waiting_stage(request)
    if stage is None:
        return redirect("sign-in")
    form, status = CodeForm(request.POST or None), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                second_factor.require_code(
                    stage.login.user, form.cleaned_data["code"], throttle.client_address(request)
                )
            except UserError as refusal:
                # One that comes too early is not compared, so it says nothing of the code.
                if not isinstance(refusal, throttle.TooManyAttempts):
                    audit.record_failed_sign_in(
                        stage.login.user.username,
                        "The code of the second factor was wrong.",
                        stage.login.user,
                    )
                form.add_error(refusal.field or None, refusal.text)
                status = refusal.status
            else:
                return finish_sign_in(request, stage.exit())
    return render(request, "registration/code.html", {"form": form}, status=status)


@login_not_required
@never_cache
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End this browser's session, and say where that of single sign-on ends."""
    user, provider_url = request.user, provider_sign_out.find_url(request)
    if isinstance(user, User):
        audit.record(Event.SIGN_OUT, "user", by=user, id=user.pk, name=user.username)
    sessions.forget_session(request.session.session_key)
    logout(request)
    if provider_url is None:
        return redirect("sign-in")
    context = {"name": settings.OPTIONS.oidc_name, "url": provider_url}
    return render(request, "registration/signed_out.html", context)


def render_sign_in(
    request: HttpRequest, form: Form | None = None, *, status: int = 422, refusal: str = ""
) -> HttpResponse:
    """Render the sign-in page."""
    context: dict[str, Any] = {
        "form": form or SignInForm(),
        "next": requested_url(request),
        "sign_on": provider.find_app(),
        "refusal": refusal,
    }
    if "HX-Request" in request.headers:
        # A script that was redirected here shows nothing of this page, and loads it anew: what is
        # to be said is kept for then.
        context["messages"] = ()
    return render(request, "registration/sign_in.html", context, status=status)


def finish_sign_in(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """Record the session if this proof of identity was the last one; return the answer."""
    if request.user.is_authenticated:
        sessions.record_session(request)
    return answer


def resolve_next_url(request: HttpRequest) -> str:
    """Return the page that the user wanted, if it is ours; else the first page."""
    return (
        requested_url(request) if is_own_url(requested_url(request)) else resolve_url("workloads")
    )


def requested_url(request: HttpRequest) -> str:
    return request.POST.get("next", request.GET.get("next", ""))


def _find_waiting_stage(request: HttpRequest) -> SecondFactor | None:
    """Return the sign-in that waits for its code.

    None where there is none, or where its user may not sign in any more.
    """
    if request.user.is_authenticated:
        return None
    stage: SecondFactor | None = LoginStageController.enter(request, SecondFactor.key)
    if stage is None or stage.is_void():
        clear_login(request)
        return None
    return stage

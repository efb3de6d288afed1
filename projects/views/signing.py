"""In and out."""

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from projects import throttle
from projects.forms import SignInForm


@login_not_required
@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Name and password for a session. A wrong one and an unknown one are told in the same words."""
    if request.user.is_authenticated:
        return redirect(_onward(request))
    form = SignInForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            name, password = form.cleaned_data["username"], form.cleaned_data["password"]
            try:
                throttle.attempt(name, throttle.address_of(request))
            except throttle.TooMany as refusal:
                form.add_error(None, refusal.text)
                status = refusal.status
            else:
                user = authenticate(request, username=name, password=password)
                if user is not None and not user.is_service:
                    throttle.succeeded(name, throttle.address_of(request))
                    login(request, user)
                    return redirect(_onward(request))
                form.add_error(None, "The name or the password is not right. Check both, and that Caps Lock is off.")
    return render(request, "registration/sign_in.html", {"form": form, "next": _wanted(request)}, status=status)


@login_not_required
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends this browser's session."""
    logout(request)
    return redirect("sign-in")


def _onward(request: HttpRequest) -> str:
    """Where they wanted to go, if that is a page of ours."""
    wanted = _wanted(request)
    # Without the slash it could be the name of a view, or of none.
    if wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, None):
        return wanted
    return resolve_url("workloads")


def _wanted(request: HttpRequest) -> str:
    return request.POST.get("next", request.GET.get("next", ""))

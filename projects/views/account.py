"""One's own account."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from projects import people, second_factor, sessions, why
from projects.forms import PasswordForm
from projects.http import Request
from projects.sign_on import accounts, provider
from projects.views import keys, proving


@sensitive_post_parameters("present", "new", "again")
@never_cache
@require_http_methods(["GET", "POST"])
def account(request: Request) -> HttpResponse:
    """Who one is, one's roles, one's ways in, and a new password."""
    user = request.user
    form = PasswordForm(request.POST or None, user=user)
    if request.method == "POST":
        proving.require_password(request)
        if proving.proved(request, form):
            return _changed(request, form.cleaned_data["new"])
    context = {
        "form": form,
        "groups": user.groups.order_by("name"),
        "local": user.has_usable_password(),
        "factor": second_factor.is_set(user),
        "factor_missing": second_factor.is_missing(user),
        "codes_left": second_factor.codes_left(user),
        "sign_on": provider.app(),
        "connected": accounts.is_connected(user),
        "sessions": sessions.of(user, request.session.session_key),
        "rights": why.held(user),
        **keys.context(user),
    }
    return render(request, "account/account.html", context, status=422 if form.errors else 200)


def _changed(request: Request, password: str) -> HttpResponse:
    before = request.session.session_key
    people.change_password(request.user, password)
    update_session_auth_hash(request, request.user)
    sessions.renewed(request, before)
    sessions.end_all(request.user, but=request.session.session_key)
    messages.success(request, "The password is changed. Sessions in other browsers have ended.")
    return redirect("account")

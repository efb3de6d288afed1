"""One's own account."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from projects import people, throttle
from projects.forms import PasswordForm
from projects.http import Request


@sensitive_post_parameters("present", "new", "again")
@never_cache
@require_http_methods(["GET", "POST"])
def account(request: Request) -> HttpResponse:
    """Who one is, one's roles, and a new password."""
    form = PasswordForm(request.POST or None, user=request.user)
    if request.method == "POST":
        # Who found an open session may not try out what its password is, either.
        address = throttle.address_of(request)
        throttle.attempt(request.user.username, address)
        if form.is_bound and "present" not in form.errors:
            throttle.succeeded(request.user.username, address)
    if request.method == "POST" and form.is_valid():
        people.change_password(request.user, form.cleaned_data["new"])
        update_session_auth_hash(request, request.user)
        messages.success(request, "The password is changed. Sessions in other browsers have ended.")
        return redirect("account")
    roles = request.user.memberships.select_related("project").order_by("project__name")
    return render(request, "account/account.html", {"form": form, "roles": roles}, status=422 if form.errors else 200)

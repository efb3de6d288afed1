"""The page of the user's own account."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from projects import permission_explanations, second_factor, sessions, user_actions
from projects.forms import PasswordForm
from projects.http import Request
from projects.sign_on import accounts, provider
from projects.views import password_check, personal_keys
from projects.views.sections import load_section


@sensitive_post_parameters("present", "new", "again")
@never_cache
@require_http_methods(["GET", "POST"])
def account(request: Request) -> HttpResponse:
    """Show the user's roles, sessions and ways to sign in, and change the password."""
    user = request.user
    form = PasswordForm(request.POST or None, user=user)
    if request.method == "POST":
        password_check.require_password(request)
        if password_check.verify_form(request, form):
            return _save_password(request, form.cleaned_data["new"])
    rights = load_section(
        request,
        "rights",
        permission_explanations.list_rules(user),
        ["place"],
        order=["width", "place"],
    )
    context = {
        "form": form,
        "groups": user.groups.order_by("name"),
        "local": user.has_usable_password(),
        "factor": second_factor.is_set(user),
        "factor_missing": second_factor.is_missing(user),
        "codes_left": second_factor.count_recovery_codes(user),
        "sign_on": provider.find_app(),
        "connected": accounts.is_connected(user),
        "sessions": sessions.list_sessions(user, request.session.session_key),
        "rights": rights,
        "granted_rules": permission_explanations.describe_rules(rights.page.rows),
        **personal_keys.build_context(user),
    }
    return render(request, "account/account.html", context, status=422 if form.errors else 200)


@never_cache
@require_POST
def shortcuts(request: Request) -> HttpResponse:
    """Switch the keys of pages with a table on or off for the user."""
    is_on = request.POST.get("uses_key_shortcuts") == "on"
    user_actions.set_key_shortcuts(request.user, is_on)
    messages.success(request, f"The keys of tables are switched {'on' if is_on else 'off'}.")
    return redirect(reverse("account") + "#shortcuts")


def _save_password(request: Request, password: str) -> HttpResponse:
    before = request.session.session_key
    user_actions.change_password(request.user, password)
    update_session_auth_hash(request, request.user)
    sessions.update_session_key(request, before)
    sessions.end_all_sessions(request.user, except_key=request.session.session_key)
    messages.success(request, "The password is changed. Sessions in other browsers have ended.")
    return redirect("account")

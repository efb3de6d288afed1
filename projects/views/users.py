"""Users, for administrators."""

from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console.http import onward, page
from projects import access, people
from projects.forms import UserForm
from projects.http import Request
from projects.models import Membership, User

MOST = 500
"""Users that one page shows; who is beyond them is found by name."""


def users(request: Request) -> HttpResponse:
    """Everybody who can sign in, with their roles."""
    access.administrator(request.user)
    sought = request.GET.get("search", "").replace("\x00", "")[:150]
    roles = Prefetch("memberships", Membership.objects.select_related("project").order_by("project__name"))
    found = list(User.objects.filter(is_service=False, username__icontains=sought).order_by("username").prefetch_related(roles)[: MOST + 1])
    context = {"users": found[:MOST], "more": len(found) > MOST, "most": MOST, "search": sought}
    return render(request, "account/users.html", context)


@never_cache
@require_http_methods(["GET", "POST"])
def user_new(request: Request) -> HttpResponse:
    """A new local user, and their temporary password, shown once."""
    access.administrator(request.user)
    form = UserForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = User(**form.cleaned_data)
        return _secret(request, user, people.create_user(user, request.user), f"User {user.username} is created")
    context = {
        "form": form,
        "title": "New user",
        "intro": "They get a temporary password, which you hand over; they choose their own at the first sign-in.",
        "url": reverse("user-new"),
        "yes": "Create user",
        "back": reverse("users"),
        "back_words": "Users",
    }
    return page(request, "parts/form.html", "parts/_form.html", context, status=422 if form.errors else 200)


@never_cache
@require_POST
def user_reset(request: Request, pk: int) -> HttpResponse:
    """A new temporary password, shown once."""
    access.administrator(request.user)
    user = get_object_or_404(User, pk=pk, is_service=False)
    return _secret(request, user, people.reset_password(user, request.user), f"{user.username} has a new password")


@require_POST
def user_active(request: Request, pk: int) -> HttpResponse:
    """Let them in, or keep them out: `active` is 1 or 0."""
    access.administrator(request.user)
    user = get_object_or_404(User, pk=pk, is_service=False)
    active = request.POST.get("active") == "1"
    people.set_active(user, active, request.user)
    words = "can sign in again" if active else "cannot sign in any more, and is signed out everywhere"
    return onward(request, reverse("users"), f"{user.username} {words}.")


def _secret(request: Request, user: User, password: str, title: str) -> HttpResponse:
    context = {
        "title": title,
        "intro": "This password is shown once. Hand it over now; it has to be changed at the next sign-in.",
        "secrets": [("User name", "secret-name", user.username), ("Temporary password", "secret-password", password)],
        "back": reverse("users"),
        "back_words": "Users",
    }
    return page(request, "parts/secret.html", "parts/_secret.html", context)

"""Somebody's access keys, for administrators: what there are, and their end. Secrets are nobody's
to see.
"""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from console.http import onward
from projects import access, personal
from projects.http import Request
from projects.models import PersonalKey, User
from projects.permissions import Entity, Verb


@require_safe
def keys(request: Request, pk: int) -> HttpResponse:
    """What keys somebody has, since when, used when, until when."""
    user = _user(request, pk)
    return render(request, "access/user_keys.html", {"person": user, "keys": personal.of(user)})


@require_POST
def end(request: Request, pk: int, access_key: int) -> HttpResponse:
    """One of them."""
    key: PersonalKey = get_object_or_404(
        PersonalKey.objects.select_related("user"), pk=access_key, user=_user(request, pk)
    )
    personal.revoke(key, request.user)
    return onward(
        request,
        reverse("user-keys", args=[pk]),
        f"Access key {key.name} of {key.user.username} has ended.",
    )


@require_POST
def end_all(request: Request, pk: int) -> HttpResponse:
    """All of them."""
    user = _user(request, pk)
    ended = personal.revoke_all(user, request.user)
    told = (
        f"The access keys of {user.username} have ended ({ended})."
        if ended
        else f"{user.username} has no access keys."
    )
    return onward(request, reverse("users"), told)


def _user(request: Request, pk: int) -> User:
    access.require(request.user, Verb.EDIT, Entity.USERS)
    found: User = get_object_or_404(User, pk=pk, is_service=False)
    return found

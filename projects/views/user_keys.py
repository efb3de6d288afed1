"""Another user's access keys for administrators: their list and their end, never a secret."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from console.http import redirect_with_message
from projects import access, personal_keys
from projects.http import Request
from projects.models import PersonalKey, User
from projects.permissions import Entity, Verb


@require_safe
def keys(request: Request, pk: int) -> HttpResponse:
    """Show the keys of a user with their dates of creation, use and expiry."""
    user = _get_user(request, pk)
    return render(
        request, "access/user_keys.html", {"person": user, "keys": personal_keys.list_keys(user)}
    )


@require_POST
def end_key(request: Request, pk: int, access_key: int) -> HttpResponse:
    """Delete one of the keys."""
    key: PersonalKey = get_object_or_404(
        PersonalKey.objects.select_related("user"), pk=access_key, user=_get_user(request, pk)
    )
    personal_keys.revoke_key(key, request.user)
    return redirect_with_message(
        request,
        reverse("user-keys", args=[pk]),
        f"Access key {key.name} of {key.user.username} has ended.",
    )


@require_POST
def end_all_keys(request: Request, pk: int) -> HttpResponse:
    """Delete all of the keys."""
    user = _get_user(request, pk)
    ended = personal_keys.revoke_all_keys(user, request.user)
    message = (
        f"The access keys of {user.username} have ended ({ended})."
        if ended
        else f"{user.username} has no access keys."
    )
    return redirect_with_message(request, reverse("users"), message)


def _get_user(request: Request, pk: int) -> User:
    access.require(request.user, Verb.EDIT, Entity.USERS)
    user: User = get_object_or_404(User, pk=pk, is_service=False)
    return user

"""Buttons that end the user's own sessions, and another user's."""

from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.http import redirect_with_message
from projects import access, audit, sessions
from projects.audit import Event
from projects.http import Request
from projects.models import User
from projects.permissions import Entity, Verb


@require_POST
def end_own(request: Request, pk: int) -> HttpResponse:
    """End one of the user's own sessions."""
    with transaction.atomic():
        if not sessions.end_session(request.user, pk):
            raise Http404("You have no such session.")
        _record_sign_out(request.user, "Ended another session.")
    return redirect_with_message(request, reverse("account"), "The session is ended.")


@require_POST
def end_others(request: Request) -> HttpResponse:
    """End all of the user's own sessions but the present one."""
    with transaction.atomic():
        ended = sessions.end_all_sessions(request.user, except_key=request.session.session_key)
        _record_sign_out(
            request.user, f"Ended other sessions ({ended}) and the tokens of programs."
        )
    text = "Your other sessions are ended, and what programs got by your password or a code."
    return redirect_with_message(request, reverse("account"), text)


@require_POST
def end_of_user(request: Request, pk: int) -> HttpResponse:
    """End all sessions of another user."""
    access.require(request.user, Verb.EDIT, Entity.USERS)
    user = get_object_or_404(User, pk=pk, is_service=False)
    sessions.sign_out_everywhere(user, request.user)
    return redirect_with_message(
        request, reverse("users"), f"{user.username} is signed out everywhere."
    )


def _record_sign_out(user: User, text: str) -> None:
    audit.record(Event.SIGN_OUT, "user", by=user, id=user.pk, name=user.username, text=text)

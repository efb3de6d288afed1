"""Looking at Muster as another user: `projects.impersonation` begins and ends it."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.http import redirect_with_message
from projects import impersonation
from projects.http import Request


@require_POST
def look_as(request: Request, pk: int) -> HttpResponse:
    """Begin."""
    user = impersonation.start_impersonation(request, pk, request.user)
    return redirect_with_message(
        request,
        reverse("workloads"),
        f"You look at Muster as {user.username} now. Nothing can be changed.",
    )


@require_POST
def look_as_end(request: Request) -> HttpResponse:
    """End: the session is one's own again."""
    impersonation.end_impersonation(request, request.user)
    return redirect_with_message(request, reverse("workloads"), "You look as yourself again.")

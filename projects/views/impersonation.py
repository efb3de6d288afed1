"""The buttons that start and end impersonation; see `projects.impersonation`."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.http import redirect_with_message
from projects import impersonation
from projects.http import Request


@require_POST
def look_as(request: Request, pk: int) -> HttpResponse:
    """Start to look at Muster as another user."""
    user = impersonation.start_impersonation(request, pk, request.user)
    return redirect_with_message(
        request,
        reverse("workloads"),
        f"You look at Muster as {user.username} now. Nothing can be changed.",
    )


@require_POST
def look_as_end(request: Request) -> HttpResponse:
    """End the impersonation."""
    impersonation.end_impersonation(request, request.user)
    return redirect_with_message(request, reverse("workloads"), "You look as yourself again.")

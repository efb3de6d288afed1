"""Looking at Muster as another user: `projects.looking` begins and ends it."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.http import onward
from projects import looking
from projects.http import Request


@require_POST
def look_as(request: Request, pk: int) -> HttpResponse:
    """Begin."""
    user = looking.start(request, pk, request.user)
    return onward(
        request,
        reverse("workloads"),
        f"You look at Muster as {user.username} now. Nothing can be changed.",
    )


@require_POST
def look_as_end(request: Request) -> HttpResponse:
    """End: the session is one's own again."""
    looking.end(request, request.user)
    return onward(request, reverse("workloads"), "You look as yourself again.")

"""The page where a signed-in person lets a program act for them."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console.errors import UserError
from console.http import redirect_with_message
from projects import sign_in_requests
from projects.forms import ProgramCodeForm
from projects.http import Request
from projects.models import SignInRequest

TEMPLATE = "account/sign_in_request.html"
UNKNOWN = (
    "Nothing waits for this code. Compare it with what the program shows, or ask for a new one."
)
DECISIONS = ("confirm", "deny")


@never_cache
@require_http_methods(["GET", "POST"])
def decide(request: Request) -> HttpResponse:
    """Show which program asks for what a code is of, and confirm or deny it."""
    parameters = request.POST if request.method == "POST" else request.GET
    code, decision = parameters.get("code", ""), parameters.get("decision", "")
    if not code:
        return _render_page(request, code)
    try:
        waiting = sign_in_requests.find_waiting(code, request.user, request)
        if waiting is None:
            raise UserError(UNKNOWN)
        if request.method == "POST" and decision in DECISIONS:
            is_confirmed = decision == "confirm"
            sign_in_requests.decide(waiting, request.user, is_confirmed=is_confirmed)
            outcome = "is signed in. You can go back to it." if is_confirmed else "was turned away."
            return redirect_with_message(request, "/account", f"{waiting.client} {outcome}")
    except UserError as refusal:
        status = 422 if refusal.status == 400 else refusal.status
        return _render_page(request, code, refused=refusal.text, status=status)
    return _render_page(request, code, waiting=waiting)


def _render_page(
    request: Request,
    code: str,
    *,
    waiting: SignInRequest | None = None,
    refused: str = "",
    status: int = 200,
) -> HttpResponse:
    form = ProgramCodeForm(initial={"code": code[:20]})
    context = {"form": form, "waiting": waiting, "refused": refused}
    return render(request, TEMPLATE, context, status=status)

"""Single sign-on: to the provider and back, and the connection of a user with their identity."""

import logging
import secrets

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.internal import statekit
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console.errors import Clash, UserError
from console.http import redirect_with_message, render_form
from projects import audit, throttle
from projects.http import Request
from projects.sign_on import accounts, provider, provider_sign_out
from projects.sign_on.adapters import SignOnFailed
from projects.sign_on.discovery import ProviderError
from projects.sign_on.forms import PresentPasswordForm
from projects.sign_on.provider import CallbackView, ProtocolAdapter
from projects.views import password_check, sign_in

log = logging.getLogger(__name__)

ATTEMPT_NAME = "single sign-on"
"""Under what name attempts are counted: who comes is not known before they are back."""


@login_not_required
@never_cache
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider, which sends it back to `callback`."""
    _get_provider()
    try:
        # Each stores a session; it counts as failed until somebody comes back and is signed in.
        attempt = throttle.record_attempt(
            ATTEMPT_NAME, throttle.client_address(request), free=throttle.FREE_FOR_PROGRAM
        )
        try:
            return _render_redirect(request, "login", sign_in.resolve_next_url(request))
        except UserError:
            # A provider that does not answer keeps nobody waiting afterwards.
            throttle.record_success(attempt)
            raise
    except UserError as refusal:
        return sign_in.render_sign_in(request, status=refusal.status, refusal=refusal.text)


@login_not_required
@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Handle the return from the provider: exchange its code for the user's identity."""
    _get_provider()
    connecting = request.user.is_authenticated
    try:
        return _finish_attempt(request)
    except UserError as refusal:
        if connecting:
            messages.error(request, refusal.text)
            return redirect("account")
        return sign_in.render_sign_in(request, status=refusal.status, refusal=refusal.text)


@sensitive_post_parameters("present")
@never_cache
@require_http_methods(["GET", "POST"])
def connect(request: Request) -> HttpResponse:
    """Connect the user with their identity at the provider; afterwards either way signs them in."""
    app = _get_provider()
    if accounts.is_connected(request.user):
        raise UserError("Your user is connected already.")
    form = PresentPasswordForm(request.POST or None, user=request.user)
    if request.method == "POST" and password_check.verify_form(request, form):
        return _render_redirect(request, "connect", "/account")
    words = f"You sign in at {app.name} next. From then on either way leads to your user here."
    context = password_check.build_context(form, f"Connect with {app.name}", words, "Go on")
    return render(request, "parts/form.html", context, status=422 if form.errors else 200)


@sensitive_post_parameters("present")
@never_cache
@require_http_methods(["GET", "POST"])
def disconnect(request: Request) -> HttpResponse:
    """Disconnect the user from the provider; afterwards only the password signs them in."""
    if not request.user.has_usable_password() or not accounts.is_connected(request.user):
        raise Clash(
            "There is no connection that could be ended: only your password leads to your user."
        )
    form = PresentPasswordForm(request.POST or None, user=request.user)
    if request.method == "POST" and password_check.verify_form(request, form):
        accounts.disconnect_user(request.user, request.user)
        return redirect_with_message(
            request, "/account", "Single sign-on does not lead to your user any more."
        )
    words = (
        "Only your password leads to your user then, and the groups that single sign-on told are "
        "taken from it."
    )
    context = password_check.build_context(
        form,
        "End the connection with single sign-on?",
        words,
        "End connection",
    )
    return render_form(request, form, context)


def _render_redirect(request: HttpRequest, process: str, next_url: str) -> HttpResponse:
    """Render a page that goes on to the provider by itself.

    It is no HTTP redirect: the content security policy lets our forms lead to our own pages only.
    Raises UserError where the provider does not answer.
    """
    nonce = secrets.token_urlsafe(24)
    client = get_adapter(request).get_provider(request, provider.PROVIDER_KEY)
    try:
        answer = client.redirect(
            request, process=process, next_url=next_url, auth_params={"nonce": nonce}, nonce=nonce
        )
    except OAuth2Error as error:
        log.warning(
            "single sign-on cannot be used: %s",
            error.text if isinstance(error, ProviderError) else type(error).__name__,
        )
        raise UserError(
            f"{client.name} does not answer as it should, so nobody can sign in with it now. Try "
            "it again in a moment, or sign in with a "
            "password. An administrator finds under Settings what is wrong.",
            status=503,
        ) from None
    url = answer.headers["Location"]
    response = render(request, "registration/leaving.html", {"name": client.name, "url": url})
    response["Refresh"] = f"0; url={url}"
    return response


def _finish_attempt(request: HttpRequest) -> HttpResponse:
    """Sign in or connect by the answer of the provider. Raises UserError."""
    if request.GET.get("state", "") not in statekit.get_states(request):
        # Any page can make a browser come here, and nothing is asked of the provider: counted or
        # recorded, that would keep people out and fill the audit log.
        log.info("single sign-on: a way back was refused that this browser did not begin")
        get_adapter(request).on_authentication_error(request, None)
    # It is not counted again: each way back uses up what one beginning stored.
    try:
        answer = sign_in.finish_sign_in(request, _handle_callback(request))
    except UserError as refusal:
        why = refusal.why if isinstance(refusal, SignOnFailed) else refusal.text
        log.warning("single sign-on was refused: %s", why)
        audit.record_failed_sign_in(provider.PROVIDER_KEY, f"Single sign-on: {why}")
        raise
    throttle.record_success(throttle.build_attempt(ATTEMPT_NAME, throttle.client_address(request)))
    return answer


def _handle_callback(request: HttpRequest) -> HttpResponse:
    protocol = ProtocolAdapter(request, provider.PROVIDER_KEY)
    try:
        answer: HttpResponse = CallbackView.adapter_view(protocol)(request)
        provider_sign_out.store_url(request, protocol.openid_config)
    except OAuth2Error as error:
        # Its description cannot be fetched, which allauth asks for before it catches anything.
        get_adapter(request).on_authentication_error(request, None, exception=error)
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # What the provider sent has not the shape that it should have.
        log.warning("single sign-on: the answer cannot be read", exc_info=error)
        get_adapter(request).on_authentication_error(request, None, exception=error)
        raise
    return answer


def _get_provider() -> SocialApp:
    """Return the configured provider. Raises Clash where there is none."""
    app = provider.find_app()
    if app is None:
        raise Clash("Single sign-on is not set up here. Sign in with a password.")
    return app

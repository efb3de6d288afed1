"""Adapters with which allauth asks what to do: our words, our rules, and nothing by mail."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from console import encryption
from console.errors import Clash, NotAllowed, UserError
from projects import audit, second_factor, sessions, throttle, user_names
from projects.audit import Event
from projects.models import User
from projects.sign_on import accounts, discovery, provider_http
from projects.sign_on.provider import find_app


class SignOnFailed(NotAllowed):
    """A sign-in at the provider failed. `why` is for the log and the audit log."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text)
        self.why = why


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """A sign-in from its first proof to the session."""

    def get_login_stages(self) -> list[str]:
        return ["projects.sign_on.stages.SecondFactor"]

    def pre_login(self, request: HttpRequest, user: User, **_: Any) -> HttpResponse | None:
        """Raise NotAllowed for a deactivated user, or a program's."""
        if not user.is_active or user.is_service:
            raise NotAllowed(
                "You cannot sign in to Muster any more: an administrator has deactivated your "
                "user. Ask one of them."
            )
        return None

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        signed_on = any(
            record.get("method") == "socialaccount"
            for record in get_authentication_records(request, user)
        )
        proof = "By single sign-on" if signed_on else "With a password"
        second_proof = " and a second factor" if second_factor.is_set(user) else ""
        audit.record(
            Event.SIGN_IN,
            "user",
            by=user,
            id=user.pk,
            name=user.username,
            text=f"{proof}{second_proof}.",
        )

    def is_safe_url(self, url: str | None) -> bool:
        return is_own_url(url or "")

    def get_client_ip(self, request: HttpRequest) -> str:
        return str(throttle.find_client_ip(request) or sessions.UNKNOWN_ADDRESS)

    def add_message(self, *_: Any, **__: Any) -> None:
        """Add nothing: our pages say what there is to say."""

    def send_mail(self, *_: Any, **__: Any) -> None:
        """Send nothing: Muster sends no mail."""


class IdentityAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Identities of the provider, and their users."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return the provider of the settings; none is stored in the database."""
        app = find_app()
        is_wanted = (
            app is not None
            and provider in (None, app.provider, app.provider_id)
            and client_id in (None, app.client_id)
        )
        return [app] if is_wanted else []

    def get_requests_session(self) -> provider_http.Session:
        return provider_http.Session()

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        extra_context: dict[str, Any] | None = None,
    ) -> None:
        """Raise SignOnFailed."""
        name = settings.OPTIONS.oidc_name
        # Without the state of an attempt, what the address says is anybody's word.
        is_answer = bool((extra_context or {}).get("state"))
        if is_answer and (code := discovery.clean_text(request.GET.get("error"))):
            description = discovery.clean_text(request.GET.get("error_description"))
            raise _build_refusal(code, description, is_cancelled=error == AuthError.CANCELLED)
        if exception is None and not is_answer:
            raise SignOnFailed(
                f"This attempt to sign in at {name} is not known here, or not any more: it may "
                "have taken too long, or begun in another "
                "browser. Begin anew.",
                "no such state",
            )
        if exception is None:
            why = "it sent neither a code nor an error"
        elif isinstance(exception, discovery.ProviderError):
            why = exception.text
        else:
            why = type(exception).__name__
        raise SignOnFailed(
            f"{name} did not answer, or Muster cannot believe or understand what it answered, so "
            "you are not signed in. Try it again; if it happens again, ask "
            "an administrator of Muster, whose log says more, or sign in with a password.",
            why,
        )

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Connect a user who asked for that, else set the groups of one who signs in.

        Raises NotAllowed, and Clash for an identity that is another user's.
        """
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            _connect(request, sociallogin)
            # allauth would save the user's row as it was before the provider was asked, and so undo
            # what an administrator has done meanwhile.
            raise ImmediateHttpResponse(redirect("account"))
        if sociallogin.is_existing and sociallogin.user.is_active:
            accounts.sync_groups(sociallogin.user, sociallogin.claims)

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Create the user of a first sign-in. Raises Clash for a name that is taken."""
        user = accounts.prepare_user(sociallogin.user, sociallogin.claims)
        try:
            with transaction.atomic():
                user_names.hold_name(user.username)
                sociallogin.save(request)
                audit.record(
                    Event.CREATE,
                    "user",
                    by=user,
                    id=user.pk,
                    name=user.username,
                    after={"username": user.username, "email": user.email},
                )
                accounts.sync_groups(user, sociallogin.claims)
        except IntegrityError:
            raise Clash(
                "Somebody of this name came in at the same moment. Sign in once more."
            ) from None
        return user


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors, whose secrets are encrypted like all others."""

    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Return the decrypted text.

        Raises UserError where the key is no longer configured.
        """
        try:
            return encryption.decrypt(encrypted_text)
        except encryption.Unreadable:
            raise UserError(
                "Your second factor cannot be checked: the key that it was encrypted with is not "
                "among MUSTER_ENCRYPTION_KEYS any more. "
                "Ask an administrator of Muster to add that key, or to reset your second factor."
            ) from None


def _build_refusal(code: str, description: str, *, is_cancelled: bool) -> SignOnFailed:
    """Return the refusal for an error with which the provider sent the browser back."""
    name = settings.OPTIONS.oidc_name
    reason = f"{code}: {description}" if description else code
    if is_cancelled:
        # Providers say so of who may not use Muster as well as of who pressed Cancel.
        text = (
            f"You did not sign in at {name}, which says: {reason}. Try it again, or sign in with a "
            "password. If you did not cancel it yourself, ask an administrator of Muster."
        )
    else:
        text = (
            f"{name} did not sign you in; it says: {reason}. Try it again; if it happens again, "
            "ask an administrator of Muster, or sign in with a password."
        )
    return SignOnFailed(text, f"the provider said {reason!r}")


def _connect(request: HttpRequest, sociallogin: Any) -> None:
    """Connect the signed-in user with the identity of this answer, which may be theirs already."""
    if not isinstance(request.user, User):
        raise NotAllowed("Your session has ended meanwhile. Sign in, and connect once more.")
    if not sociallogin.is_existing:
        accounts.connect_user(request.user, sociallogin.account, sociallogin.claims)
        messages.success(request, "Your user is connected. You can sign in either way from now on.")
    elif sociallogin.user != request.user:
        raise Clash(
            f"Who you are at {settings.OPTIONS.oidc_name} is connected with somebody else already: "
            f"{sociallogin.user}. Sign in that way."
        )


def is_own_url(url: str) -> bool:
    """Return whether it is a page of ours.

    Without the leading slash it could be the name of a view, or of none.
    """
    return url.startswith("/") and url_has_allowed_host_and_scheme(url, None)

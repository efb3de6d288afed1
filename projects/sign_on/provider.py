"""The provider as allauth sees it, made of the settings. allauth looks for this module by its
name.
"""

import hashlib
from typing import Any

from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.utils import build_absolute_uri
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from projects.sign_on import discovery, tokens
from projects.sign_on.discovery import ProviderError

PROVIDER_KEY = "oidc"
"""What connected identities are stored under: there is one provider."""


def find_app() -> SocialApp | None:
    """The provider of the settings; None where there is none."""
    options = settings.OPTIONS
    if not options.oidc_issuer:
        return None
    more = {
        "server_url": discovery.get_discovery_url(),
        "scope": ["openid", *_list_scopes()],
        "oauth_pkce_enabled": True,
    }
    return SocialApp(
        provider=Provider.id,
        provider_id=PROVIDER_KEY,
        name=options.oidc_name,
        client_id=options.oidc_client_id,
        secret=options.oidc_client_secret,
        settings=more,
    )


def _list_scopes() -> list[str]:
    return [scope for scope in settings.OPTIONS.oidc_scopes.split() if scope != "openid"]


class ProtocolAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """One sign-in: what is asked of the provider, and what of its answer is believed."""

    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        if not hasattr(self, "_described"):
            self._described = discovery.fetch_description()
        return self._described

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return str(build_absolute_uri(request, reverse("sign-on-callback")))

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **more: Any
    ) -> Any:
        described = self.openid_config
        claims = tokens.verify_id_token(
            more["response"].get("id_token"), described, client_id=app.client_id, nonce=self.nonce
        )
        if described.get("userinfo_endpoint"):
            told = discovery.fetch_json(
                described["userinfo_endpoint"], "who signed in", token=token.token
            )
            if told.get("sub") != claims["sub"]:
                raise ProviderError(
                    "Its answer to who signed in is about somebody else than its ID token."
                )
            # What is signed counts where both say something.
            claims = told | claims
        return self.get_provider().sociallogin_from_response(request, claims)


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """Nothing of what a browser asks for reaches the provider, but where to go afterwards."""

    oauth2_adapter_class = ProtocolAdapter

    def get_callback_url(self) -> str:
        return reverse("sign-on-callback")

    def extract_uid(self, claims: dict[str, Any]) -> str:
        """Somebody of one issuer is nobody of another, should the settings name that one later."""
        return hashlib.sha256(f"{claims['iss']}\n{claims['sub']}".encode()).hexdigest()

    def extract_common_fields(self, claims: dict[str, Any]) -> dict[str, Any]:
        """Of no use to allauth: `accounts` reads the claims."""
        return {}

    def extract_email_addresses(self, claims: dict[str, Any]) -> list[Any]:
        return []

    def extract_extra_data(self, claims: dict[str, Any]) -> dict[str, Any]:
        """What is kept of them: who it is there, for an administrator to find again."""
        return {"iss": str(claims["iss"])[:255], "sub": str(claims["sub"])[:255]}

    def sociallogin_from_response(self, request: HttpRequest, response: dict[str, Any]) -> Any:
        login = super().sociallogin_from_response(request, response)
        login.claims = response
        return login


class CallbackView(OAuth2CallbackView):  # type: ignore[misc]
    """The way back from the provider: the nonce that went with the state is what the ID token must
    have.
    """

    def _get_state(
        self, request: HttpRequest, provider: Provider
    ) -> tuple[dict[str, Any] | None, HttpResponse | None]:
        state, response = super()._get_state(request, provider)
        if state is not None:
            self.adapter.nonce = state.get("nonce", "")
        return state, response


provider_classes = [Provider]

"""The OpenID Connect provider of the settings, for allauth.

allauth looks for this module by its name.
"""

import hashlib
from typing import Any

from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Client
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.utils import build_absolute_uri
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from projects.sign_on import code_exchange, discovery, tokens
from projects.sign_on.discovery import ProviderError

PROVIDER_KEY = "oidc"
"""The key under which connected identities are stored: there is one provider."""


def find_app() -> SocialApp | None:
    """Return the provider of the settings; None where there is none."""
    options = settings.OPTIONS
    if not options.oidc_issuer:
        return None
    app_settings = {
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
        settings=app_settings,
    )


def _list_scopes() -> list[str]:
    return [scope for scope in settings.OPTIONS.oidc_scopes.split() if scope != "openid"]


class ProtocolClient(OAuth2Client):  # type: ignore[misc]
    """Builds the address at the provider that a browser goes to."""

    def get_redirect_url(
        self, authorization_url: str, scope: Any, extra_params: dict[str, Any]
    ) -> str:
        # The endpoint may have a query of its own, which has to stay (RFC 6749, 3.1), such as the
        # policy of Azure AD B2C: allauth begins a second one.
        address, _, query = authorization_url.partition("?")
        url = str(super().get_redirect_url(address, scope, extra_params))
        return f"{url}&{query}" if query else url


class ProtocolAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """One sign-in: what is asked of the provider, and which of its answers are trusted."""

    client_class = ProtocolClient
    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        if not hasattr(self, "_described"):
            self._described = discovery.fetch_description()
        return self._described

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return str(build_absolute_uri(request, reverse("sign-on-callback")))

    def get_access_token_data(
        self,
        request: HttpRequest,
        app: SocialApp,
        client: ProtocolClient,
        pkce_code_verifier: str | None = None,
    ) -> dict[str, Any]:
        fields = {
            "code": request.GET["code"],
            "redirect_uri": client.callback_url,
            "code_verifier": pkce_code_verifier or "",
        }
        return code_exchange.exchange_code(self.openid_config, fields)

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **more: Any
    ) -> Any:
        description = self.openid_config
        claims = tokens.verify_id_token(
            more["response"].get("id_token"), description, client_id=app.client_id, nonce=self.nonce
        )
        if description.get("userinfo_endpoint"):
            userinfo = discovery.fetch_json(
                description["userinfo_endpoint"], "who signed in", token=token.token
            )
            # OpenID Connect Core, 5.3.2: an answer about another subject must not be used.
            if userinfo.get("sub") != claims["sub"]:
                raise ProviderError(
                    "Its answer to who signed in is about somebody else than its ID token."
                )
            # What is signed counts where both say something.
            claims = userinfo | claims
        return self.get_provider().sociallogin_from_response(request, claims)


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """The provider; of a browser's parameters only the page to return to is used."""

    oauth2_adapter_class = ProtocolAdapter

    def extract_uid(self, claims: dict[str, Any]) -> str:
        """Return a digest of issuer and subject.

        Somebody of one issuer is nobody of another, should the settings name that one later.
        """
        return hashlib.sha256(f"{claims['iss']}\n{claims['sub']}".encode()).hexdigest()

    def extract_common_fields(self, claims: dict[str, Any]) -> dict[str, Any]:
        """Return nothing for allauth: `accounts` reads the claims."""
        return {}

    def extract_email_addresses(self, claims: dict[str, Any]) -> list[Any]:
        return []

    def extract_extra_data(self, claims: dict[str, Any]) -> dict[str, Any]:
        """Return the stored claims: issuer and subject, for an administrator to find again.

        Where the settings name the discovery document, its address stands for the issuer in them.
        """
        stored = {"iss": str(claims["iss"])[:255], "sub": str(claims["sub"])[:255]}
        named = {"document": discovery.get_discovery_url()} if discovery.is_document_named() else {}
        return stored | named

    def sociallogin_from_response(self, request: HttpRequest, response: dict[str, Any]) -> Any:
        login = super().sociallogin_from_response(request, response)
        login.claims = response
        return login


class CallbackView(OAuth2CallbackView):  # type: ignore[misc]
    """The way back from the provider.

    The ID token must have the nonce that went with the state.
    """

    def _get_state(
        self, request: HttpRequest, provider: Provider
    ) -> tuple[dict[str, Any] | None, HttpResponse | None]:
        state, response = super()._get_state(request, provider)
        if state is not None:
            self.adapter.nonce = state.get("nonce", "")
        return state, response


provider_classes = [Provider]

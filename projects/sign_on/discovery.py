"""The provider's discovery document, and whether sign-ins can work with it."""

from collections.abc import Mapping
from typing import Any

import requests
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings

from projects.sign_on import provider_http

WELL_KNOWN = "/.well-known/openid-configuration"
REQUIRED_FIELDS = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
"""Addresses that we ask ourselves; the browser goes to the first."""
MAX_REASON_CHARS = 200
"""Characters of what the provider says of an error."""


class ProviderError(OAuth2Error):  # type: ignore[misc]
    """The provider cannot be reached, or its answer cannot be trusted.

    The text is for an administrator; it holds no secret.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def get_issuer() -> str:
    """Return the configured issuer, also where its discovery address was given."""
    return str(settings.OPTIONS.oidc_issuer.partition(WELL_KNOWN)[0].rstrip("/"))


def is_document_named() -> bool:
    """Return whether the settings name the discovery document instead of the issuer."""
    return WELL_KNOWN in settings.OPTIONS.oidc_issuer


def get_discovery_url() -> str:
    """Return the address of the discovery document: as the settings name it, with its query."""
    return settings.OPTIONS.oidc_issuer if is_document_named() else get_issuer() + WELL_KNOWN


def fetch_description() -> dict[str, Any]:
    """Fetch the discovery document. Raises ProviderError."""
    description = fetch_json(get_discovery_url(), "its description")
    if missing := [name for name in REQUIRED_FIELDS if not isinstance(description.get(name), str)]:
        raise ProviderError(
            f"Its description at {get_discovery_url()} says nothing of {', '.join(missing)}."
        )
    _check_issuer(description["issuer"])
    for name in ENDPOINTS:
        endpoint = description.get(name)
        if endpoint is not None and (why := provider_http.find_url_problem(str(endpoint))):
            raise ProviderError(f"Its {name} {why}.")
    # The default where it is left out (OpenID Connect Discovery, 3).
    if not isinstance(description.get("token_endpoint_auth_methods_supported"), list):
        description["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    return description


def _check_issuer(issuer: str) -> None:
    """Check the issuer that the discovery document names. Raises ProviderError."""
    if "{" in issuer:
        raise ProviderError(
            f"Its description is of many issuers ({issuer[:200]!r}). MUSTER_OIDC_ISSUER has to be "
            "that of one of them."
        )
    # OpenID Connect Discovery, 4.3: the issuer has to be the one that was asked. Some publish their
    # document elsewhere, as Azure AD B2C: where the settings name that, it says who the issuer is.
    if not is_document_named() and issuer.rstrip("/") != get_issuer():
        raise ProviderError(
            f"Its description is of the issuer {issuer[:200]!r}. MUSTER_OIDC_ISSUER has to be the "
            "same, or the address of the description itself."
        )


def fetch_json(url: str, label: str, *, token: str = "") -> dict[str, Any]:
    """Fetch a JSON object from the provider. Raises ProviderError."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    response = send_request("GET", url, label, headers=headers)
    if response.status_code != 200:
        raise ProviderError(
            f"Asked for {label}, {url} answered with the status {response.status_code} instead of "
            "200."
        )
    return parse_object(response, label)


def send_request(
    method: str, url: str, label: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> requests.Response:
    """Send a request to the provider; `label` says what for. Raises ProviderError."""
    try:
        with provider_http.Session() as session:
            return session.request(
                method, url, headers={"Accept": "application/json", **(headers or {})}, **more
            )
    except provider_http.NotSent as error:
        raise ProviderError(f"Nothing was sent for {label}. {error}") from None
    except requests.exceptions.SSLError:
        raise ProviderError(
            f"Asked for {label} at {url}, it showed a certificate that this machine does not trust."
        ) from None
    except requests.Timeout:
        raise ProviderError(f"Asked for {label} at {url}, it did not answer in time.") from None
    except requests.RequestException:
        raise ProviderError(f"Asked for {label}, {url} cannot be reached.") from None


def parse_object(response: requests.Response, label: str) -> dict[str, Any]:
    """Return the JSON object of an answer. Raises ProviderError."""
    if response.headers["content-type"].startswith("application/jwt"):
        raise ProviderError(
            f"Asked for {label}, it answered with a signed or encrypted token. Have it answer this "
            "client with plain JSON there."
        )
    try:
        body = response.json()
    except (ValueError, RecursionError):
        # Also JSON that is too deep to be read, or has a number of thousands of digits.
        raise ProviderError(f"Asked for {label}, it answered something that is no JSON.") from None
    if not isinstance(body, dict):
        raise ProviderError(f"Asked for {label}, it answered something that is no JSON object.")
    return body


def clean_text(value: object, max_chars: int = MAX_REASON_CHARS) -> str:
    """Return a text of the provider, short and printable; "" for a list, a number or none."""
    text = value if isinstance(value, str) else ""
    return "".join(each for each in text if each.isprintable())[:max_chars]


def fetch_keys(description: dict[str, Any]) -> list[dict[str, Any]]:
    """Fetch the keys that the provider signs with. Raises ProviderError."""
    published = fetch_json(description["jwks_uri"], "its keys").get("keys")
    usable = (
        [key for key in published if isinstance(key, dict) and key.get("use", "sig") == "sig"]
        if isinstance(published, list)
        else []
    )
    if not usable:
        raise ProviderError("It publishes no keys to check its signatures with.")
    return usable

"""The exchange of a code for tokens, by which the provider checks the client's secret as well."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import requests
from django.conf import settings
from requests.auth import HTTPBasicAuth

from projects.sign_on import discovery
from projects.sign_on.discovery import ProviderError

_IN_BODY, _IN_HEADER = "client_secret_post", "client_secret_basic"
_PURPOSE = "tokens for a code"
CLIENT_REFUSALS = ("invalid_client", "unauthorized_client")
"""Error codes about the client; Keycloak has the second one for a wrong secret."""


class ExchangeRefused(ProviderError):
    """The provider gave no tokens; `code` is its error code (RFC 6749, 5.2), "" without one."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


def exchange_code(description: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the access token and the ID token for a code. Raises ProviderError."""
    methods = _list_methods(description)
    for method in methods:
        response = _send_code(description["token_endpoint"], fields, method)
        if response.status_code == 200:
            return _parse_tokens(response)
        refusal = _build_refusal(response)
        # Offered are the ways of all clients; ours may be registered for the other one, and a
        # client that is refused has not used up its code.
        if refusal.code not in CLIENT_REFUSALS:
            break
    raise refusal


def _list_methods(description: Mapping[str, Any]) -> Sequence[str]:
    """Return in which ways to send the client's secret, the first to try first."""
    offered = description["token_endpoint_auth_methods_supported"]
    known = [method for method in (_IN_BODY, _IN_HEADER) if method in offered]
    # Without a secret there is only the client's name to send.
    return known if known and settings.OPTIONS.oidc_client_secret else [_IN_BODY]


def _send_code(url: str, fields: Mapping[str, str], method: str) -> requests.Response:
    client_id, secret = settings.OPTIONS.oidc_client_id, settings.OPTIONS.oidc_client_secret
    body = {"grant_type": "authorization_code", **fields}
    auth = None
    if method == _IN_HEADER:
        # RFC 6749, 2.3.1: each is encoded as in a form, or a + or % in it would be another letter.
        auth = HTTPBasicAuth(quote(client_id, safe=""), quote(secret, safe=""))
    else:
        body["client_id"] = client_id
        if secret:
            body["client_secret"] = secret
    return discovery.send_request("POST", url, _PURPOSE, data=body, auth=auth)


def _parse_tokens(response: requests.Response) -> dict[str, Any]:
    tokens = discovery.parse_object(response, _PURPOSE)
    if not isinstance(tokens.get("access_token"), str):
        raise ProviderError(f"Asked for {_PURPOSE}, it answered without an access token.")
    # Nothing else of the answer is used.
    return {name: tokens.get(name) for name in ("access_token", "id_token")}


def _build_refusal(response: requests.Response) -> ExchangeRefused:
    try:
        answer = discovery.parse_object(response, _PURPOSE)
    except ProviderError:
        answer = {}
    code, description = (
        discovery.clean_text(answer.get(name)) for name in ("error", "error_description")
    )
    reason = f"{code!r}" if code else "no reason"
    if description:
        reason = f"{reason} ({description})"
    text = f"Asked for {_PURPOSE}, it answered with the status {response.status_code} and {reason}."
    if not code and response.status_code == 401:
        # Of all errors that RFC 6749, 5.2 lists, this one alone has that status.
        code = "invalid_client"
    if code in CLIENT_REFUSALS:
        text = (
            f"{text} So MUSTER_OIDC_CLIENT_ID or MUSTER_OIDC_CLIENT_SECRET is not what it knows, "
            "or the client may not sign in there by a secret and an authorization code."
        )
    return ExchangeRefused(text, code)

"""A test of the provider for the administrator who configured it, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from projects.sign_on import code_exchange, discovery
from projects.sign_on.code_exchange import ExchangeRefused
from projects.sign_on.discovery import ProviderError

UNKNOWN_CODE = "a-test-of-the-settings-of-muster-by-its-administrator"
"""Long enough for a verifier (RFC 7636, 4.1), and never a code that somebody was given."""


@dataclass(frozen=True, slots=True)
class TrialStep:
    """One step of the test; `problem` is "" where it went well."""

    description: str
    problem: str = ""


def run_trial(callback_url: str) -> Sequence[TrialStep]:
    """Ask the provider what a sign-in asks, but for the person.

    Stops at the first failure of a request. Never raises; each request is bounded.
    """
    steps = []
    try:
        description = discovery.fetch_description()
        steps.append(TrialStep(f"It describes itself at {discovery.get_discovery_url()}"))
        discovery.fetch_keys(description)
        steps.append(TrialStep("It publishes keys to check its signatures with"))
    except ProviderError as trouble:
        return [
            *steps,
            TrialStep(
                "It describes itself and publishes keys" if not steps else "It publishes keys",
                trouble.text,
            ),
        ]
    steps.append(
        _check_offered(
            description, "response_types_supported", ["code"], "It hands out codes for tokens"
        )
    )
    return [
        *steps,
        *_check_scopes(description),
        _check_pkce(description),
        *_check_client(description, callback_url),
    ]


def _check_offered(
    provider: dict[str, object], name: str, wanted: Sequence[str], words: str
) -> TrialStep:
    """Check that a list of the description has what is wanted; without the list it passes."""
    offered = provider.get(name)
    missing = [each for each in wanted if isinstance(offered, list) and each not in offered]
    return TrialStep(words, f"Its {name} lack {', '.join(missing)}." if missing else "")


def _check_scopes(provider: dict[str, object]) -> Sequence[TrialStep]:
    wanted = settings.OPTIONS.oidc_scopes.split()
    return (
        [
            _check_offered(
                provider, "scopes_supported", wanted, f"It knows the scopes {', '.join(wanted)}"
            )
        ]
        if wanted
        else []
    )


def _check_pkce(provider: dict[str, object]) -> TrialStep:
    return _check_offered(
        provider,
        "code_challenge_methods_supported",
        ["S256"],
        "It binds a code to the browser that asked (PKCE)",
    )


def _check_client(description: dict[str, Any], callback_url: str) -> Sequence[TrialStep]:
    """Check the client's secret by a code that nobody was given.

    Without a step where the answer does not tell what was wrong.
    """
    has_secret = bool(settings.OPTIONS.oidc_client_secret)
    words = "It knows this client and its secret" if has_secret else "It knows this client"
    fields = {"code": UNKNOWN_CODE, "redirect_uri": callback_url, "code_verifier": UNKNOWN_CODE}
    try:
        code_exchange.exchange_code(description, fields)
    except ExchangeRefused as refusal:
        # The client is checked before the code (RFC 6749, 5.2).
        if refusal.code == "invalid_grant":
            return [TrialStep(words)]
        if refusal.code in code_exchange.CLIENT_REFUSALS:
            return [TrialStep(words, refusal.text)]
    except ProviderError as trouble:
        return [TrialStep(words, trouble.text)]
    return []

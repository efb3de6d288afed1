"""A test of the provider for the administrator who configured it, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from projects.sign_on import discovery
from projects.sign_on.discovery import ProviderError


@dataclass(frozen=True, slots=True)
class TrialStep:
    """One step of the test; `problem` is "" where it went well."""

    description: str
    problem: str = ""


def run_trial() -> Sequence[TrialStep]:
    """Ask the provider what a sign-in asks beforehand.

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
    return [*steps, *_check_scopes(description), _check_pkce(description)]


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

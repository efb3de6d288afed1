"""A trial of the provider, for the administrator who set it up: every step by itself, and what is
wrong with the first that fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from projects.sign_on import discovery
from projects.sign_on.discovery import Trouble


@dataclass(frozen=True, slots=True)
class Step:
    """`trouble` is "" where it went well."""

    words: str
    trouble: str = ""


def run() -> Sequence[Step]:
    """Ask the provider what a sign-in asks beforehand. Never fails; each request is bounded."""
    steps = []
    try:
        described = discovery.read()
        steps.append(Step(f"It describes itself at {discovery.address()}"))
        discovery.keys(described)
        steps.append(Step("It publishes keys to check its signatures with"))
    except Trouble as trouble:
        return [
            *steps,
            Step(
                "It describes itself and publishes keys" if not steps else "It publishes keys",
                trouble.text,
            ),
        ]
    steps.append(
        _offered(described, "response_types_supported", ["code"], "It hands out codes for tokens")
    )
    return [*steps, *_scopes(described), _pkce(described)]


def _offered(described: dict[str, object], name: str, wanted: Sequence[str], words: str) -> Step:
    """A list that may be left out says nothing against it."""
    offered = described.get(name)
    lacking = [each for each in wanted if isinstance(offered, list) and each not in offered]
    return Step(words, f"Its {name} lack {', '.join(lacking)}." if lacking else "")


def _scopes(described: dict[str, object]) -> Sequence[Step]:
    wanted = settings.OPTIONS.oidc_scopes.split()
    return (
        [
            _offered(
                described, "scopes_supported", wanted, f"It knows the scopes {', '.join(wanted)}"
            )
        ]
        if wanted
        else []
    )


def _pkce(described: dict[str, object]) -> Step:
    return _offered(
        described,
        "code_challenge_methods_supported",
        ["S256"],
        "It binds a code to the browser that asked (PKCE)",
    )

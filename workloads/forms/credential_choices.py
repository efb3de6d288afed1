"""Credentials as a form offers them: by the Secrets that they are in a project's namespace, with
the keys that can be had of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from environments.credentials import list_secret_keys, secret_name
from environments.models import Credential


@dataclass(frozen=True, slots=True)
class CredentialChoice:
    """A credential: the name of its Secret, its own, and its keys."""

    secret: str
    name: str
    keys: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.name} ({', '.join(self.keys)})"


def list_credential_choices(credentials: Iterable[Credential]) -> Sequence[CredentialChoice]:
    """The credentials that variables can be had from."""
    return [
        CredentialChoice(secret_name(each), each.name, list_secret_keys(each))
        for each in credentials
    ]

"""Credentials as a form offers them for environment variables.

Each is named by its Secret in the project's namespace, and has the keys that a variable can read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from environments.credentials import list_secret_keys, secret_name
from environments.models import Credential


@dataclass(frozen=True, slots=True)
class CredentialChoice:
    """A credential that can be chosen: the name of its Secret, its own name, and its keys."""

    secret: str
    name: str
    keys: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the credential's name with its keys."""
        return f"{self.name} ({', '.join(self.keys)})"


def list_credential_choices(credentials: Iterable[Credential]) -> Sequence[CredentialChoice]:
    """Return the credentials from which variables can take their values."""
    return [
        CredentialChoice(secret_name(each), each.name, list_secret_keys(each))
        for each in credentials
    ]

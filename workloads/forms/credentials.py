"""Credentials as a form offers them: by the Secrets that they are in a project's namespace, with
the keys that can be had of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from environments.credentials import keys, secret_name
from environments.models import Credential


@dataclass(frozen=True, slots=True)
class Shared:
    """A credential: the name of its Secret, its own, and its keys."""

    secret: str
    name: str
    keys: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{self.name} ({', '.join(self.keys)})"


def shared(credentials: Iterable[Credential]) -> Sequence[Shared]:
    """The credentials that variables can be had from."""
    return [Shared(secret_name(each), each.name, keys(each)) for each in credentials]

"""Text that is encrypted in the database. Keys rotate: the newest encrypts, all of them decrypt."""

from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models

DUMP_PREFIX = "encrypted:"
"""Before what is encrypted in a dump."""


class Unreadable(Exception):
    """It was encrypted with a key that is not here any more."""


def encrypt(text: str) -> str:
    return _fernet().encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Raises Unreadable."""
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken:
        raise Unreadable(
            "It was encrypted with a key that is not among MUSTER_ENCRYPTION_KEYS. Add the old "
            "key, or enter it anew."
        ) from None


def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Clear in Python, encrypted in the database; it cannot be searched."""

    def get_prep_value(self, value: Any) -> Any:
        return value if value in (None, "") else encrypt(str(value))

    def value_to_string(self, obj: models.Model) -> str:
        """As a dump of the database has it: encrypted, too."""
        value = self.value_from_object(obj)
        return f"{DUMP_PREFIX}{encrypt(value)}" if value else ""

    def to_python(self, value: Any) -> Any:
        """As a dump is loaded."""
        return (
            decrypt(value.removeprefix(DUMP_PREFIX))
            if isinstance(value, str) and value.startswith(DUMP_PREFIX)
            else super().to_python(value)
        )

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return value if not value else decrypt(value)

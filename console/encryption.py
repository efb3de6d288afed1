"""Text that is encrypted in the database. Keys rotate: the newest encrypts, all of them decrypt."""

from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models
from django.db.models import F
from django.db.models.functions import Cast

DUMP_PREFIX = "encrypted:"
"""Marks an encrypted value in a dump."""


class Unreadable(Exception):
    """The text was encrypted with a key that is no longer configured."""


def encrypt(text: str) -> str:
    return _fernet().encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Return the text of a token. Raises Unreadable."""
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken:
        raise Unreadable(
            "It was encrypted with a key that is not among MUSTER_ENCRYPTION_KEYS. Add the old "
            "key, or enter it anew."
        ) from None


def renew_token(token: str) -> str:
    """Return a token of the same text by the newest key: the same one where that made it.

    Raises Unreadable.
    """
    newest = Fernet(settings.ENCRYPTION_KEYS[0])
    try:
        newest.decrypt(token.encode())
    except InvalidToken:
        return newest.encrypt(decrypt(token).encode()).decode()
    return token


def annotate_token(rows: Any, name: str) -> Any:
    """Annotate `token`, what the database has in an encrypted field, which is not decrypted."""
    return rows.annotate(token=Cast(F(name), output_field=models.TextField()))


def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """A text that is clear in Python and encrypted in the database; it cannot be searched."""

    def get_prep_value(self, value: Any) -> Any:
        return value if value in (None, "") else encrypt(str(value))

    def value_to_string(self, obj: models.Model) -> str:
        """Return the value as a dump has it, encrypted as well."""
        value = self.value_from_object(obj)
        return f"{DUMP_PREFIX}{encrypt(value)}" if value else ""

    def to_python(self, value: Any) -> Any:
        """Return the value of a dump that is loaded, decrypted."""
        return (
            decrypt(value.removeprefix(DUMP_PREFIX))
            if isinstance(value, str) and value.startswith(DUMP_PREFIX)
            else super().to_python(value)
        )

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return value if not value else decrypt(value)

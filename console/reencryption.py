"""Encrypts anew, by the newest key, the encrypted fields of the database."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db.models import TextField, Value

from console.encryption import EncryptedTextField, Unreadable, annotate_token, renew_token

BATCH_SIZE = 100
MAX_TRIES = 10
"""Tries of one value; each failed try means that somebody saved another one."""


@dataclass(slots=True)
class Renewal:
    """Counts of tokens by the newest key, and the labels of those that cannot be read."""

    renewed: int = 0
    current: int = 0
    unreadable: list[str] = field(default_factory=list)

    def renew(self, token: str, label: str) -> str:
        """Return a token of the same text by the newest key.

        Counts one that is so already, and one that cannot be read: both are returned as they are.
        Whoever writes another one counts it.
        """
        try:
            new = renew_token(token)
        except Unreadable:
            self.unreadable.append(label)
            return token
        self.current += new == token
        return new


def renew_fields(renewal: Renewal) -> None:
    """Encrypt anew every encrypted field of every model, and count it in `renewal`.

    A value that somebody saves meanwhile stays as saved, and is encrypted anew in its turn.
    """
    for model in apps.get_models():
        for each in model._meta.concrete_fields:
            if isinstance(each, EncryptedTextField):
                _renew_field(renewal, model._base_manager, each)


def _renew_field(renewal: Renewal, rows: Any, encrypted: EncryptedTextField) -> None:
    name = encrypted.name
    for pk, listed in _list_tokens(rows, name):
        row = annotate_token(rows, name).filter(pk=pk)
        token = listed
        for _ in range(MAX_TRIES):
            new = renewal.renew(token, f"{rows.model._meta.verbose_name} {pk}")
            if new == token:
                break
            value = Value(new, output_field=TextField())
            if row.filter(token=token).update(**{name: value}):
                renewal.renewed += 1
                break
            # It was saved meanwhile, maybe by a process that does not have the newest key yet.
            token = row.values_list("token", flat=True).first() or ""
            if not token:
                break


def _list_tokens(rows: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Yield the key and the token of each row that has one, in batches by key."""
    last = None
    while True:
        token_rows = annotate_token(rows, name).exclude(token="").order_by("pk")
        if last is not None:
            token_rows = token_rows.filter(pk__gt=last)
        batch = list(token_rows.values_list("pk", "token")[:BATCH_SIZE])
        yield from batch
        if len(batch) < BATCH_SIZE:
            return
        last = batch[-1][0]

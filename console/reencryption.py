"""Encrypts anew, by the newest key, the encrypted fields of the database."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db.models import TextField, Value

from console.encryption import EncryptedTextField, Unreadable, annotate_token, renew

BATCH_SIZE = 100


@dataclass(slots=True)
class Renewal:
    """How many values were encrypted anew and how many were already, and which cannot be read."""

    renewed: int = 0
    kept: int = 0
    unreadable: list[str] = field(default_factory=list)

    def renew(self, token: str, label: str) -> str:
        """Return the token by the newest key, and count it; the same where it cannot be read."""
        try:
            new = renew(token)
        except Unreadable:
            self.unreadable.append(label)
            return token
        if new == token:
            self.kept += 1
        else:
            self.renewed += 1
        return new


def renew_fields(renewal: Renewal) -> None:
    """Encrypt anew every encrypted field of every model, and count it in `renewal`.

    A value that somebody saves meanwhile stays as saved: the newest key has encrypted that one.
    """
    for model in apps.get_models():
        for each in model._meta.concrete_fields:
            if isinstance(each, EncryptedTextField):
                _renew_field(renewal, model._base_manager, each)


def _renew_field(renewal: Renewal, rows: Any, encrypted: EncryptedTextField) -> None:
    name = encrypted.name
    for pk, token in _list_tokens(rows, name):
        label = f"{rows.model._meta.verbose_name} {pk}"
        new = renewal.renew(token, label)
        if new != token:
            annotate_token(rows, name).filter(pk=pk, token=token).update(
                **{name: Value(new, output_field=TextField())}
            )


def _list_tokens(rows: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Yield the key and the token of each row that has one, in batches by key."""
    last = None
    while True:
        found = annotate_token(rows, name).exclude(token="").order_by("pk")
        if last is not None:
            found = found.filter(pk__gt=last)
        batch = list(found.values_list("pk", "token")[:BATCH_SIZE])
        yield from batch
        if len(batch) < BATCH_SIZE:
            return
        last = batch[-1][0]

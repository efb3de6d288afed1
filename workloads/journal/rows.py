"""Many rows changed by one guarded UPDATE."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from django.db import connection, models


class Raced(Exception):
    """A row was not as it had been read: somebody wrote it beside the journal. Nothing may be kept of the turn."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one row, found by its `key`, becomes (`to`), provided that it is as `was` says. Both are values by field name."""

    key: Any
    was: Mapping[str, Any] = field(default_factory=dict)
    to: Mapping[str, Any] = field(default_factory=dict)


def update(model: type[models.Model], key: str, changes: Iterable[Change]) -> None:
    """Change the rows whose field `key` is one of the changes' keys, all by one statement. Raises Raced when one is not as it was."""
    listed = list(changes)
    if not listed:
        return
    statement = _Statement(model, key)
    settings = [statement.setting(name, listed) for name in dict.fromkeys(name for change in listed for name in change.to)]
    table = connection.ops.quote_name(model._meta.db_table)
    chosen = statement.chosen(listed)
    guards = [statement.guard(name, listed) for name in listed[0].was]
    # Names come from the models and values are parameters: nothing here is anybody's text.
    sql = f"UPDATE {table} SET {', '.join(settings)} WHERE {' AND '.join([chosen, *guards])}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, statement.parameters)
        if cursor.rowcount != len(listed):
            raise Raced(f"{cursor.rowcount} of {len(listed)} rows of {model.__name__} were as they had been read")


class _Statement:
    """Collects the parameters in the order of the parts."""

    def __init__(self, model: type[models.Model], key: str) -> None:
        self._model = model
        self._key = key
        self.parameters: list[Any] = []

    def setting(self, name: str, changes: Iterable[Change]) -> str:
        cases = "".join(self._when(change.key, name, change.to[name]) for change in changes if name in change.to)
        column = self._column(name)
        return f"{column} = CASE {self._column(self._key)}{cases} ELSE {column} END"

    def chosen(self, changes: Iterable[Change]) -> str:
        return f"{self._column(self._key)} IN ({', '.join(self._value(self._key, change.key) for change in changes)})"

    def guard(self, name: str, changes: Iterable[Change]) -> str:
        cases = "".join(self._when(change.key, name, change.was[name]) for change in changes)
        return f"{self._column(name)} = CASE {self._column(self._key)}{cases} END"

    def _when(self, key: Any, name: str, value: Any) -> str:
        return f" WHEN {self._value(self._key, key)} THEN {self._value(name, value)}"

    def _value(self, name: str, value: Any) -> str:
        field = self._model._meta.get_field(name)
        assert isinstance(field, models.Field)
        plain = value.value if isinstance(value, Enum) else value
        self.parameters.append(None if plain is None else field.get_db_prep_save(plain, connection))
        return "%s"

    def _column(self, name: str) -> str:
        field = self._model._meta.get_field(name)
        assert isinstance(field, models.Field)
        assert field.column
        return connection.ops.quote_name(field.column)

"""Many rows written by few statements: one for all that change the same fields, however many they
are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Any

import msgspec
from django.db import connection, models


class ConcurrentChange(Exception):
    """A row was not as it had been read: somebody wrote it beside the journal. Nothing may be kept
    of the turn.
    """


@dataclass(frozen=True, slots=True)
class RowChange:
    """What one row, found by its `key`, becomes (`to`), provided that it is as `was` says. Both are
    values by field name.
    """

    key: Any
    expected: Mapping[str, Any] = field(default_factory=dict)
    new_values: Mapping[str, Any] = field(default_factory=dict)


def update_rows(model: type[models.Model], key: str, changes: Iterable[RowChange]) -> None:
    """Change the rows whose field `key` is one of the changes' keys. Raises Raced when one is not
    as it was.
    """
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[RowChange]] = {}
    for change in changes:
        if change.new_values:
            alike.setdefault(
                (tuple(sorted(change.expected)), tuple(sorted(change.new_values))), []
            ).append(change)
    for (was, to), listed in alike.items():
        found = [_Column(model, key, [change.key for change in listed])]
        found += [
            _Column(model, name, [change.expected[name] for change in listed]) for name in was
        ]
        count = _execute_update(
            model,
            found,
            [_Column(model, name, [change.new_values[name] for change in listed]) for name in to],
        )
        if count != len(listed):
            raise ConcurrentChange(
                f"{count} of {len(listed)} rows of {model.__name__} were as they had been read"
            )


def insert_rows(
    model: type[models.Model],
    rows: Sequence[models.Model],
    *,
    conflict_fields: Sequence[str] = (),
    update_fields: Sequence[str] = (),
) -> None:
    """Add these rows, whose keys the database makes. Where there is one with the same `unique`
    fields, its fields of `update` change.
    """
    if not rows:
        return
    fields = [each for each in model._meta.concrete_fields if not each.primary_key]
    columns = [
        _Column(model, each.name, list(map(attrgetter(each.attname), rows))) for each in fields
    ]
    names = ", ".join(column.name for column in columns)
    conflict = ""
    if conflict_fields:
        setting = ", ".join(
            f"{name} = EXCLUDED.{name}"
            for name in (_quote_column(model, each) for each in update_fields)
        )
        conflict = (
            f" ON CONFLICT ({', '.join(_quote_column(model, each) for each in conflict_fields)}) "
            f"DO UPDATE SET {setting}"
        )
    # Names come from the models and values are parameters: nothing in these statements is anybody's
    # text.
    begin = f"INSERT INTO {_quote_table(model)} ({names})"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sql = f"{begin} SELECT * FROM {_build_unnest(columns)}{conflict}"  # noqa: S608 - see above
            cursor.execute(sql, [column.values for column in columns])
        else:
            marks = ", ".join("%s" for _ in columns)
            cursor.executemany(f"{begin} VALUES ({marks}){conflict}", _transpose_columns(columns))


def _execute_update(
    model: type[models.Model], where_columns: Sequence["_Column"], set_columns: Sequence["_Column"]
) -> int:
    """How many rows there were that are as `found` says, and now are as `set_` says as well."""
    table = _quote_table(model)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            columns = [*where_columns, *set_columns]
            names = ", ".join(f"c{number}" for number in range(len(columns)))
            setting = ", ".join(
                f"{each.name} = v.c{number}"
                for number, each in enumerate(set_columns, len(where_columns))
            )
            where = " AND ".join(
                f"{table}.{each.name} = v.c{number}" for number, each in enumerate(where_columns)
            )
            sql = (
                f"UPDATE {table} SET {setting} "  # noqa: S608 - see insert
                f"FROM {_build_unnest(columns)} AS v ({names}) WHERE {where}"
            )
            cursor.execute(sql, [column.values for column in columns])
        else:
            setting = ", ".join(f"{each.name} = %s" for each in set_columns)
            where = " AND ".join(f"{each.name} = %s" for each in where_columns)
            sql = f"UPDATE {table} SET {setting} WHERE {where}"  # noqa: S608 - see insert
            cursor.executemany(sql, _transpose_columns([*set_columns, *where_columns]))
        return int(cursor.rowcount)


def _build_unnest(columns: Sequence["_Column"]) -> str:
    """The lines as a table, one parameter a column."""
    return f"unnest({', '.join(f'%s::{column.type}[]' for column in columns)})"


def _transpose_columns(columns: Sequence["_Column"]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.values for column in columns), strict=True))


def _quote_table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _quote_column(model: type[models.Model], name: str) -> str:
    found = model._meta.get_field(name)
    assert isinstance(found, models.Field)
    assert found.column
    return connection.ops.quote_name(found.column)


class _Column:
    """One column of all lines: its quoted name, its type, and its values as the database takes
    them.
    """

    def __init__(self, model: type[models.Model], name: str, values: list[Any]) -> None:
        found = model._meta.get_field(name)
        assert isinstance(found, models.Field)
        self.name = _quote_column(model, name)
        self.type = found.db_type(connection)
        self.values: list[Any]
        if isinstance(found, models.JSONField):
            self.values = [
                None if value is None else msgspec.json.encode(value).decode() for value in values
            ]
        elif isinstance(
            found,
            models.CharField
            | models.TextField
            | models.IntegerField
            | models.BooleanField
            | models.FloatField,
        ):
            named = any(issubclass(kind, Enum) for kind in set(map(type, values)))
            self.values = (
                [value.value if isinstance(value, Enum) else value for value in values]
                if named
                else values
            )
        else:
            # Of moments, amounts and the ids of workloads there are few different ones in many
            # rows.
            known = {value: found.get_db_prep_save(value, connection) for value in set(values)}
            self.values = [known[value] for value in values]

"""Many rows written by few statements: one for all rows that change the same fields."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Any

import msgspec
from django.db import connection, models


class ConcurrentChange(Exception):
    """A row changed after it was read: somebody wrote it beside the journal.

    Nothing of the transaction may be kept.
    """


@dataclass(frozen=True, slots=True)
class RowChange:
    """The `new_values` of one row, found by its `key`, provided that its fields equal `expected`.

    Both are values by field name.
    """

    key: Any
    expected: Mapping[str, Any] = field(default_factory=dict)
    new_values: Mapping[str, Any] = field(default_factory=dict)


def update_rows(model: type[models.Model], key: str, changes: Iterable[RowChange]) -> None:
    """Update the rows whose field `key` is one of the changes' keys.

    Raises ConcurrentChange when a row is not as expected.
    """
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[RowChange]] = {}
    for change in changes:
        if change.new_values:
            alike.setdefault(
                (tuple(sorted(change.expected)), tuple(sorted(change.new_values))), []
            ).append(change)
    for (expected, new_names), group in alike.items():
        where_columns = [_Column(model, key, [change.key for change in group])]
        where_columns += [
            _Column(model, name, [change.expected[name] for change in group]) for name in expected
        ]
        count = _execute_update(
            model,
            where_columns,
            [
                _Column(model, name, [change.new_values[name] for change in group])
                for name in new_names
            ],
        )
        # Writers of the journal exclude each other; this finds any other writer before it is
        # overwritten.
        if count != len(group):
            raise ConcurrentChange(
                f"{count} of {len(group)} rows of {model.__name__} were as they had been read"
            )


def insert_rows(
    model: type[models.Model],
    rows: Sequence[models.Model],
    *,
    conflict_fields: Sequence[str] = (),
    update_fields: Sequence[str] = (),
) -> None:
    """Insert these rows; the database makes their keys.

    Where a row with the same `conflict_fields` exists, its `update_fields` are updated.
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
    """Update the rows that match `where_columns`. Return how many there were."""
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
        # Also after executemany: rowcount is the sum of all statements, in sqlite3 too.
        return int(cursor.rowcount)


def _build_unnest(columns: Sequence["_Column"]) -> str:
    """Return SQL for the rows as a table, with one parameter for each column."""
    return f"unnest({', '.join(f'%s::{column.type}[]' for column in columns)})"


def _transpose_columns(columns: Sequence["_Column"]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.values for column in columns), strict=True))


def _quote_table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _quote_column(model: type[models.Model], name: str) -> str:
    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)
    assert field.column
    return connection.ops.quote_name(field.column)


class _Column:
    """One column of all rows: its quoted name, its type, and its database values."""

    def __init__(self, model: type[models.Model], name: str, values: list[Any]) -> None:
        field = model._meta.get_field(name)
        assert isinstance(field, models.Field)
        self.name = _quote_column(model, name)
        self.type = field.db_type(connection)
        self.values: list[Any]
        if isinstance(field, models.JSONField):
            self.values = [
                None if value is None else msgspec.json.encode(value).decode() for value in values
            ]
        elif isinstance(
            field,
            models.CharField
            | models.TextField
            | models.IntegerField
            | models.BooleanField
            | models.FloatField,
        ):
            has_enums = any(issubclass(kind, Enum) for kind in set(map(type, values)))
            self.values = (
                [value.value if isinstance(value, Enum) else value for value in values]
                if has_enums
                else values
            )
        else:
            # Of moments, amounts and the ids of workloads there are few different ones in many
            # rows.
            prepared = {value: field.get_db_prep_save(value, connection) for value in set(values)}
            self.values = [prepared[value] for value in values]

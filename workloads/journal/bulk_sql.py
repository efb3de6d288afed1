"""Many rows written by few statements: one for all rows that change the same fields."""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from operator import itemgetter
from types import NoneType
from typing import Any, TypeVar

import msgspec
from django.db import connection, models
from django.db.models.base import ModelState

M = TypeVar("M", bound=models.Model)


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
    # Not the attributes: one that was deferred would be read for each row.
    values = [row.__dict__ for row in rows]
    columns = [
        _Column(model, each.name, list(map(itemgetter(each.attname), values))) for each in fields
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
            cursor.execute(sql, [column.parameter for column in columns])
        else:
            marks = ", ".join("%s" for _ in columns)
            cursor.executemany(f"{begin} VALUES ({marks}){conflict}", _transpose_columns(columns))


def find_rows(
    model: type[models.Model],
    names: Sequence[str],
    key_names: Sequence[str],
    keys: Collection[tuple[Any, ...]],
) -> list[tuple[Any, ...]]:
    """Return these fields of the rows whose key fields equal one of the keys.

    A name may be "relation__field". Each key is looked up in an index: two IN lists would look up
    each workload with each uid. Django would take longer to write the statement and to build its
    objects than the database takes to answer, and this is done for every change.
    """
    if not keys:
        return []
    columns = [
        _Column(model, name, list(values))
        for name, values in zip(key_names, zip(*keys, strict=True), strict=True)
    ]
    selection = _describe_selection(model, tuple(names))
    aliases = [f"c{number}" for number in range(len(columns))]
    conditions = [
        f"t.{column.name} = v.{alias}" for column, alias in zip(columns, aliases, strict=True)
    ]
    where = " AND ".join([*conditions, *selection.conditions])
    params: Sequence[Any]
    if connection.vendor == "postgresql":
        source, params = _build_unnest(columns), [column.parameter for column in columns]
    else:
        # A list of VALUES would be a term each, which SQLite compiles slowly.
        values = ", ".join(f"json_extract(value, '$[{number}]')" for number in range(len(columns)))
        source = f"(SELECT {values} FROM json_each(%s))"  # noqa: S608 - see insert
        params = [msgspec.json.encode(_transpose_columns(columns)).decode()]
    tables = " CROSS JOIN ".join(["v", *selection.tables])
    sql = (
        f"WITH v ({', '.join(aliases)}) AS (SELECT * FROM {source}) "  # noqa: S608 - see insert
        f"SELECT {selection.columns} FROM {tables} WHERE {where}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        rows = cursor.fetchall()
    converted = [
        map(convert, values) if convert else values
        for convert, values in zip(selection.converters, zip(*rows, strict=True), strict=False)
    ]
    return list(zip(*converted, strict=True))


def build_row(model: type[M], values: Mapping[str, Any], *, is_new: bool = False) -> M:
    """Return a model instance with these values by attribute; others are deferred.

    They are set at once and not one by one as by the model's constructor, which takes a tenth of a
    listing's time.
    """
    row = model.__new__(model)
    state = ModelState()
    if not is_new:
        state.adding, state.db = False, connection.alias
    row.__dict__ = {"_state": state, **values}
    return row


@dataclass(frozen=True, slots=True)
class _Selection:
    """The parts of a SELECT that depend on its fields, and what makes Python values of them."""

    columns: str
    tables: Sequence[str]
    conditions: Sequence[str]
    converters: Sequence[Callable[[Any], Any] | None]


@functools.lru_cache
def _describe_selection(model: type[models.Model], names: tuple[str, ...]) -> _Selection:
    quote = connection.ops.quote_name
    columns, converters = [], []
    tables, conditions = [f"{quote(model._meta.db_table)} t"], []
    for number, name in enumerate(names):
        owner, alias = model, "t"
        relation, _, inner = name.partition("__")
        if inner:
            link = model._meta.get_field(relation)
            assert isinstance(link, models.ForeignKey)
            owner, alias, name = link.related_model, f"r{number}", inner
            tables.append(f"{quote(owner._meta.db_table)} {alias}")
            conditions.append(
                f"{alias}.{_quote_column(owner, link.target_field.name)} = "
                f"t.{_quote_column(model, relation)}"
            )
        columns.append(f"{alias}.{_quote_column(owner, name)}")
        converters.append(_find_converter(owner._meta.get_field(name)))
    return _Selection(", ".join(columns), tables, conditions, converters)


def _find_converter(field: Any) -> Callable[[Any], Any] | None:
    """Return what makes a Python value of a database value, None where they are the same."""
    # A relation's value is that of the key that it refers to.
    field = getattr(field, "target_field", field)
    if isinstance(field, models.JSONField):
        return _decode_json
    if isinstance(field, models.DateTimeField):
        return _make_aware
    has_own_type = isinstance(field, models.UUIDField | models.DecimalField | models.BooleanField)
    return field.to_python if has_own_type else None


def _decode_json(value: str | None) -> Any:
    # Django's JSONField decodes with the slow json module.
    return None if value is None else msgspec.json.decode(value)


def _make_aware(value: datetime | None) -> datetime | None:
    """Return a moment with its zone: SQLite's have none, and are in UTC."""
    return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


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
            cursor.execute(sql, [column.parameter for column in columns])
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


_UNPREPARED = (
    models.CharField,
    models.TextField,
    models.IntegerField,
    models.BooleanField,
    models.FloatField,
)
"""Fields whose Python values are the database's, but for enums."""


@functools.lru_cache
def _describe_column(model: type[models.Model], name: str) -> tuple[Any, str, str | None]:
    """Return a field, its quoted column and its type; a process has one kind of database."""
    field = model._meta.get_field(name)
    return field, _quote_column(model, name), field.db_type(connection)


class _Column:
    """One column of all rows: its quoted name, its type, and its database values."""

    __slots__ = ("is_text", "name", "type", "values")

    def __init__(self, model: type[models.Model], name: str, values: list[Any]) -> None:
        field, self.name, self.type = _describe_column(model, name)
        self.values: list[Any]
        self.is_text = False
        """Whether all values are texts or None."""
        if isinstance(field, models.JSONField):
            self.values = [
                None if value is None else msgspec.json.encode(value).decode() for value in values
            ]
            self.is_text = True
        elif isinstance(field, _UNPREPARED):
            kinds = set(map(type, values))
            self.is_text = kinds <= {str, NoneType}
            has_enums = any(issubclass(kind, Enum) for kind in kinds)
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

    @property
    def parameter(self) -> Any:
        """The values as one parameter of a statement for PostgreSQL, an array."""
        return _build_array(self.values) if self.is_text else self.values


def _build_array(texts: Iterable[str | None]) -> str:
    """Build the literal of an array of texts.

    The driver escapes each quote of each JSON document in Python, which takes half of the time of a
    first listing.
    """
    elements = (
        "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for text in texts
    )
    return "{" + ",".join(elements) + "}"

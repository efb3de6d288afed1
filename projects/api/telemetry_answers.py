"""What all telemetry of the REST API shares: types, groups, and the answer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone

from console.errors import Invalid
from console.moments import format_moment
from console.texts import parse_number
from projects.api import schemas
from projects.api.base import ListQuery

MAX_GROUPS = 2
"""Fields that values can be grouped by at once."""

MAX_VALUES = 10_000
"""Values of one answer: the largest."""

GroupKey = tuple[str, str]
"""An id and its name, "" where it has none."""
Amounts = Mapping[tuple[GroupKey, ...], int | float | None]
"""A value for the keys of each group; None is without limit."""


def build_schema(types: Iterable[str], groups: Iterable[str], value: str) -> schemas.Schema:
    """Return the schema of an answer; `value` describes a value."""
    return schemas.object_schema(
        ["type", "timestamp", "values"],
        type=schemas.enum_schema(*types),
        timestamp=schemas.MOMENT,
        values=schemas.array_schema(
            schemas.object_schema(
                ["value"],
                value=schemas.describe_schema(schemas.TEXT, value),
                groups=schemas.array_schema(
                    schemas.object_schema(
                        ["key", "value"],
                        key=schemas.enum_schema(*groups),
                        value=schemas.TEXT,
                        name=schemas.TEXT,
                    )
                ),
            )
        ),
    )


def build_parameters(types: Iterable[str], groups: Iterable[str], about: str) -> list[Any]:
    """Return the parameters for the type and the groups of telemetry."""
    return [
        schemas.query_parameter(
            "telemetryType", schemas.enum_schema(*types), about, is_required=True
        ),
        schemas.query_parameter(
            "groupBy",
            schemas.array_schema(schemas.enum_schema(*groups)) | {"maxItems": MAX_GROUPS},
            "A value for each of these; one for all where it is not given.",
        ),
    ]


def parse_type(query: ListQuery, types: Iterable[str]) -> str:
    """Return the requested type. Raises Invalid."""
    types = tuple(types)
    if not query.text("telemetryType"):
        raise Invalid([("telemetryType", f"telemetryType must be one of {', '.join(types)}.")])
    return query.choice("telemetryType", types)


def parse_groups(query: ListQuery, groups: Iterable[str]) -> Sequence[str]:
    """Return the fields to group by. Raises Invalid."""
    return query.choices("groupBy", tuple(groups), MAX_GROUPS)


def parse_id(name: str, text: str) -> int:
    """Return a parameter that is a row's id. Raises Invalid."""
    key = parse_number(text)
    if key is None:
        raise Invalid([(name, f"{name} must be an id.")])
    return key


def parse_cluster_id(query: ListQuery) -> UUID | None:
    """Return the cluster that is asked for; None for all. Raises Invalid."""
    text = query.text("clusterId")
    try:
        return UUID(text) if text else None
    except ValueError:
        raise Invalid([("clusterId", "clusterId must be the id (a UUID) of a cluster.")]) from None


def serialize_telemetry(kind: str, groups: Sequence[str], amounts: Amounts) -> dict[str, Any]:
    """Return the body of the answer. Without groups there is one value, 0 where nothing is."""
    if not amounts and not groups:
        amounts = {(): 0}
    values = [
        {
            "value": str(-1 if amount is None else amount),
            "groups": [
                {"key": group, "value": value} | ({"name": name} if name else {})
                for group, (value, name) in zip(groups, keys, strict=True)
            ],
        }
        for keys, amount in amounts.items()
    ]
    return {"type": kind, "timestamp": format_moment(timezone.now()), "values": values}

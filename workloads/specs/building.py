"""Building of the dataclasses of a Spec from values by their paths."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

Part = TypeVar("Part")


def build_part(part: type[Part], values: Mapping[str, Any]) -> Part:
    """Build a part of a Spec from values by paths such as "compute.gpus.devices".

    What has no value has the dataclass's default. Raises TypeError where that has none.
    """
    own: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, _, rest = path.partition(".")
        if rest:
            below.setdefault(name, {})[rest] = value
        else:
            own[name] = value
    part_type: Any = part
    parts = _list_part_types(part_type)
    return part(**own, **{name: build_part(parts[name], each) for name, each in below.items()})


def take_part(values: dict[str, Any], path: str) -> dict[str, Any]:
    """Take the values below a path away, and return them by their paths below it."""
    below = f"{path}."
    names = [name for name in values if name.startswith(below)]
    return {name.removeprefix(below): values.pop(name) for name in names}


@cache
def _list_part_types(part: Any) -> dict[str, type[Any]]:
    """Return the dataclasses among a dataclass's fields, by name. Cached: resolving is slow."""
    hints = get_type_hints(part)
    return {
        field.name: hints[field.name]
        for field in fields(part)
        if is_dataclass(hints[field.name]) and isinstance(hints[field.name], type)
    }

"""Differences between the two states of an audit log entry, as lines to compare."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One field with its text before and after; None where the state has no such field."""

    name: str
    before: str | None
    after: str | None


def list_differences(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Sequence[Difference]:
    """Return the fields of both states, each once, in their order."""
    old, new = before or {}, after or {}
    return [
        Difference(name, _format_value(old, name), _format_value(new, name))
        for name in {**old, **new}
    ]


def _format_value(state: Mapping[str, Any], name: str) -> str | None:
    if name not in state:
        return None
    value = state[name]
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        json.dumps(value, indent=1, ensure_ascii=False)
        if isinstance(value, dict | list)
        else str(value)
    )

"""`fieldsToClear` of a template's change: paths whose values are taken away before it is merged.

Clients that leave out nulls, as Run:ai's do, have no other way to say so.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from console.rest_bodies import Problem, build_sentence
from projects.api.schemas import Schema
from workloads.api.workload_schemas import MASTER, SPEC

MAX_FIELDS, MAX_PATH_CHARS = 200, 200
DESCRIPTION, LOCKED = "meta.description", "locked"
_MASTER_SPEC, _MASTER_NAMES = "masterSpec", ("masterSpec", "master.spec", "master")
"""The master's place in a submission, and the names that bodies have for it."""


def find_problems(paths: Sequence[str]) -> list[Problem]:
    """Return what is wrong with the paths of a body."""
    return [
        (
            "fieldsToClear",
            build_sentence(
                "fieldsToClear",
                f"has {path[:60]!r}, which is no field that can be cleared. Give paths as "
                "spec.image, masterSpec, meta.description or locked",
            ),
        )
        for path in paths
        if not _is_clearable(path)
    ][:MAX_FIELDS]


def clear_fields(base: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Return the spec and master of a template without what stands at these paths."""
    cleared = dict(base)
    for path in paths:
        cleared = _remove(cleared, _split_path(path))
    if _MASTER_SPEC in base and _MASTER_SPEC not in cleared:
        # It says that there is a masterSpec; without one the master is as the workers are.
        cleared.pop("masterSpecSameAsWorker", None)
    return cleared


def _is_clearable(path: str) -> bool:
    if path in (DESCRIPTION, LOCKED):
        return True
    first, *rest = _split_path(path)
    if first == "spec":
        return bool(rest) and _has_field(SPEC, rest)
    return first == _MASTER_SPEC and _has_field(MASTER[_MASTER_SPEC], rest)


def _split_path(path: str) -> list[str]:
    """Return the parts of a path, with the master by its name in a submission."""
    for name in _MASTER_NAMES:
        if path == name or path.startswith(f"{name}."):
            path = _MASTER_SPEC + path.removeprefix(name)
            break
    return path.split(".")


def _has_field(schema: Schema, parts: Sequence[str]) -> bool:
    for part in parts:
        properties = schema.get("properties", {})
        if part not in properties:
            return False
        schema = properties[part]
    return True


def _remove(values: Mapping[str, Any], parts: Sequence[str]) -> dict[str, Any]:
    first, *rest = parts
    remaining_values = {name: value for name, value in values.items() if name != first or rest}
    inner = remaining_values.get(first)
    return (
        remaining_values | {first: _remove(inner, rest)}
        if isinstance(inner, Mapping)
        else remaining_values
    )

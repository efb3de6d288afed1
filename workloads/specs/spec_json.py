"""Encoding of a Spec as JSON for a database row, and decoding.

Values equal to their defaults are left out; the version tells how to read the rest. The names of
dataclass fields are the keys that are stored.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cache
from typing import Any

from workloads.specs.choices import Configuration
from workloads.specs.pod_setup import VOLUME_TYPES, Volume
from workloads.specs.spec import MASTER_TYPES, MasterChanges, Spec

VERSION = 2
KIND_KEY = "kind"

_VOLUME_TYPES = {volume.kind: volume for volume in VOLUME_TYPES}


class UnreadableSpec(ValueError):
    """The stored JSON is no Spec that this version can read. The text names the place."""


def encode_spec(spec: Spec) -> dict[str, Any]:
    """Return a spec as plain JSON values with a version. `decode_spec` returns an equal Spec."""
    return {"version": VERSION, **_encode(spec)}


def decode_spec(data: Mapping[str, Any]) -> Spec:
    """Return the Spec that `encode_spec` encoded.

    Raises UnreadableSpec. The result is not validated.
    """
    if data.get("version") == 1:
        data = _upgrade_first_version(data)
    elif data.get("version") != VERSION:
        raise UnreadableSpec(
            f"version {data.get('version')!r:.40} of a spec cannot be read, only 1 and {VERSION}"
        )
    decoded = _decode(Spec, {key: value for key, value in data.items() if key != "version"}, "spec")
    assert isinstance(decoded, Spec)
    return decoded


def _upgrade_first_version(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a spec of version 1 as one of now: it counted elastic workers, not pods."""
    elastic = data.get("elastic")
    if not isinstance(elastic, dict):
        return data
    master = int(data.get("configuration") != Configuration.WORKERS_ONLY.value)
    counts = {"min_workers": "min_pods", "max_workers": "max_pods"}
    upgraded = {
        counts.get(name, name): value + master
        if name in counts and isinstance(value, int)
        else value
        for name, value in elastic.items()
    }
    return {**data, "elastic": upgraded}


def _encode(value: Any) -> Any:
    if isinstance(value, MasterChanges):
        return {name: _encode(part) for name, part in value.changes.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        encoded: dict[str, Any] = {KIND_KEY: value.kind} if isinstance(value, Volume) else {}
        for field in dataclasses.fields(value):
            # Left out are values that equal the defaults of now: a default that changes would
            # change the meaning of stored rows, and needs a new VERSION.
            if (part := getattr(value, field.name)) != field.default:
                encoded[field.name] = _encode(part)
        return encoded
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if isinstance(value, StrEnum):
        return value.value
    return str(value) if isinstance(value, Decimal) else value


def _decode(hint: Any, value: Any, path: str) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return _decode_union(typing.get_args(hint), value, path)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise UnreadableSpec(f"{path} is not a list")
        item = typing.get_args(hint)[0]
        return tuple(_decode(item, each, f"{path}.{index}") for index, each in enumerate(value))
    if dataclasses.is_dataclass(hint):
        return _decode_object(hint, value, path)
    if hint in (str, int, bool) and type(value) is hint:
        return value
    try:
        if (
            isinstance(value, str)
            and isinstance(hint, type)
            and issubclass(hint, StrEnum | Decimal)
        ):
            return hint(value)
    except (ValueError, InvalidOperation) as error:
        raise UnreadableSpec(f"{path} cannot be {value!r:.40}") from error
    raise UnreadableSpec(f"{path} is not of type {getattr(hint, '__name__', hint)}")


def _decode_union(allowed_types: tuple[Any, ...], value: Any, path: str) -> Any:
    """Decode a value whose type is a union: one type, or None where it may be missing."""
    if value is None and type(None) in allowed_types:
        return None
    candidates = [arm for arm in allowed_types if arm is not type(None)]
    assert len(candidates) == 1, f"{path} has an ambiguous type"
    return _decode(candidates[0], value, path)


def _decode_object(hint: Any, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise UnreadableSpec(f"{path} is not an object")
    remaining = dict(value)
    if hint is Volume:
        kind = remaining.pop(KIND_KEY, None)
        if not isinstance(kind, str) or kind not in _VOLUME_TYPES:
            raise UnreadableSpec(f"{path} is of the unknown kind {kind!r:.40}")
        hint = _VOLUME_TYPES[kind]
    hints = _get_field_types(hint)
    unknown = sorted(remaining.keys() - hints.keys())
    if unknown:
        raise UnreadableSpec(f"{path} has the unknown field {unknown[0]!r:.60}")
    try:
        return hint(
            **{
                name: _decode(hints[name], part, f"{path}.{name}")
                for name, part in remaining.items()
            }
        )
    except TypeError as error:
        raise UnreadableSpec(f"{path} lacks a field: {error}") from error


@cache
def _get_field_types(hint: type) -> dict[str, Any]:
    """Return the types of an object's fields.

    Cached: computing them is slow, and a page decodes many specs.
    """
    if hint is MasterChanges:
        return dict(MASTER_TYPES)
    hints = typing.get_type_hints(hint)
    return {field.name: hints[field.name] for field in dataclasses.fields(hint)}

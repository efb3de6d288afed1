"""The OpenAPI description of the bodies that `console.rest_bodies` reads."""

from collections.abc import Mapping
from typing import Any

import msgspec

from console.rest_bodies import HIDDEN

_SAYS_NOTHING = ("default", "format", "required", "additionalProperties")
"""Entries without meaning where they are empty or false.

A body may have more than the document says: fields of answers, and what requests nothing.
"""


def describe_body(body_type: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a body, as OpenAPI 3.1 has it, without references."""
    (schema,), components = msgspec.json.schema_components([body_type], ref_template="{name}")
    cleaned: dict[str, Any] = _clean_schema(schema, components)
    return cleaned


def accept_nulls(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a request, in which null is as good as a field that is missing.

    A field that must be given takes no null.
    """
    adapted = dict(schema)
    if "properties" in schema:
        required = schema.get("required", ())
        adapted["properties"] = {
            name: (_remove_null if name in required else _add_null)(accept_nulls(each))
            for name, each in schema["properties"].items()
        }
    if "items" in schema:
        adapted["items"] = accept_nulls(schema["items"])
    if "anyOf" in schema:
        adapted["anyOf"] = [accept_nulls(each) for each in schema["anyOf"]]
    return adapted


def _add_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        kinds = schema["anyOf"]
        has_null = any(each.get("type") == "null" for each in kinds)
        return schema if has_null else schema | {"anyOf": [*kinds, {"type": "null"}]}
    if "type" not in schema and "enum" not in schema:
        # It takes any value already.
        return schema
    with_null = dict(schema)
    if "type" in schema:
        with_null["type"] = [*_list_types(schema), "null"]
    if "enum" in schema:
        with_null["enum"] = [*(each for each in schema["enum"] if each is not None), None]
    return with_null


def _remove_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return schema | {"anyOf": [each for each in schema["anyOf"] if each.get("type") != "null"]}
    if "type" not in schema:
        return schema
    types = _list_types(schema)
    without_null = schema | {"type": types[0] if len(types) == 1 else types}
    if "enum" in schema:
        without_null["enum"] = [each for each in schema["enum"] if each is not None]
    return without_null


def _list_types(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema takes, without null."""
    types = schema["type"]
    return [each for each in ([types] if isinstance(types, str) else types) if each != "null"]


def _clean_schema(schema: Any, components: Mapping[str, Any]) -> Any:
    """Return a schema with what it refers to in place, and without what says nothing."""
    if isinstance(schema, list | tuple):
        return [_clean_schema(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        own = {name: value for name, value in schema.items() if name != "$ref"}
        return _clean_schema({**components[schema["$ref"]], **own}, components)
    if schema.get("format") == "decimal":
        return {**_clean_schema({**schema, "format": None}, components), "type": "number"}
    cleaned: dict[str, Any] = {
        name: _clean_properties(value, components)
        if name == "properties"
        else _clean_schema(value, components)
        for name, value in schema.items()
        if name != "title" and (value or name not in _SAYS_NOTHING)
    }
    if isinstance(description := cleaned.get("description"), str):
        # Docstrings have line breaks, and the indentation of their class.
        cleaned["description"] = " ".join(description.split())
    if "enum" in cleaned and all(isinstance(each, str) for each in cleaned["enum"]):
        cleaned = {"type": "string"} | cleaned
    return _merge_types(cleaned)


def _clean_properties(
    properties: Mapping[str, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        name: _clean_schema(schema, components)
        for name, schema in properties.items()
        if not schema.get(HIDDEN)
    }


def _merge_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Return "one or the other" as one schema with several types, where that says the same."""
    match schema:
        case {"anyOf": [{"type": str(kind)} as inner, {"type": "null"}], **own}:
            merged = {**inner, **own, "type": [kind, "null"]}
            return merged | ({"enum": [*inner["enum"], None]} if "enum" in inner else {})
        case {"anyOf": kinds, **own} if all(each.keys() == {"type"} for each in kinds):
            return {"type": [each["type"] for each in kinds], **own}
    return schema

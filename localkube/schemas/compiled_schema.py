"""A JSON schema compiled into a tree of nodes that is quick to walk, and the walks.

The walks prune, fill defaults, find errors and find forbidden changes. They keep to what a real API
server does with a structural schema. Paths are dotted, with list indexes:
`spec.containers[0].name`.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from localkube.errors import (
    MAX_CAUSES,
    Cause,
    invalid_cause,
    join_field_path,
    required_cause,
)
from localkube.metadata import deep_copy

Check = Callable[[Any, str], Cause | None]

PYTHON_TYPES: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
}
INT_OR_STRING = frozenset({int, str})
INTEGER_BOUNDS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
"""The least and greatest value of each integer format."""
IMMUTABLE_RULE = "self == oldSelf"
"""The one validation rule (CEL) in our definitions."""


class SchemaNode:
    """What one place of an object may hold.

    `accepts` are Python types, matched exactly: a bool is no integer; None takes anything.
    """

    __slots__ = (
        "accepts",
        "checks",
        "default",
        "format",
        "go_name",
        "has_default",
        "has_immutable_values",
        "has_inner_defaults",
        "immutable_message",
        "is_quantity",
        "items",
        "keeps_unknown_fields",
        "list_keys",
        "nullable",
        "properties",
        "required",
        "type",
        "values",
    )

    accepts: frozenset[type] | None
    properties: dict[str, "SchemaNode"]
    values: "SchemaNode | None"
    items: "SchemaNode | None"

    def __init__(self, schema: Mapping[str, Any], go_name: str) -> None:
        is_int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
        self.type = "integer,string" if is_int_or_string else str(schema.get("type", ""))
        self.accepts = INT_OR_STRING if is_int_or_string else PYTHON_TYPES.get(self.type)
        self.format = str(schema.get("format", ""))
        self.is_quantity = is_int_or_string and (
            bool(schema.get("x-quantity")) or "KMGTPE" in schema.get("pattern", "")
        )
        self.go_name = str(schema.get("x-go", go_name))
        self.properties, self.values, self.items = {}, None, None
        self.keeps_unknown_fields = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.nullable = bool(schema.get("nullable"))
        self.required: tuple[str, ...] = tuple(schema.get("required", ()))
        self.has_default = "default" in schema
        self.default = schema.get("default")
        self.has_inner_defaults = False
        """Whether some default lies at or below the properties."""
        self.list_keys = _find_list_keys(schema)
        self.checks = tuple(_build_checks(schema))
        self.immutable_message = next(
            (
                rule["message"]
                for rule in schema.get("x-kubernetes-validations", ())
                if rule["rule"] == IMMUTABLE_RULE
            ),
            "",
        )
        self.has_immutable_values = bool(self.immutable_message)
        """Whether some immutable value lies at or below."""

    @property
    def has_children(self) -> bool:
        return bool(self.properties or self.values or self.items)


def compile_schema(
    schema: Mapping[str, Any], memo: dict[int, SchemaNode], go_name: str = ""
) -> SchemaNode:
    """Compile a schema into a node.

    Parts that are one object in memory become one node, through `memo` (by identity).
    """
    compiled = memo.get(id(schema))
    if compiled is not None:
        return compiled
    node = memo[id(schema)] = SchemaNode(schema, go_name)
    for name, inner in schema.get("properties", {}).items():
        node.properties[name] = compile_schema(inner, memo, name[0].upper() + name[1:])
    if isinstance(schema.get("additionalProperties"), dict):
        node.values = compile_schema(schema["additionalProperties"], memo, go_name)
    if "items" in schema:
        node.items = compile_schema(schema["items"], memo, go_name)
    inner_nodes = [
        inner for inner in (*node.properties.values(), node.values, node.items) if inner is not None
    ]
    node.has_inner_defaults = any(
        inner.has_inner_defaults or inner.has_default for inner in inner_nodes
    )
    node.has_immutable_values = node.has_immutable_values or any(
        inner.has_immutable_values for inner in inner_nodes
    )
    return node


def _find_list_keys(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the keys by which a list's items are told apart.

    They are () for a set, and None for a list that is neither map nor set.
    """
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return tuple(schema["x-kubernetes-list-map-keys"])
        case "set":
            return ()
        case _:
            return None


def prune_value(
    node: SchemaNode, value: Any, path: str, unknown: list[str], *, is_typed: bool
) -> None:
    """Remove unknown fields, and nulls where the schema has none, from `value` in place.

    The paths of the first MAX_CAUSES unknown fields are added to `unknown`. With `is_typed` the
    rest of Go's way with its own types is kept to: a null in a list or map is the empty value of
    the element's type, and an empty list or map is the same as none.
    """
    if type(value) is dict:
        _prune_object(node, value, path, unknown, is_typed)
    elif type(value) is list and node.items is not None:
        if is_typed and None in value:
            value[:] = [_get_empty_value(node.items) if item is None else item for item in value]
        if node.items.has_children:
            for index, item in enumerate(value):
                prune_value(node.items, item, f"{path}[{index}]", unknown, is_typed=is_typed)


def _prune_object(
    node: SchemaNode, value: dict[str, Any], path: str, unknown: list[str], is_typed: bool
) -> None:
    dropped_keys = []
    props, values = node.properties, node.values
    for key, item in value.items():
        part = props.get(key, values)
        if part is None:
            if not node.keeps_unknown_fields:
                dropped_keys.append(key)
                if len(unknown) < MAX_CAUSES:
                    unknown.append(join_field_path(path, key))
        elif item is None:
            if is_typed and part is values:
                value[key] = _get_empty_value(part)
            elif not part.nullable:
                dropped_keys.append(key)
        elif is_typed and not item and (part.items or part.values) and type(item) in (list, dict):
            dropped_keys.append(key)
        elif part.properties or part.values or part.items:
            prune_value(part, item, join_field_path(path, key), unknown, is_typed=is_typed)
        elif type(item) is float and part.type == "integer" and item.is_integer():
            # Go reads 3.0 as the number 3 and writes it so.
            value[key] = int(item)
    for key in dropped_keys:
        del value[key]


def _get_empty_value(node: SchemaNode) -> Any:
    return {"string": "", "boolean": False, "object": {}, "array": []}.get(node.type, 0)


def fill_defaults(node: SchemaNode, value: Any) -> None:
    """Fill the schema's defaults into `value`, in place, wherever their parent object exists."""
    if type(value) is dict:
        for key, part in node.properties.items():
            if part.has_default and key not in value:
                value[key] = deep_copy(part.default)
            if part.has_inner_defaults and key in value:
                fill_defaults(part, value[key])
        if node.values is not None and node.values.has_inner_defaults:
            for item in value.values():
                fill_defaults(node.values, item)
    elif type(value) is list and node.items is not None and node.items.has_inner_defaults:
        for item in value:
            fill_defaults(node.items, item)


def find_errors(node: SchemaNode, value: Any, path: str, causes: list[Cause]) -> None:
    """Add a cause for each value of a wrong type or out of its bounds.

    Properties come by name, then those that are missing. Ends soon after MAX_CAUSES.
    """
    if len(causes) > MAX_CAUSES:
        return
    if node.accepts is not None and type(value) not in node.accepts:
        if not (value is None and node.nullable):
            causes.append(_build_type_cause(node, value, path))
        return
    for check in node.checks:
        cause = check(value, path)
        if cause:
            causes.append(cause)
    if type(value) is dict:
        props, values = node.properties, node.values
        for key in sorted(value):
            part = props.get(key, values)
            if part is not None:
                item = value[key]
                if (
                    part.checks
                    or part.properties
                    or part.values
                    or part.items
                    or part.accepts is None
                    or type(item) not in part.accepts
                ):
                    find_errors(part, item, join_field_path(path, key), causes)
        for key in node.required:
            if key not in value:
                causes.append(required_cause(join_field_path(path, key)))
    elif type(value) is list:
        if node.items is not None:
            for index, item in enumerate(value):
                find_errors(node.items, item, f"{path}[{index}]", causes)
        if node.list_keys is not None:
            _find_duplicates(node.list_keys, value, path, causes)


def _find_duplicates(
    keys: tuple[str, ...], value: list[Any], path: str, causes: list[Cause]
) -> None:
    encoded_items = set()
    for index, item in enumerate(value):
        identity = item
        if keys and isinstance(item, dict):
            identity = {key: item[key] for key in keys if key in item}
        encoded = json.dumps(identity, separators=(",", ":"), sort_keys=True)
        if encoded in encoded_items:
            causes.append(
                Cause("FieldValueDuplicate", f"Duplicate value: {encoded}", f"{path}[{index}]")
            )
        encoded_items.add(encoded)


def find_forbidden_changes(
    node: SchemaNode, old: Any, new: Any, path: str, causes: list[Cause]
) -> None:
    """Add a cause for each immutable value that is in both and differs.

    Lists are not looked into: they have no such rule.
    """
    if not node.has_immutable_values or old == new:
        return
    if node.immutable_message:
        causes.append(invalid_cause(path, json.dumps(new), node.immutable_message))
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() & new.keys()):
            part = node.properties.get(key, node.values)
            if part is not None:
                find_forbidden_changes(
                    part, old[key], new[key], f"{path}.{key}" if path else key, causes
                )


def get_json_type(value: Any) -> str:
    """Return the JSON type of a value, as Go's validation names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    return {float: "number", str: "string", list: "array"}.get(type(value), "object")


def _build_type_cause(node: SchemaNode, value: Any, path: str) -> Cause:
    type_name = get_json_type(value)
    message = (
        f'Invalid value: "{type_name}": {path} in body must be of type {node.type}: "{type_name}"'
    )
    return Cause("FieldValueTypeInvalid", message, path)


def _build_checks(schema: Mapping[str, Any]) -> list[Check]:
    checks: list[Check] = []
    if "enum" in schema:
        checks.append(_build_enum_check(list(schema["enum"])))
    least, greatest = INTEGER_BOUNDS.get(schema.get("format", ""), (None, None))
    # A real server ignores the formats of integers in a CRD and leaves the rest to the operator,
    # whose Go types refuse to decode such an object at all.
    minimum, maximum = schema.get("minimum", least), schema.get("maximum", greatest)
    if minimum is not None:
        checks.append(_build_minimum_check(minimum))
    if maximum is not None:
        checks.append(_build_maximum_check(maximum))
    if "minLength" in schema:
        checks.append(_build_min_length_check(schema["minLength"]))
    if "maxLength" in schema:
        checks.append(_build_max_length_check(schema["maxLength"]))
    if "maxItems" in schema:
        checks.append(_build_max_items_check(schema["maxItems"]))
    if "pattern" in schema:
        checks.append(_build_pattern_check(schema["pattern"]))
    return checks


def _build_enum_check(allowed: list[Any]) -> Check:
    listed_values = ", ".join(json.dumps(item) for item in allowed)

    def check(value: Any, path: str) -> Cause | None:
        if value in allowed:
            return None
        return Cause(
            "FieldValueNotSupported",
            f"Unsupported value: {json.dumps(value)}: supported values: {listed_values}",
            path,
        )

    return check


def _build_minimum_check(bound: float) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        text = f"{path} in body should be greater than or equal to {bound}"
        return invalid_cause(path, str(value), text) if value < bound else None

    return check


def _build_maximum_check(bound: float) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        text = f"{path} in body should be less than or equal to {bound}"
        return invalid_cause(path, str(value), text) if value > bound else None

    return check


def _build_min_length_check(bound: int) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        text = f"{path} in body should be at least {bound} chars long"
        return invalid_cause(path, json.dumps(value), text) if len(value) < bound else None

    return check


def _build_max_length_check(bound: int) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        text = f"Too long: may not be more than {bound} bytes"
        return Cause("FieldValueTooLong", text, path) if len(value) > bound else None

    return check


def _build_max_items_check(bound: int) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        text = f"Too many: {len(value)}: must have at most {bound} items"
        return Cause("FieldValueTooMany", text, path) if len(value) > bound else None

    return check


def _build_pattern_check(pattern: str) -> Check:
    search = re.compile(pattern).search

    def check(value: Any, path: str) -> Cause | None:
        if not isinstance(value, str) or search(value):
            return None
        return invalid_cause(path, json.dumps(value), f"{path} in body should match '{pattern}'")

    return check

"""A JSON schema turned into a tree of nodes that is quick to walk, and the walks: prune, fill, find
errors, find forbidden changes.

The walks keep to what a real API server does with a structural schema. Paths are dotted, with list
indexes: `spec.containers[0].name`.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from localkube.errors import Cause, required, wrong
from localkube.metadata import copied

Check = Callable[[Any, str], Cause | None]

TYPES: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
}
INT_OR_STRING = frozenset({int, str})
IMMUTABLE = "self == oldSelf"
"""The one validation rule (CEL) that our definitions hold."""


class Node:
    """What one place of an object may hold. `accepts` are Python types, matched exactly: a bool is
    no integer; None takes anything.
    """

    __slots__ = (
        "accepts",
        "checks",
        "default",
        "defaults",
        "fixed",
        "format",
        "go",
        "guards",
        "has_default",
        "items",
        "keys",
        "nullable",
        "open",
        "props",
        "quantity",
        "required",
        "type",
        "values",
    )

    accepts: frozenset[type] | None
    props: dict[str, "Node"]
    values: "Node | None"
    items: "Node | None"

    def __init__(self, schema: Mapping[str, Any], go: str) -> None:
        either = bool(schema.get("x-kubernetes-int-or-string"))
        self.type = "integer,string" if either else str(schema.get("type", ""))
        self.accepts = INT_OR_STRING if either else TYPES.get(self.type)
        self.format = str(schema.get("format", ""))
        self.quantity = either and (
            bool(schema.get("x-quantity")) or "KMGTPE" in schema.get("pattern", "")
        )
        self.go = str(schema.get("x-go", go))
        self.props, self.values, self.items = {}, None, None
        self.open = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.nullable = bool(schema.get("nullable"))
        self.required: tuple[str, ...] = tuple(schema.get("required", ()))
        self.has_default = "default" in schema
        self.default = schema.get("default")
        self.defaults = False
        """Whether some default lies at or below the properties."""
        self.keys = _list_keys(schema)
        self.checks = tuple(_checks(schema))
        self.fixed = next(
            (
                rule["message"]
                for rule in schema.get("x-kubernetes-validations", ())
                if rule["rule"] == IMMUTABLE
            ),
            "",
        )
        self.guards = bool(self.fixed)
        """Whether some immutable value lies at or below."""

    @property
    def inner(self) -> bool:
        return bool(self.props or self.values or self.items)


def compile_schema(schema: Mapping[str, Any], memo: dict[int, Node], go: str = "") -> Node:
    """The node of a schema; parts that are one object in memory become one node, through `memo` (by
    identity).
    """
    known = memo.get(id(schema))
    if known is not None:
        return known
    node = memo[id(schema)] = Node(schema, go)
    for name, part in schema.get("properties", {}).items():
        node.props[name] = compile_schema(part, memo, name[0].upper() + name[1:])
    if isinstance(schema.get("additionalProperties"), dict):
        node.values = compile_schema(schema["additionalProperties"], memo, go)
    if "items" in schema:
        node.items = compile_schema(schema["items"], memo, go)
    below = [part for part in (*node.props.values(), node.values, node.items) if part is not None]
    node.defaults = any(part.defaults or part.has_default for part in below)
    node.guards = node.guards or any(part.guards for part in below)
    return node


def _list_keys(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The keys of a list that is a map, () of one that is a set, None of any other."""
    kind = schema.get("x-kubernetes-list-type")
    return (
        tuple(schema["x-kubernetes-list-map-keys"])
        if kind == "map"
        else ()
        if kind == "set"
        else None
    )


def prune(node: Node, value: Any, path: str, unknown: list[str], *, typed: bool) -> None:
    """Remove from `value`, in place, unknown fields (their paths go into `unknown`) and nulls where
    the schema has none.

    With `typed` the rest of Go's way with its own types is kept to: a null in a list or map is the
    empty value of the element's type, and an empty list or map is the same as none.
    """
    if type(value) is dict:
        _prune_object(node, value, path, unknown, typed)
    elif type(value) is list and node.items is not None:
        if typed and None in value:
            value[:] = [_empty(node.items) if item is None else item for item in value]
        if node.items.inner:
            for index, item in enumerate(value):
                prune(node.items, item, f"{path}[{index}]", unknown, typed=typed)


def _prune_object(
    node: Node, value: dict[str, Any], path: str, unknown: list[str], typed: bool
) -> None:
    dropped = []
    props, values = node.props, node.values
    for key, item in value.items():
        part = props.get(key, values)
        if part is None:
            if not node.open:
                dropped.append(key)
                unknown.append(f"{path}.{key}" if path else key)
        elif item is None:
            if typed and part is values:
                value[key] = _empty(part)
            elif not part.nullable:
                dropped.append(key)
        elif typed and not item and (part.items or part.values) and type(item) in (list, dict):
            dropped.append(key)
        elif part.props or part.values or part.items:
            prune(part, item, f"{path}.{key}" if path else key, unknown, typed=typed)
        elif type(item) is float and part.type == "integer" and item.is_integer():
            # Go reads 3.0 as the number 3 and writes it so.
            value[key] = int(item)
    for key in dropped:
        del value[key]


def _empty(node: Node) -> Any:
    return {"string": "", "boolean": False, "object": {}, "array": []}.get(node.type, 0)


def fill(node: Node, value: Any) -> None:
    """Put the schema's defaults into `value`, in place, wherever the object that holds them is
    there.
    """
    if type(value) is dict:
        for key, part in node.props.items():
            if part.has_default and key not in value:
                value[key] = copied(part.default)
            if part.defaults and key in value:
                fill(part, value[key])
        if node.values is not None and node.values.defaults:
            for item in value.values():
                fill(node.values, item)
    elif type(value) is list and node.items is not None and node.items.defaults:
        for item in value:
            fill(node.items, item)


def find_errors(node: Node, value: Any, path: str, causes: list[Cause]) -> None:
    """Add a cause for each value of a wrong type or out of its bounds; properties by name, then
    those that are missing.
    """
    if node.accepts is not None and type(value) not in node.accepts:
        if not (value is None and node.nullable):
            causes.append(_wrong_type(node, value, path))
        return
    for check in node.checks:
        cause = check(value, path)
        if cause:
            causes.append(cause)
    if type(value) is dict:
        props, values = node.props, node.values
        for key in sorted(value):
            part = props.get(key, values)
            if part is not None:
                item = value[key]
                if (
                    part.checks
                    or part.props
                    or part.values
                    or part.items
                    or part.accepts is None
                    or type(item) not in part.accepts
                ):
                    find_errors(part, item, f"{path}.{key}" if path else key, causes)
        for key in node.required:
            if key not in value:
                causes.append(required(f"{path}.{key}" if path else key))
    elif type(value) is list:
        if node.items is not None:
            for index, item in enumerate(value):
                find_errors(node.items, item, f"{path}[{index}]", causes)
        if node.keys is not None:
            _find_duplicates(node.keys, value, path, causes)


def _find_duplicates(
    keys: tuple[str, ...], value: list[Any], path: str, causes: list[Cause]
) -> None:
    seen = set()
    for index, item in enumerate(value):
        part = (
            {key: item[key] for key in keys if key in item}
            if keys and isinstance(item, dict)
            else item
        )
        shown = json.dumps(part, separators=(",", ":"), sort_keys=True)
        if shown in seen:
            causes.append(
                Cause("FieldValueDuplicate", f"Duplicate value: {shown}", f"{path}[{index}]")
            )
        seen.add(shown)


def find_changes(node: Node, old: Any, new: Any, path: str, causes: list[Cause]) -> None:
    """Add a cause for each immutable value that is in both and differs. Lists are not looked into:
    they have no such rule.
    """
    if not node.guards or old == new:
        return
    if node.fixed:
        causes.append(wrong(path, json.dumps(new), node.fixed))
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() & new.keys()):
            part = node.props.get(key, node.values)
            if part is not None:
                find_changes(part, old[key], new[key], f"{path}.{key}" if path else key, causes)


def type_name(value: Any) -> str:
    """The JSON type of a value, as Go's validation names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    return {float: "number", str: "string", list: "array"}.get(type(value), "object")


def _wrong_type(node: Node, value: Any, path: str) -> Cause:
    shown = type_name(value)
    message = f'Invalid value: "{shown}": {path} in body must be of type {node.type}: "{shown}"'
    return Cause("FieldValueTypeInvalid", message, path)


def _checks(schema: Mapping[str, Any]) -> list[Check]:
    checks: list[Check] = []
    if "enum" in schema:
        checks.append(_one_of(list(schema["enum"])))
    if "minimum" in schema:
        checks.append(_at_least(schema["minimum"]))
    if "maximum" in schema:
        checks.append(_at_most(schema["maximum"]))
    if "minLength" in schema:
        checks.append(_no_shorter(schema["minLength"]))
    if "maxLength" in schema:
        checks.append(_no_longer(schema["maxLength"]))
    if "maxItems" in schema:
        checks.append(_no_more(schema["maxItems"]))
    if "pattern" in schema:
        checks.append(_matches(schema["pattern"]))
    return checks


def _one_of(allowed: list[Any]) -> Check:
    listed = ", ".join(json.dumps(item) for item in allowed)

    def check(value: Any, path: str) -> Cause | None:
        if value in allowed:
            return None
        return Cause(
            "FieldValueNotSupported",
            f"Unsupported value: {json.dumps(value)}: supported values: {listed}",
            path,
        )

    return check


def _at_least(bound: float) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        return (
            wrong(path, str(value), f"{path} in body should be greater than or equal to {bound}")
            if value < bound
            else None
        )

    return check


def _at_most(bound: float) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        return (
            wrong(path, str(value), f"{path} in body should be less than or equal to {bound}")
            if value > bound
            else None
        )

    return check


def _no_shorter(bound: int) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        text = f"{path} in body should be at least {bound} chars long"
        return wrong(path, json.dumps(value), text) if len(value) < bound else None

    return check


def _no_longer(bound: int) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        return (
            Cause("FieldValueTooLong", f"Too long: may not be more than {bound} bytes", path)
            if len(value) > bound
            else None
        )

    return check


def _no_more(bound: int) -> Check:
    def check(value: Any, path: str) -> Cause | None:
        text = f"Too many: {len(value)}: must have at most {bound} items"
        return Cause("FieldValueTooMany", text, path) if len(value) > bound else None

    return check


def _matches(pattern: str) -> Check:
    search = re.compile(pattern).search

    def check(value: Any, path: str) -> Cause | None:
        if not isinstance(value, str) or search(value):
            return None
        return wrong(path, json.dumps(value), f"{path} in body should match '{pattern}'")

    return check

"""Sets of field paths in their stored form, FieldsV1, and the walks over objects that make them.

A set is a tree of dicts: `f:NAME` is a field, `k:{...}` and `v:...` are list items, an empty dict
or a "." says that the path itself belongs to the set. None is the empty set. The rules are those of
structured-merge-diff (`fieldpath`, `typed`). Trees share parts and are never changed in place.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from localkube.errors import bad_request_error
from localkube.ownership_shapes import Shape

FieldSet = dict[str, Any]


# Algebra


def is_member(node: FieldSet) -> bool:
    return not node or "." in node


def union(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    if left is None or right is None:
        return right if left is None else left
    if not left and not right:
        return left
    merged = dict(left) if left else {".": {}}
    for key, node in right.items() if right else ((".", right),):
        merged[key] = union(merged.get(key), node)
    return merged


def difference(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    """The paths of `left` that are not in `right`."""
    if left is None or right is None:
        return left
    if not left:
        return None if is_member(right) else left
    rest = {}
    for key, node in left.items():
        other = right.get(key)
        if key == ".":
            if not is_member(right):
                rest[key] = node
        elif other is None:
            rest[key] = node
        else:
            remaining = difference(node, other)
            if remaining is not None:
                rest[key] = remaining
    return _normalize(rest)


def intersection(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    if left is None or right is None:
        return None
    common: FieldSet = {".": {}} if is_member(left) and is_member(right) else {}
    for key, node in left.items():
        if key != "." and key in right:
            shared = intersection(node, right[key])
            if shared is not None:
                common[key] = shared
    return _normalize(common)


def _normalize(node: FieldSet) -> FieldSet | None:
    """None for nothing, and the short form of a path without any below it."""
    if not node:
        return None
    return {} if len(node) == 1 and "." in node else node


def format_paths(fields: FieldSet | None, prefix: str = "") -> Iterator[str]:
    """Each path as text, in the order a real server lists them:
    `.spec.containers[name="a"].image`.
    """
    steps = sorted(key for key in fields or () if key != ".")
    for key in steps:
        if is_member((fields or {})[key]):
            yield prefix + _format_step(key)
    for key in steps:
        yield from format_paths((fields or {})[key], prefix + _format_step(key))


def _format_step(key: str) -> str:
    kind, content = key[:2], key[2:]
    if kind == "f:":
        return f".{content}"
    if kind == "k:":
        pairs = msgspec.json.decode(content, type=dict[str, Any])
        return (
            "["
            + ",".join(
                f"{name}={msgspec.json.encode(value).decode()}"
                for name, value in sorted(pairs.items())
            )
            + "]"
        )
    return f"[={content}]" if kind == "v:" else f"[{content}]"


def is_valid_field_set(node: Any, depth: int = 0) -> bool:
    """Whether this is such a tree; for what comes from a client."""
    if not isinstance(node, dict) or depth > 100:
        return False
    return all(
        (key == "." or key[:2] in ("f:", "k:", "v:", "i:")) and is_valid_field_set(child, depth + 1)
        for key, child in node.items()
    )


# Walks


def index_items(items: list[Any], shape: Shape) -> dict[str, Any] | None:
    """The items of a list by their path step; None when the list is one value: atomic, or its items
    cannot be told apart.
    """
    if shape.items is None:
        return None
    found = {}
    for item in items:
        step = _find_item_step(item, shape)
        if step is None or step in found:
            return None
        found[step] = item
    return found


def _find_item_step(item: Any, shape: Shape) -> str | None:
    if not shape.keys:
        return None if isinstance(item, dict | list) else "v:" + msgspec.json.encode(item).decode()
    if not isinstance(item, dict):
        return None
    named = {}
    for key in shape.keys:
        value = item.get(key)
        if value is None:
            value = shape.key_defaults.get(key)
        if value is None:
            return None
        named[key] = value
    return "k:" + msgspec.json.encode(named).decode()


def collect_all_fields(value: Any, shape: Shape) -> FieldSet:
    """Every path in `value`, its own among them: what is owned by who puts it where nothing was."""
    if not value or shape.atomic:
        return {}
    if isinstance(value, dict):
        node: FieldSet = {".": {}}
        known, other = shape.fields, shape.get_child("")
        for key, child in value.items():
            node["f:" + key] = (
                collect_all_fields(child, known.get(key, other))
                if isinstance(child, dict | list)
                else {}
            )
        return node
    if isinstance(value, list) and shape.items is not None:
        found = index_items(value, shape)
        if found is not None:
            return {".": {}} | {
                step: collect_all_fields(item, shape.items) for step, item in found.items()
            }
    return {}


def collect_applied_fields(value: Any, shape: Shape, path: str = "") -> FieldSet | None:
    """The paths that an applied configuration claims: its leaves, the keys of its maps and the
    items of its lists.

    Raises ApiError 400 when the items of a list that is owned item by item cannot be told apart;
    `path` is where the value is.
    """
    if shape.atomic or not isinstance(value, dict | list):
        return {}
    node: FieldSet = {}
    if isinstance(value, dict):
        for key, child in value.items():
            below = (
                {}
                if child == {}
                else collect_applied_fields(child, shape.get_child(key), f"{path}.{key}")
            )
            if shape.is_map_key(key):
                below = union(below, {})
            if below is not None:
                node["f:" + key] = below
        return node or None
    if shape.items is None:
        return {}
    found = index_items(value, shape)
    if found is None:
        told = f"need {' and '.join(shape.keys)}" if shape.keys else "are values"
        raise bad_request_error(
            f"failed to create typed patch object: {path}: items {told}, each combination once"
        )
    for step, item in found.items():
        node[step] = (
            union(collect_applied_fields(item, shape.items, path + _format_step(step)), {}) or {}
        )
    return node or None


def compare_values(old: Any, new: Any, shape: Shape) -> tuple[FieldSet | None, FieldSet | None]:
    """Two values of one place: the paths added or changed, and the paths removed."""
    return (None, None) if old == new else _compare_different_values(old, new, shape)


def _compare_different_values(
    old: Any, new: Any, shape: Shape
) -> tuple[FieldSet | None, FieldSet | None]:
    if not shape.atomic and (old or new):
        if isinstance(new, dict | None) and isinstance(old, dict | None):
            known, other = shape.fields, shape.get_child("")
            return _compare_parts(old or {}, new or {}, "f:", lambda key: known.get(key, other))
        items = shape.items
        if items is not None and isinstance(new, list | None) and isinstance(old, list | None):
            before, after = index_items(old or [], shape), index_items(new or [], shape)
            if before is not None and after is not None:
                return _compare_parts(before, after, "", lambda _: items)
    return collect_all_fields(new, shape), difference(collect_all_fields(old, shape), {})


def _compare_parts(
    old: dict[str, Any], new: dict[str, Any], prefix: str, get_shape: Callable[[str], Shape]
) -> tuple[FieldSet | None, FieldSet | None]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    for key, value in new.items():
        if key not in old:
            changed[prefix + key] = collect_all_fields(value, get_shape(key))
        elif old[key] != value:
            up, down = _compare_different_values(old[key], value, get_shape(key))
            if up is not None:
                changed[prefix + key] = up
            if down is not None:
                removed[prefix + key] = down
    for key in old.keys() - new.keys():
        removed[prefix + key] = collect_all_fields(old[key], get_shape(key))
    return changed or None, removed or None

"""Sets of field paths in their stored form, FieldsV1, and the walks over objects that make them.

A set is a tree of dicts: `f:NAME` is a field, `k:{...}` and `v:...` are list items. An empty dict
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
    """Return the paths of `left` that are not in `right`."""
    if left is None or right is None:
        return left
    if not left:
        return None if is_member(right) else left
    remaining_tree = {}
    for key, node in left.items():
        subtracted = right.get(key)
        if key == ".":
            if not is_member(right):
                remaining_tree[key] = node
        elif subtracted is None:
            remaining_tree[key] = node
        else:
            remaining = difference(node, subtracted)
            if remaining is not None:
                remaining_tree[key] = remaining
    return _normalize(remaining_tree)


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
    """Return the short form of a node.

    It is None for an empty node, and {} for a path without any path below it.
    """
    if not node:
        return None
    return {} if len(node) == 1 and "." in node else node


def format_paths(fields: FieldSet | None, prefix: str = "") -> Iterator[str]:
    """Yield each path as text, as `.spec.containers[name="a"].image`, in the order of a real
    server.
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
    """Return whether a value that a client sent is a well-formed field set."""
    if not isinstance(node, dict) or depth > 100:
        return False
    return all(
        (key == "." or key[:2] in ("f:", "k:", "v:", "i:")) and is_valid_field_set(child, depth + 1)
        for key, child in node.items()
    )


# Walks


def index_items(items: list[Any], shape: Shape) -> dict[str, Any] | None:
    """Return the items of a list by their path step.

    Returns None when the list is one value: atomic, or with items that cannot be told apart.
    """
    if shape.items is None:
        return None
    items_by_step = {}
    for item in items:
        step = _find_item_step(item, shape)
        if step is None or step in items_by_step:
            return None
        items_by_step[step] = item
    return items_by_step


def _find_item_step(item: Any, shape: Shape) -> str | None:
    if not shape.keys:
        return None if isinstance(item, dict | list) else "v:" + msgspec.json.encode(item).decode()
    if not isinstance(item, dict):
        return None
    key_values = {}
    for key in shape.keys:
        value = item.get(key)
        if value is None:
            value = shape.key_defaults.get(key)
        if value is None:
            return None
        key_values[key] = value
    return "k:" + msgspec.json.encode(key_values).decode()


def collect_all_fields(value: Any, shape: Shape) -> FieldSet:
    """Return every path in `value`, its own included.

    These are the fields that a writer owns who puts the value where nothing was.
    """
    if not value or shape.atomic:
        return {}
    if isinstance(value, dict):
        node: FieldSet = {".": {}}
        fields, default_shape = shape.fields, shape.get_child("")
        for key, child in value.items():
            node["f:" + key] = (
                collect_all_fields(child, fields.get(key, default_shape))
                if isinstance(child, dict | list)
                else {}
            )
        return node
    if isinstance(value, list) and shape.items is not None:
        items_by_step = index_items(value, shape)
        if items_by_step is not None:
            return {".": {}} | {
                step: collect_all_fields(item, shape.items) for step, item in items_by_step.items()
            }
    return {}


def collect_applied_fields(value: Any, shape: Shape, path: str = "") -> FieldSet | None:
    """Return the paths that an applied configuration claims.

    These are its leaves, the keys of its maps and the items of its lists. Raises ApiError 400 when
    the items of a list that is owned item by item cannot be told apart; `path` is where the value
    is.
    """
    if shape.atomic or not isinstance(value, dict | list):
        return {}
    node: FieldSet = {}
    if isinstance(value, dict):
        for key, child in value.items():
            child_fields: FieldSet | None = {}
            if child != {}:
                child_fields = collect_applied_fields(child, shape.get_child(key), f"{path}.{key}")
            if shape.is_map_key(key):
                child_fields = union(child_fields, {})
            if child_fields is not None:
                node["f:" + key] = child_fields
        return node or None
    if shape.items is None:
        return {}
    items_by_step = index_items(value, shape)
    if items_by_step is None:
        requirement = f"need {' and '.join(shape.keys)}" if shape.keys else "are values"
        raise bad_request_error(
            f"failed to create typed patch object: {path}: items {requirement}, "
            "each combination once"
        )
    for step, item in items_by_step.items():
        node[step] = (
            union(collect_applied_fields(item, shape.items, path + _format_step(step)), {}) or {}
        )
    return node or None


def compare_values(old: Any, new: Any, shape: Shape) -> tuple[FieldSet | None, FieldSet | None]:
    """Compare two values of one place; return the paths added or changed, and the paths removed."""
    return (None, None) if old == new else _compare_different_values(old, new, shape)


def _compare_different_values(
    old: Any, new: Any, shape: Shape
) -> tuple[FieldSet | None, FieldSet | None]:
    if not shape.atomic and (old or new):
        if isinstance(new, dict | None) and isinstance(old, dict | None):
            fields, default_shape = shape.fields, shape.get_child("")
            return _compare_parts(
                old or {}, new or {}, "f:", lambda key: fields.get(key, default_shape)
            )
        items = shape.items
        if items is not None and isinstance(new, list | None) and isinstance(old, list | None):
            old_items, new_items = index_items(old or [], shape), index_items(new or [], shape)
            if old_items is not None and new_items is not None:
                return _compare_parts(old_items, new_items, "", lambda _: items)
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
            child_changed, child_removed = _compare_different_values(
                old[key], value, get_shape(key)
            )
            if child_changed is not None:
                changed[prefix + key] = child_changed
            if child_removed is not None:
                removed[prefix + key] = child_removed
    for key in old.keys() - new.keys():
        removed[prefix + key] = collect_all_fields(old[key], get_shape(key))
    return changed or None, removed or None

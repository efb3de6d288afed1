"""The three patches without field ownership: merge (RFC 7386), JSON (RFC 6902), strategic merge.
Pure functions.
"""

import re
from collections import deque
from typing import Any

import msgspec

from localkube.errors import ApiError, bad_request_error, unprocessable_error
from localkube.metadata import Object, deep_copy

MAX_OPERATIONS = 10_000
"""Most operations of one JSON patch, as apiserver `handlers/patch.go` bounds them."""

MAX_COPIED_BYTES = 3 * 1024 * 1024
"""Most bytes that the `copy` operations of one JSON patch may add (apiserver
`JSONPatchMaxCopyBytes`).
"""

MAX_DEPTH = 256
"""Most levels of nesting that a JSON patch may build: a deeper value could not be decoded again."""

_MISSING: Any = object()


# Merge patch


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386).

    The result shares nothing with the inputs, which stay as they are.
    """
    return _merge_value(deep_copy(target), deep_copy(patch))


def _merge_value(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(merged.get(key), value)
    return merged


# JSON patch


def apply_json_patch(target: Any, operations: Any) -> Any:
    """Apply a JSON patch (RFC 6902): all of its operations or none.

    The result shares nothing with the inputs. Raises ApiError 400 for what is no list of
    operations, 413 for too many or too much copying, and 422 for an operation that is malformed or
    does not apply, a failed `test` included.
    """
    if not isinstance(operations, list) or not all(
        isinstance(operation, dict) for operation in operations
    ):
        raise bad_request_error(
            "a JSON patch is a list of operations, each an object with op and path"
        )
    if len(operations) > MAX_OPERATIONS:
        raise _too_large_error(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got "
            f"{len(operations)}"
        )
    document = _JsonPatchDocument(deep_copy(target))
    for operation in operations:
        document.apply_operation(operation)
    _check_depth(document.root)
    return document.root


def _too_large_error(why: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise unprocessable_error()


def _is_equal_json(left: Any, right: Any) -> bool:
    """Compare JSON values: numbers by value, and true, unlike in Python, is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _is_equal_json(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_equal_json, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


class _JsonPatchDocument:
    """The value that a JSON patch changes, in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0

    def apply_operation(self, operation: dict[str, Any]) -> None:
        name, path = operation.get("op"), operation.get("path")
        match name:
            case "add":
                self._add_value(_parse_pointer(path), deep_copy(_get_operation_value(operation)))
            case "remove":
                self._remove_value(_parse_pointer(path))
            case "replace":
                self._replace_value(
                    _parse_pointer(path), deep_copy(_get_operation_value(operation))
                )
            case "move":
                self._move_value(_parse_pointer(operation.get("from")), _parse_pointer(path))
            case "copy":
                self._add_value(
                    _parse_pointer(path), self._copy_value(_parse_pointer(operation.get("from")))
                )
            case "test":
                self._test_value(_parse_pointer(path), _get_operation_value(operation))
            case _:
                raise unprocessable_error()

    def _get_value(self, tokens: list[str]) -> Any:
        value = self.root
        for token in tokens:
            value = _get_child(value, token)
        return value

    def _add_value(self, tokens: list[str], value: Any) -> None:
        if not tokens:
            self.root = value
            return
        parent = self._get_value(tokens[:-1])
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
        elif isinstance(parent, list):
            parent.insert(
                len(parent) if tokens[-1] == "-" else _parse_index(tokens[-1], len(parent)), value
            )
        else:
            raise unprocessable_error()

    def _remove_value(self, tokens: list[str]) -> Any:
        if not tokens:
            raise unprocessable_error()
        parent = self._get_value(tokens[:-1])
        value = _get_child(parent, tokens[-1])
        del parent[tokens[-1] if isinstance(parent, dict) else int(tokens[-1])]
        return value

    def _replace_value(self, tokens: list[str], value: Any) -> None:
        """Replace a value; add a missing member.

        The library that a real server uses does so (json-patch 4.12).
        """
        if not tokens:
            self.root = value
            return
        parent = self._get_value(tokens[:-1])
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
        else:
            _get_child(parent, tokens[-1])
            parent[int(tokens[-1])] = value

    def _move_value(self, source: list[str], tokens: list[str]) -> None:
        if source == tokens:
            self._get_value(source)
            return
        if tokens[: len(source)] == source:
            raise unprocessable_error()
        self._add_value(tokens, self._remove_value(source))

    def _copy_value(self, source: list[str]) -> Any:
        value = self._get_value(source)
        _check_depth(value)
        encoded = msgspec.json.encode(value)
        self.copied_bytes += len(encoded)
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise _too_large_error(
                f"the copy operations of the JSON patch add {self.copied_bytes} bytes, at most "
                f"{MAX_COPIED_BYTES} are allowed"
            )
        return msgspec.json.decode(encoded)

    def _test_value(self, tokens: list[str], expected: Any) -> None:
        """Check a value; a missing member equals null, as in a real server's library."""
        parent = self._get_value(tokens[:-1]) if tokens else None
        missing = isinstance(parent, dict) and tokens[-1] not in parent
        if not _is_equal_json(None if missing else self._get_value(tokens), expected):
            raise unprocessable_error()


def _get_operation_value(operation: dict[str, Any]) -> Any:
    value = operation.get("value", _MISSING)
    if value is _MISSING:
        raise unprocessable_error()
    return value


def _parse_pointer(pointer: Any) -> list[str]:
    """Split a JSON pointer (RFC 6901) into its steps. Raises ApiError 422."""
    if (
        not isinstance(pointer, str)
        or (pointer and not pointer.startswith("/"))
        or re.search("~(?![01])", pointer)
    ):
        raise unprocessable_error()
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _parse_index(token: str, end: int) -> int:
    if not re.fullmatch("0|[1-9][0-9]{0,9}", token) or int(token) > end:
        raise unprocessable_error()
    return int(token)


def _get_child(parent: Any, token: str) -> Any:
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, list):
        return parent[_parse_index(token, len(parent) - 1)]
    raise unprocessable_error()


# Strategic merge patch

_MERGE_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The `patchMergeKey` of each list that merges, by field name (k8s.io/api `types.go`).

Every other list is replaced.
"""

_OTHER_MERGE_KEYS = {("Service", "ports"): "port", ("ServiceAccount", "imagePullSecrets"): None}
"""Kinds in which a field of the same name has another key, or none."""

_MERGED_SCALARS = (("metadata", "finalizers"), ("spec", "podCIDRs"))
"""Parent and name of the lists of scalars that merge."""

_ORDER_PREFIX, _DELETE_PREFIX = "$setElementOrder/", "$deleteFromPrimitiveList/"


def apply_strategic_merge_patch(target: Object, patch: Object) -> Object:
    """Apply a strategic merge patch to a built-in kind, with all its directives.

    The result shares nothing with the inputs. Raises ApiError 400 for a patch that is no object or
    uses a directive wrongly, and 422 when `$retainKeys` contradicts the patch.
    """
    if not isinstance(patch, dict):
        raise bad_request_error("a strategic merge patch is an object")
    return _StrategicMerge(str(target.get("kind"))).merge_map(
        deep_copy(target), deep_copy(patch), ""
    )


class _StrategicMerge:
    """Merges in place; `parent` is the name of the field that holds the map."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def merge_map(
        self, target: dict[str, Any], patch: dict[str, Any], parent: str
    ) -> dict[str, Any]:
        match patch.pop("$patch", "merge"):
            case "replace":
                return dict(_strip_directives(patch))
            case "delete":
                return {}
            case "merge":
                pass
            case other:
                raise bad_request_error(f"unknown patch type: {other} in map")
        target = _retain_keys(target, patch)
        orders = {
            key.removeprefix(_ORDER_PREFIX): patch.pop(key)
            for key in list(patch)
            if key.startswith(_ORDER_PREFIX)
        }
        drops = {
            key.removeprefix(_DELETE_PREFIX): patch.pop(key)
            for key in list(patch)
            if key.startswith(_DELETE_PREFIX)
        }
        for field, values in drops.items():
            if isinstance(target.get(field), list):
                deleted = _collect_scalars(values)
                target[field] = [item for item in target[field] if item not in deleted]
        old_lists = {
            field: list(target[field]) for field in orders if isinstance(target.get(field), list)
        }
        for field, value in patch.items():
            self._merge_field(target, field, value, parent)
        for field, order in orders.items():
            if isinstance(target.get(field), list):
                target[field] = _arrange_items(
                    target[field],
                    order,
                    old_lists.get(field, []),
                    self._find_merge_key(parent, field),
                )
        return target

    def _merge_field(self, target: dict[str, Any], field: str, value: Any, parent: str) -> None:
        old = target.get(field)
        if value is None:
            target.pop(field, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            target[field] = self.merge_map(old, value, field)
        elif isinstance(value, list) and isinstance(old, list):
            target[field] = self._merge_list(old, value, parent, field)
        elif not (isinstance(value, dict) and value.get("$patch") == "delete"):
            target[field] = _strip_directives(value)

    def _find_merge_key(self, parent: str, field: str) -> str | None:
        """Return the merge key of a list.

        It is "" for a merged list of scalars, and None for a list that is replaced.
        """
        if (parent, field) in _MERGED_SCALARS:
            return ""
        return _OTHER_MERGE_KEYS.get((self.kind, field), _MERGE_KEYS.get(field))

    def _merge_list(self, old: list[Any], patch: list[Any], parent: str, field: str) -> list[Any]:
        key = self._find_merge_key(parent, field)
        if key is None:
            return list(_strip_directives(patch))
        if key == "":
            return _arrange_items(
                list(_collect_scalars(old) | _collect_scalars(patch)), patch, old, key
            )
        if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
            return [_strip_directives(item) for item in patch if "$patch" not in item]
        items = {_get_merge_key_value(item, key): item for item in old}
        order = []
        for change in patch:
            name = _get_merge_key_value(change, key)
            if change.get("$patch") == "delete":
                items.pop(name, None)
                continue
            order.append(change)
            if name in items:
                items[name] = self.merge_map(items[name], change, field)
            else:
                items[name] = _strip_directives(change)
        return _arrange_items(list(items.values()), order, old, key)


def _retain_keys(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the target that `$retainKeys` leaves.

    A union such as a volume changes its kind with it.
    """
    retained = patch.pop("$retainKeys", None)
    if retained is None:
        return target
    retained = _collect_scalars(retained)
    if any(field not in retained for field in patch if not field.startswith("$")):
        raise unprocessable_error()
    return {field: value for field, value in target.items() if field in retained}


def _collect_scalars(values: Any) -> dict[Any, None]:
    """Return the values as an ordered set. Raises ApiError 400 when one is no scalar."""
    if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
        raise bad_request_error(
            "a list of scalars is expected where the patch merges or orders one"
        )
    return dict.fromkeys(values)


def _get_merge_key_value(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        raise bad_request_error(
            f"the patch has a list item that is no object where items are merged by {key}"
        )
    if not isinstance(item.get(key), str | int):
        raise bad_request_error(
            f"map: {msgspec.json.encode(item).decode()[:256]} does not contain declared merge "
            f"key: {key}"
        )
    return item[key]


def _arrange_items(items: list[Any], order: Any, before: list[Any], key: str | None) -> list[Any]:
    """Return the items in the order of `order`.

    The others stay in the order of `before`, each ahead of the first that followed it there.
    """
    if not isinstance(order, list) or key is None:
        raise bad_request_error("$setElementOrder gives the order of a list that merges")
    items_by_name = dict(zip(_collect_identities(items, key), items, strict=True))
    old_positions = {name: place for place, name in enumerate(_collect_identities(before, key))}
    ordered_names = [
        name for name in dict.fromkeys(_collect_identities(order, key)) if name in items_by_name
    ]
    ordered = set(ordered_names)
    other_names = deque(name for name in items_by_name if name not in ordered)
    arranged_items = []
    for name in ordered_names:
        while other_names and old_positions.get(other_names[0], len(before)) < old_positions.get(
            name, -1
        ):
            arranged_items.append(items_by_name[other_names.popleft()])
        arranged_items.append(items_by_name[name])
    return arranged_items + [items_by_name[name] for name in other_names]


def _collect_identities(items: list[Any], key: str) -> list[Any]:
    """Return what tells the items of a merged list apart: their merge key, or themselves."""
    if key:
        return [_get_merge_key_value(item, key) for item in items]
    return list(_collect_scalars(items))


def _strip_directives(value: Any) -> Any:
    """Return what a patch puts where nothing was: the value without directives and nulls."""
    if isinstance(value, dict):
        return {
            field: _strip_directives(item)
            for field, item in value.items()
            if item is not None and not _is_directive(field)
        }
    if isinstance(value, list):
        return [
            _strip_directives(item)
            for item in value
            if not (isinstance(item, dict) and item.get("$patch") in ("delete", "replace"))
        ]
    return value


def _is_directive(field: str) -> bool:
    return field in ("$patch", "$retainKeys") or field.startswith((_ORDER_PREFIX, _DELETE_PREFIX))

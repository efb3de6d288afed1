"""The three patches that need no memory of who wrote what: merge (RFC 7386), JSON (RFC 6902) and
strategic merge. Pure functions.
"""

import re
from collections import deque
from typing import Any

import msgspec

from localkube.errors import ApiError, bad_request, unprocessable
from localkube.metadata import Object, copied

MAX_OPERATIONS = 10_000
"""Operations of one JSON patch, as apiserver `handlers/patch.go` bounds them."""

MAX_COPIED = 3 * 1024 * 1024
"""Bytes that the `copy` operations of one JSON patch may add (apiserver `JSONPatchMaxCopyBytes`).
"""

MAX_DEPTH = 256
"""Levels of nesting that a JSON patch may build: what is deeper could not be read again."""

_MISSING: Any = object()


# Merge patch


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386. The result shares nothing with the inputs, which stay as they are."""
    return _merge(copied(target), copied(patch))


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


# JSON patch


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902: all operations or none. The result shares nothing with the inputs.

    Raises ApiError 400 for what is no list of operations, 413 for too many or too much copying, and
    422 for an operation that is malformed or does not apply, a failed `test` included.
    """
    if not isinstance(operations, list) or not all(
        isinstance(operation, dict) for operation in operations
    ):
        raise bad_request("a JSON patch is a list of operations, each an object with op and path")
    if len(operations) > MAX_OPERATIONS:
        raise _too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got "
            f"{len(operations)}"
        )
    document = _Document(copied(target))
    for operation in operations:
        document.run(operation)
    _check_depth(document.root)
    return document.root


def _too_large(why: str) -> ApiError:
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
    raise unprocessable()


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON values: numbers by value, and unlike in Python true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _same(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


class _Document:
    """The value that a JSON patch works on, in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied = 0

    def run(self, operation: dict[str, Any]) -> None:
        name, path = operation.get("op"), operation.get("path")
        match name:
            case "add":
                self._add(_tokens(path), copied(_value(operation)))
            case "remove":
                self._take(_tokens(path))
            case "replace":
                self._replace(_tokens(path), copied(_value(operation)))
            case "move":
                self._move(_tokens(operation.get("from")), _tokens(path))
            case "copy":
                self._add(_tokens(path), self._copy(_tokens(operation.get("from"))))
            case "test":
                self._test(_tokens(path), _value(operation))
            case _:
                raise unprocessable()

    def _get(self, tokens: list[str]) -> Any:
        value = self.root
        for token in tokens:
            value = _child(value, token)
        return value

    def _add(self, tokens: list[str], value: Any) -> None:
        if not tokens:
            self.root = value
            return
        parent = self._get(tokens[:-1])
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
        elif isinstance(parent, list):
            parent.insert(
                len(parent) if tokens[-1] == "-" else _index(tokens[-1], len(parent)), value
            )
        else:
            raise unprocessable()

    def _take(self, tokens: list[str]) -> Any:
        if not tokens:
            raise unprocessable()
        parent = self._get(tokens[:-1])
        value = _child(parent, tokens[-1])
        del parent[tokens[-1] if isinstance(parent, dict) else int(tokens[-1])]
        return value

    def _replace(self, tokens: list[str], value: Any) -> None:
        """A missing member is added, as in the library that a real server uses (json-patch
        4.12).
        """
        if not tokens:
            self.root = value
            return
        parent = self._get(tokens[:-1])
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
        else:
            _child(parent, tokens[-1])
            parent[int(tokens[-1])] = value

    def _move(self, source: list[str], tokens: list[str]) -> None:
        if source == tokens:
            self._get(source)
            return
        if tokens[: len(source)] == source:
            raise unprocessable()
        self._add(tokens, self._take(source))

    def _copy(self, source: list[str]) -> Any:
        value = self._get(source)
        _check_depth(value)
        encoded = msgspec.json.encode(value)
        self.copied += len(encoded)
        if self.copied > MAX_COPIED:
            raise _too_large(
                f"the copy operations of the JSON patch add {self.copied} bytes, at most "
                f"{MAX_COPIED} are allowed"
            )
        return msgspec.json.decode(encoded)

    def _test(self, tokens: list[str], wanted: Any) -> None:
        """A missing member equals null, as in the library that a real server uses."""
        parent = self._get(tokens[:-1]) if tokens else None
        missing = isinstance(parent, dict) and tokens[-1] not in parent
        if not _same(None if missing else self._get(tokens), wanted):
            raise unprocessable()


def _value(operation: dict[str, Any]) -> Any:
    value = operation.get("value", _MISSING)
    if value is _MISSING:
        raise unprocessable()
    return value


def _tokens(pointer: Any) -> list[str]:
    """The steps of a JSON pointer (RFC 6901)."""
    if (
        not isinstance(pointer, str)
        or (pointer and not pointer.startswith("/"))
        or re.search("~(?![01])", pointer)
    ):
        raise unprocessable()
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _index(token: str, end: int) -> int:
    if not re.fullmatch("0|[1-9][0-9]{0,9}", token) or int(token) > end:
        raise unprocessable()
    return int(token)


def _child(parent: Any, token: str) -> Any:
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, list):
        return parent[_index(token, len(parent) - 1)]
    raise unprocessable()


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
"""The `patchMergeKey` of each list that merges, by field name; every other list is replaced
(k8s.io/api `types.go`).
"""

_OTHER_MERGE_KEYS = {("Service", "ports"): "port", ("ServiceAccount", "imagePullSecrets"): None}
"""Where a field of the same name in another kind has another key, or none."""

_MERGED_SCALARS = (("metadata", "finalizers"), ("spec", "podCIDRs"))
"""Parent and name of the lists of scalars that merge."""

_ORDER, _DROP = "$setElementOrder/", "$deleteFromPrimitiveList/"


def strategic(target: Object, patch: Object) -> Object:
    """A strategic merge patch of a built-in kind, with all its directives. The result shares
    nothing with the inputs.

    Raises ApiError 400 for a patch that is no object or uses a directive wrongly, and 422 when
    `$retainKeys` contradicts the patch.
    """
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    return _Strategic(str(target.get("kind"))).merge_map(copied(target), copied(patch), "")


class _Strategic:
    """Merges in place; `parent` is the name of the field that holds the map."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def merge_map(
        self, target: dict[str, Any], patch: dict[str, Any], parent: str
    ) -> dict[str, Any]:
        match patch.pop("$patch", "merge"):
            case "replace":
                return dict(_without_directives(patch))
            case "delete":
                return {}
            case "merge":
                pass
            case other:
                raise bad_request(f"unknown patch type: {other} in map")
        target = _retain(target, patch)
        orders = {
            key.removeprefix(_ORDER): patch.pop(key)
            for key in list(patch)
            if key.startswith(_ORDER)
        }
        drops = {
            key.removeprefix(_DROP): patch.pop(key) for key in list(patch) if key.startswith(_DROP)
        }
        for field, values in drops.items():
            if isinstance(target.get(field), list):
                gone = _scalars(values)
                target[field] = [item for item in target[field] if item not in gone]
        before = {
            field: list(target[field]) for field in orders if isinstance(target.get(field), list)
        }
        for field, value in patch.items():
            self._merge_field(target, field, value, parent)
        for field, order in orders.items():
            if isinstance(target.get(field), list):
                target[field] = _arranged(
                    target[field], order, before.get(field, []), self._rule(parent, field)
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
            target[field] = _without_directives(value)

    def _rule(self, parent: str, field: str) -> str | None:
        """The merge key of a list, "" for a merged list of scalars, None for one that is
        replaced.
        """
        if (parent, field) in _MERGED_SCALARS:
            return ""
        return _OTHER_MERGE_KEYS.get((self.kind, field), _MERGE_KEYS.get(field))

    def _merge_list(self, old: list[Any], patch: list[Any], parent: str, field: str) -> list[Any]:
        key = self._rule(parent, field)
        if key is None:
            return list(_without_directives(patch))
        if key == "":
            return _arranged(list(_scalars(old) | _scalars(patch)), patch, old, key)
        if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
            return [_without_directives(item) for item in patch if "$patch" not in item]
        items = {_identity(item, key): item for item in old}
        order = []
        for change in patch:
            name = _identity(change, key)
            if change.get("$patch") == "delete":
                items.pop(name, None)
                continue
            order.append(change)
            items[name] = (
                self.merge_map(items[name], change, field)
                if name in items
                else _without_directives(change)
            )
        return _arranged(list(items.values()), order, old, key)


def _retain(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """What `$retainKeys` leaves of the target: a union such as a volume changes its kind with
    it.
    """
    kept = patch.pop("$retainKeys", None)
    if kept is None:
        return target
    kept = _scalars(kept)
    if any(field not in kept for field in patch if not field.startswith("$")):
        raise unprocessable()
    return {field: value for field, value in target.items() if field in kept}


def _scalars(values: Any) -> dict[Any, None]:
    """The values as an ordered set."""
    if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
        raise bad_request("a list of scalars is expected where the patch merges or orders one")
    return dict.fromkeys(values)


def _identity(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        raise bad_request(
            f"the patch has a list item that is no object where items are merged by {key}"
        )
    if not isinstance(item.get(key), str | int):
        raise bad_request(
            f"map: {msgspec.json.encode(item).decode()[:256]} does not contain declared merge "
            f"key: {key}"
        )
    return item[key]


def _arranged(items: list[Any], wanted: Any, before: list[Any], key: str | None) -> list[Any]:
    """The items of `wanted` in its order; the others, in the order of `before`, each ahead of the
    first that followed it there.
    """
    if not isinstance(wanted, list) or key is None:
        raise bad_request("$setElementOrder gives the order of a list that merges")
    here = dict(zip(_names(items, key), items, strict=True))
    places = {name: place for place, name in enumerate(_names(before, key))}
    asked = [name for name in dict.fromkeys(_names(wanted, key)) if name in here]
    first = set(asked)
    others = deque(name for name in here if name not in first)
    arranged = []
    for name in asked:
        while others and places.get(others[0], len(before)) < places.get(name, -1):
            arranged.append(here[others.popleft()])
        arranged.append(here[name])
    return arranged + [here[name] for name in others]


def _names(items: list[Any], key: str) -> list[Any]:
    """What tells the items of a merged list apart: their merge key, or themselves."""
    return [_identity(item, key) for item in items] if key else list(_scalars(items))


def _without_directives(value: Any) -> Any:
    """What a patch puts where nothing was: neither directives nor nulls."""
    if isinstance(value, dict):
        return {
            field: _without_directives(item)
            for field, item in value.items()
            if item is not None and not _is_directive(field)
        }
    if isinstance(value, list):
        return [
            _without_directives(item)
            for item in value
            if not (isinstance(item, dict) and item.get("$patch") in ("delete", "replace"))
        ]
    return value


def _is_directive(field: str) -> bool:
    return field in ("$patch", "$retainKeys") or field.startswith((_ORDER, _DROP))

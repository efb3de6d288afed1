"""Strategic merge patch: lists of built-in kinds merge by the keys of their items. Pure."""

from collections import deque
from typing import Any

import msgspec

from localkube.errors import bad_request_error, unprocessable_error
from localkube.metadata import Object, deep_copy

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

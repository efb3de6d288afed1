"""Field ownership: `managedFields` as a real server keeps it, and server-side apply. Pure
functions.

The rules are those of apimachinery `managedfields` and structured-merge-diff `merge/update.go`.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from localkube import clock, errors
from localkube.errors import MAX_CAUSES, ApiError
from localkube.field_sets import (
    FieldSet,
    collect_applied_fields,
    compare_values,
    difference,
    format_paths,
    index_items,
    intersection,
    is_member,
    union,
)
from localkube.managed_fields import (
    ManagedFieldsEntry,
    decode_entries,
    merge_oldest_updaters,
    write_entries,
)
from localkube.metadata import Object, annotations_of
from localkube.ownership_shapes import JsonSchema, Shape, get_shape, get_zero_value

BEFORE_FIRST_APPLY_MANAGER = "before-first-apply"
LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

_UNTRACKED_METADATA = frozenset(
    (
        "name",
        "namespace",
        "uid",
        "selfLink",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "clusterName",
        "managedFields",
    )
)
_IDENTITY_METADATA = ("name", "namespace", "uid", "resourceVersion")
"""Untracked metadata that an applied configuration may carry: the name, and the preconditions."""


def track_ownership(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    subresource: str = "",
    api_version: str,
    schema: JsonSchema | None,
) -> None:
    """Set `new.metadata.managedFields` after `manager` wrote `new` over `old`.

    `old` is None when the object is created. Changed fields become the manager's and nobody else's;
    removed fields belong to nobody. Entries that the client sent along replace the stored ones,
    unless it wrote a subresource or one of them is malformed; a single empty entry clears all
    entries. An object without entries stays without them until something is applied to it. `new`
    must be complete, its defaults included.
    """
    entries = _choose_base_entries(old, new, subresource)
    if not entries and old is not None:
        new["metadata"].pop("managedFields", None)
        return
    blank = get_zero_value(new)
    old_part = _select_tracked_part(old or {}, subresource, blank)
    new_part = _select_tracked_part(new, subresource, blank)
    changed, removed = compare_values(old_part, new_part, get_shape(schema))
    lost_fields = union(changed, removed)
    if lost_fields:
        entries = [
            replace(entry, fields=difference(entry.fields, lost_fields)) for entry in entries
        ]
    if changed:
        own_entry = ManagedFieldsEntry(
            manager, "Update", api_version, subresource, clock.format_time(), changed
        )
        earlier_entry = next(
            (entry for entry in entries if entry.identity == own_entry.identity), None
        )
        entries = [entry for entry in entries if entry is not earlier_entry]
        if earlier_entry:
            own_entry = replace(own_entry, fields=union(earlier_entry.fields, changed))
        entries.append(own_entry)
    write_entries(
        new, merge_oldest_updaters([entry for entry in entries if entry.fields is not None])
    )


def apply_configuration(
    live: Object | None,
    config: Object,
    *,
    manager: str,
    force: bool,
    subresource: str = "",
    api_version: str,
    schema: JsonSchema | None,
) -> Object:
    """Return the object, with managedFields, that a server-side apply of `config` makes of `live`.

    Fields that only this manager applied before and that `config` no longer has are removed. The
    result equals `live` when nothing changes. `live` and `config` are not changed and share nothing
    with the result. Raises ApiError 400 for a configuration with managedFields or with list items
    that cannot be told apart, 409 when others own what would change and `force` is not set, and 422
    without a manager.
    """
    _check_configuration(config, manager)
    blank, shape = get_zero_value(config), get_shape(schema)
    config_part = _select_tracked_part(config, subresource, {})
    if not config_part.get("metadata"):
        config_part.pop("metadata", None)
    live_part = _select_tracked_part(live or {}, subresource, {})
    entries = decode_entries(live["metadata"].get("managedFields")) if live else []
    if live and not entries:
        entries = [_build_before_first_apply_entry(live, api_version, blank, shape)]
    own_entry = ManagedFieldsEntry(
        manager,
        "Apply",
        api_version,
        subresource,
        clock.format_time(),
        collect_applied_fields(config_part, shape),
    )
    earlier_entry = next((entry for entry in entries if entry.identity == own_entry.identity), None)
    other_entries = [entry for entry in entries if entry is not earlier_entry]
    owned_fields = union(own_entry.fields, {"f:metadata": {}})
    for entry in other_entries:
        owned_fields = union(owned_fields, entry.fields)
    result = _prune_unowned(
        _merge_value(live_part, config_part, shape),
        earlier_entry.fields if earlier_entry else None,
        owned_fields,
        shape,
    )
    changed, removed = compare_values(
        _fill_missing_fields(blank, live_part), _fill_missing_fields(blank, result), shape
    )
    conflicts = [
        replace(entry, fields=intersection(entry.fields, changed)) for entry in other_entries
    ]
    if not force:
        _check_conflicts(
            [entry for entry in conflicts if entry.fields is not None], manager, live, shape
        )
    lost_fields = union(changed, removed)
    other_entries = [
        replace(entry, fields=difference(entry.fields, lost_fields)) for entry in other_entries
    ]
    if (
        earlier_entry
        and not lost_fields
        and earlier_entry.fields == own_entry.fields
        and earlier_entry.api_version == api_version
    ):
        own_entry = earlier_entry
    obj = _assemble_object(live, config, result, manager, subresource)
    write_entries(
        obj,
        merge_oldest_updaters(
            [entry for entry in (*other_entries, own_entry) if entry.fields is not None]
        ),
    )
    return obj


def _check_configuration(config: Object, manager: str) -> None:
    if not manager:
        cause = errors.required_cause("fieldManager", "is required for apply patch")
        raise errors.invalid_error("meta.k8s.io", "PatchOptions", "", [cause])
    metadata = config.get("metadata")
    if not isinstance(metadata, dict | None):
        raise errors.bad_request_error("metadata of the applied configuration is no object")
    if (metadata or {}).get("managedFields") is not None:
        raise errors.bad_request_error("metadata.managedFields must be nil")


# What is tracked


def _select_tracked_part(obj: Object, subresource: str, blank: Object) -> Object:
    """Return the part of an object whose ownership is tracked for writes of this subresource.

    Fields that Go always writes are added from `blank`.
    """
    if subresource == "status":
        status = {"status": obj["status"]} if "status" in obj else {}
        return _fill_missing_fields({key: blank[key] for key in blank if key == "status"}, status)
    part = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "status")}
    metadata = obj.get("metadata") or {}
    part["metadata"] = {
        key: value for key, value in metadata.items() if key not in _UNTRACKED_METADATA
    }
    return _fill_missing_fields(
        {key: value for key, value in blank.items() if key != "status"}, part
    )


def _fill_missing_fields(blank: Object, obj: Object) -> Object:
    """Return `obj` with every field of `blank` that it lacks."""
    if not blank:
        return obj
    filled = blank | obj
    for key, value in blank.items():
        if value and isinstance(value, dict) and isinstance(filled[key], dict):
            filled[key] = _fill_missing_fields(value, filled[key])
    return filled


# Entries


def _choose_base_entries(
    old: Object | None, new: Object, subresource: str
) -> list[ManagedFieldsEntry]:
    stored = old["metadata"].get("managedFields") if old else None
    sent = new["metadata"].get("managedFields")
    if sent == [{}] and not subresource:
        return []
    if sent and sent != stored and not subresource:
        return decode_entries(sent, is_trusted=False) or decode_entries(stored)
    return decode_entries(stored)


def _build_before_first_apply_entry(
    live: Object, api_version: str, blank: Object, shape: Shape
) -> ManagedFieldsEntry:
    """Build the entry that owns all fields of an object without entries.

    It is made when something is applied to the object for the first time.
    """
    changed, _ = compare_values(
        _fill_missing_fields(blank, {"metadata": {}}), _select_tracked_part(live, "", blank), shape
    )
    return ManagedFieldsEntry(
        BEFORE_FIRST_APPLY_MANAGER, "Update", api_version, "", clock.format_time(), changed
    )


# Merging


def _merge_value(live: Any, config: Any, shape: Shape) -> Any:
    """Return `live` merged with `config`; a null in `config` removes a field."""
    if shape.atomic or config is None:
        return config
    if isinstance(config, dict):
        merged = dict(live) if isinstance(live, dict) else {}
        for key, value in config.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = _merge_value(merged.get(key), value, shape.get_child(key))
        return merged
    if isinstance(config, list) and isinstance(live, list) and shape.items is not None:
        live_items, config_items = index_items(live, shape), index_items(config, shape)
        if live_items is not None and config_items is not None:
            return _merge_items(live_items, config_items, shape.items)
    return config


def _merge_items(live: dict[str, Any], config: dict[str, Any], shape: Shape) -> list[Any]:
    """Merge the items of two lists.

    Applied items come in their own order; live items of others stay ahead of the items that
    followed them.
    """
    merged: list[Any] = []
    live_steps, config_steps = deque(live), deque(config)
    shared_steps = deque(step for step in config if step in live)
    while live_steps or config_steps:
        step = live_steps[0] if live_steps else None
        if step is not None and step not in config:
            merged.append(live[live_steps.popleft()])
        elif step is not None and (not shared_steps or step != shared_steps[0]):
            live_steps.popleft()
        else:
            step = config_steps.popleft()
            merged.append(_merge_value(live.get(step), config[step], shape))
            if shared_steps and step == shared_steps[0]:
                shared_steps.popleft()
    return merged


def _prune_unowned(value: Any, last: FieldSet | None, owned: FieldSet | None, shape: Shape) -> Any:
    """Return `value` without what the manager applied last time and nobody owns now.

    A field of a record counts together with what is below it.
    """
    if not last or shape.atomic:
        return value
    if isinstance(value, dict):
        remaining = {}
        for key, child in value.items():
            last_applied, still_owned = last.get("f:" + key), (owned or {}).get("f:" + key)
            is_map_key = shape.is_map_key(key)
            if (
                last_applied is None
                or (is_map_key and not is_member(last_applied))
                or (still_owned is not None and (not is_map_key or is_member(still_owned)))
            ):
                remaining[key] = _prune_unowned(
                    child, last_applied, still_owned, shape.get_child(key)
                )
        return remaining
    items_by_step = index_items(value, shape) if isinstance(value, list) else None
    if items_by_step is None or shape.items is None:
        return value
    items = []
    for step, item in items_by_step.items():
        last_applied, still_owned = last.get(step), (owned or {}).get(step)
        if (
            last_applied is None
            or not is_member(last_applied)
            or (still_owned is not None and is_member(still_owned))
        ):
            items.append(_prune_unowned(item, last_applied, still_owned, shape.items))
    return items


def _assemble_object(
    live: Object | None, config: Object, result: Object, manager: str, subresource: str
) -> Object:
    """Return the whole object that results from an apply.

    Untracked parts come from `live`, kind and place from `config`. The result shares nothing with
    either.
    """
    live_object, config_metadata = live or {}, config.get("metadata") or {}
    is_status = subresource == "status"
    obj: Object = {"apiVersion": config.get("apiVersion"), "kind": config.get("kind")}
    obj |= {
        key: value
        for key, value in live_object.items()
        if (key == "status") is not is_status and (is_status or key == "status")
    } | result
    metadata = {
        key: value
        for key, value in (live_object.get("metadata") or {}).items()
        if is_status or key in _UNTRACKED_METADATA
    }
    metadata |= {
        key: config_metadata[key]
        for key in _IDENTITY_METADATA
        if config_metadata.get(key) is not None
    } | result.get("metadata", {})
    if manager == "kubectl" and LAST_APPLIED_ANNOTATION in (metadata.get("annotations") or {}):
        note = msgspec.json.encode(config, order="sorted").decode() + "\n"
        metadata["annotations"] = metadata["annotations"] | {LAST_APPLIED_ANNOTATION: note}
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj | {"metadata": metadata}))
    return copied


# Conflicts


def _check_conflicts(
    conflicts: Sequence[ManagedFieldsEntry], manager: str, live: Object | None, shape: Shape
) -> None:
    """Raise ApiError 409 when there are conflicts, worded as recorded in
    `errors/409-apply-conflict`. Of more than MAX_CAUSES the first are named.
    """
    if manager == "kubectl" and live and conflicts:
        allowed = _find_last_applied_fields(live, shape)
        conflicts = [
            replace(entry, fields=difference(entry.fields, allowed)) for entry in conflicts
        ]
    disputed = [
        (entry, path)
        for entry in sorted(conflicts, key=lambda entry: entry.identity)
        for path in format_paths(entry.fields)
    ]
    if not disputed:
        return
    named = disputed[:MAX_CAUSES]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {entry.title}", "field": path}
        for entry, path in named
    ]
    if len(disputed) == 1:
        message = (
            f"Apply failed with 1 conflict: conflict with {disputed[0][0].title}: {disputed[0][1]}"
        )
    else:
        lines = []
        title = ""
        for entry, path in named:
            if entry.title != title:
                title = entry.title
                lines.append(f"conflicts with {title}:")
            lines.append(f"- {path}")
        if len(disputed) > MAX_CAUSES:
            lines.append(f"and more: the first {MAX_CAUSES} are shown")
        message = f"Apply failed with {len(disputed)} conflicts: " + "\n".join(lines)
    raise ApiError(409, "Conflict", message, {"causes": causes})


def _find_last_applied_fields(live: Object, shape: Shape) -> FieldSet | None:
    """Return what `kubectl apply` without --server-side applied and nobody changed since.

    kubectl may take these fields over without a conflict. Returns None when the annotation cannot
    be read.
    """
    try:
        last = msgspec.json.decode(
            annotations_of(live).get(LAST_APPLIED_ANNOTATION, "{}"), type=dict[str, Any]
        )
        last_part = _select_tracked_part(last, "", {})
    except (msgspec.DecodeError, AttributeError):
        return None
    changed, removed = compare_values(last_part, _select_tracked_part(live, "", {}), shape)
    return difference(difference(collect_applied_fields(last_part, shape), changed), removed)

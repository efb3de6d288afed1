"""Who owns which field: `managedFields` as a real server keeps it, and server-side apply, which
works by it. Pure functions.

The rules are those of apimachinery `managedfields` and structured-merge-diff `merge/update.go`.
"""

import operator
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from localkube import clock, errors
from localkube.errors import ApiError
from localkube.field_sets import (
    FieldSet,
    collect_applied_fields,
    compare_values,
    difference,
    format_paths,
    index_items,
    intersection,
    is_member,
    is_valid_field_set,
    union,
)
from localkube.metadata import Object, annotations_of
from localkube.ownership_shapes import JsonSchema, Shape, get_shape, get_zero_value

MAX_UPDATERS = 10
"""Entries of the operation Update that an object keeps; older ones are merged (apiserver
`DefaultMaxUpdateManagers`).
"""

ANCIENT_MANAGER = "ancient-changes"
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
"""Untracked metadata that an applied configuration may carry: the precondition and the place."""


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """One entry of managedFields. `fields` is None while a change leaves nothing to it."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: FieldSet | None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Who this is: an applier keeps its entry when it changes to another API version."""
        return (
            self.manager,
            self.operation,
            "" if self.operation == "Apply" else self.api_version,
            self.subresource,
        )

    @property
    def title(self) -> str:
        """How a conflict names the manager."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text

    def encode(self) -> Object:
        obj: Object = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
        }
        if self.time:
            obj["time"] = self.time
        obj |= {"fieldsType": "FieldsV1", "fieldsV1": self.fields or {}}
        if self.subresource:
            obj["subresource"] = self.subresource
        return obj


def track_ownership(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    subresource: str = "",
    api_version: str,
    schema: JsonSchema | None,
) -> None:
    """Set `new.metadata.managedFields` to what it is after `manager` wrote `new` over `old` (None:
    created it).

    What changed becomes the manager's and nobody else's; what went is nobody's. Entries that the
    client sent along replace the stored ones, unless it wrote a subresource or they make no sense;
    a single empty entry forgets all. An object that nobody is known to own stays so until something
    is applied to it. `new` must be complete, its defaults included.
    """
    entries = _choose_base_entries(old, new, subresource)
    if not entries and old is not None:
        new["metadata"].pop("managedFields", None)
        return
    blank = get_zero_value(new)
    before = _select_tracked_part(old or {}, subresource, blank)
    after = _select_tracked_part(new, subresource, blank)
    changed, removed = compare_values(before, after, get_shape(schema))
    gone = union(changed, removed)
    entries = (
        [replace(entry, fields=difference(entry.fields, gone)) for entry in entries]
        if gone
        else entries
    )
    if changed:
        mine = ManagedFieldsEntry(
            manager, "Update", api_version, subresource, clock.format_time(), changed
        )
        earlier = next((entry for entry in entries if entry.identity == mine.identity), None)
        entries = [entry for entry in entries if entry is not earlier]
        entries.append(replace(mine, fields=union(earlier.fields, changed)) if earlier else mine)
    _write_entries(
        new, _merge_oldest_updaters([entry for entry in entries if entry.fields is not None])
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
    """Server-side apply: a new object, with its managedFields, in which `manager` has what `config`
    says.

    Fields that only this manager applied before and `config` no longer has are removed. Without
    anything to change the result equals `live`. `live` and `config` stay as they are and share
    nothing with the result. Raises ApiError 400 for a configuration with managedFields or list
    items that cannot be told apart, 409 when others own what would change and `force` is not set,
    and 422 without a manager.
    """
    _check_configuration(config, manager)
    blank, shape = get_zero_value(config), get_shape(schema)
    wanted = _select_tracked_part(config, subresource, {})
    if not wanted.get("metadata"):
        wanted.pop("metadata", None)
    have = _select_tracked_part(live or {}, subresource, {})
    entries = _decode_entries(live["metadata"].get("managedFields")) if live else []
    if live and not entries:
        entries = [_build_before_first_apply_entry(live, api_version, blank, shape)]
    mine = ManagedFieldsEntry(
        manager,
        "Apply",
        api_version,
        subresource,
        clock.format_time(),
        collect_applied_fields(wanted, shape),
    )
    earlier = next((entry for entry in entries if entry.identity == mine.identity), None)
    others = [entry for entry in entries if entry is not earlier]
    owned = union(mine.fields, {"f:metadata": {}})
    for entry in others:
        owned = union(owned, entry.fields)
    result = _prune_unowned(
        _merge_value(have, wanted, shape), earlier.fields if earlier else None, owned, shape
    )
    changed, removed = compare_values(
        _fill_missing_fields(blank, have), _fill_missing_fields(blank, result), shape
    )
    conflicts = [replace(entry, fields=intersection(entry.fields, changed)) for entry in others]
    if not force:
        _check_conflicts(
            [entry for entry in conflicts if entry.fields is not None], manager, live, shape
        )
    gone = union(changed, removed)
    others = [replace(entry, fields=difference(entry.fields, gone)) for entry in others]
    if (
        earlier
        and not gone
        and earlier.fields == mine.fields
        and earlier.api_version == api_version
    ):
        mine = earlier
    obj = _assemble_object(live, config, result, manager, subresource)
    _write_entries(
        obj,
        _merge_oldest_updaters([entry for entry in (*others, mine) if entry.fields is not None]),
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
    """The part of an object whose ownership is kept for writes of this subresource, filled up with
    what Go always writes.
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
    """`obj` with every field of `blank` that it lacks."""
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
        return _decode_entries(sent, is_trusted=False) or _decode_entries(stored)
    return _decode_entries(stored)


def _decode_entries(encoded: Any, *, is_trusted: bool = True) -> list[ManagedFieldsEntry]:
    """The entries of an object; none at all when one of them is malformed, as on a real server."""
    entries = []
    for item in encoded if isinstance(encoded, list) else ():
        if not is_trusted and not _is_valid_entry(item):
            return []
        entries.append(
            ManagedFieldsEntry(
                item["manager"],
                item["operation"],
                item.get("apiVersion", ""),
                item.get("subresource", ""),
                item.get("time") or "",
                item.get("fieldsV1") or None,
            )
        )
    return entries


def _is_valid_entry(item: Any) -> bool:
    if not isinstance(item, dict) or not is_valid_field_set(item.get("fieldsV1") or {}):
        return False
    texts = [item.get("manager")] + [
        item.get(key) or "" for key in ("apiVersion", "subresource", "time")
    ]
    return (
        item.get("operation") in ("Apply", "Update")
        and item.get("fieldsType") == "FieldsV1"
        and all(isinstance(t, str) for t in texts)
    )


def _write_entries(obj: Object, entries: Iterable[ManagedFieldsEntry]) -> None:
    encoded = [
        entry.encode()
        for entry in sorted(
            entries, key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource)
        )
    ]
    if encoded:
        obj["metadata"]["managedFields"] = encoded
    else:
        obj["metadata"].pop("managedFields", None)


def _merge_oldest_updaters(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    """At most MAX_UPDATERS updaters: the oldest become one entry per API version."""
    updaters = sorted(
        (entry for entry in entries if entry.operation == "Update"),
        key=operator.attrgetter("time", "identity"),
    )
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return entries
    kept = {entry.identity: entry for entry in entries}
    first: dict[str, ManagedFieldsEntry] = {}
    for entry in updaters:
        if excess <= 0:
            break
        bucket = ManagedFieldsEntry(
            ANCIENT_MANAGER, "Update", entry.api_version, "", entry.time, entry.fields
        )
        into = first.get(entry.api_version)
        if into is None:
            first[entry.api_version] = entry
            continue
        del kept[entry.identity]
        kept.pop(into.identity, None)
        first[entry.api_version] = kept[bucket.identity] = replace(
            bucket, fields=union(into.fields, entry.fields)
        )
        excess -= 1
    return list(kept.values())


def _build_before_first_apply_entry(
    live: Object, api_version: str, blank: Object, shape: Shape
) -> ManagedFieldsEntry:
    """The owner of all that an object without entries has when something is applied to it for the
    first time.
    """
    changed, _ = compare_values(
        _fill_missing_fields(blank, {"metadata": {}}), _select_tracked_part(live, "", blank), shape
    )
    return ManagedFieldsEntry(
        BEFORE_FIRST_APPLY_MANAGER, "Update", api_version, "", clock.format_time(), changed
    )


# Merging


def _merge_value(live: Any, config: Any, shape: Shape) -> Any:
    """`live` with what `config` says; a null there removes."""
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
        before, after = index_items(live, shape), index_items(config, shape)
        if before is not None and after is not None:
            return _merge_items(before, after, shape.items)
    return config


def _merge_items(live: dict[str, Any], config: dict[str, Any], shape: Shape) -> list[Any]:
    """Live items of others stay ahead of what followed them; the applied items come in their own
    order.
    """
    merged: list[Any] = []
    waiting, applying = deque(live), deque(config)
    shared = deque(step for step in config if step in live)
    while waiting or applying:
        step = waiting[0] if waiting else None
        if step is not None and step not in config:
            merged.append(live[waiting.popleft()])
        elif step is not None and (not shared or step != shared[0]):
            waiting.popleft()
        else:
            step = applying.popleft()
            merged.append(_merge_value(live.get(step), config[step], shape))
            if shared and step == shared[0]:
                shared.popleft()
    return merged


def _prune_unowned(value: Any, last: FieldSet | None, owned: FieldSet | None, shape: Shape) -> Any:
    """`value` without what the manager applied last time and nobody owns now; a field of a record
    counts with what is below it.
    """
    if not last or shape.atomic:
        return value
    if isinstance(value, dict):
        kept = {}
        for key, child in value.items():
            before, now = last.get("f:" + key), (owned or {}).get("f:" + key)
            entry = shape.is_map_key(key)
            if (
                before is None
                or (entry and not is_member(before))
                or (now is not None and (not entry or is_member(now)))
            ):
                kept[key] = _prune_unowned(child, before, now, shape.get_child(key))
        return kept
    found = index_items(value, shape) if isinstance(value, list) else None
    if found is None or shape.items is None:
        return value
    items = []
    for step, item in found.items():
        before, now = last.get(step), (owned or {}).get(step)
        if before is None or not is_member(before) or (now is not None and is_member(now)):
            items.append(_prune_unowned(item, before, now, shape.items))
    return items


def _assemble_object(
    live: Object | None, config: Object, result: Object, manager: str, subresource: str
) -> Object:
    """The whole object: what is not tracked comes from `live`, kind and place from `config`. Shares
    nothing with either.
    """
    base, place = live or {}, config.get("metadata") or {}
    is_status = subresource == "status"
    obj: Object = {"apiVersion": config.get("apiVersion"), "kind": config.get("kind")}
    obj |= {
        key: value
        for key, value in base.items()
        if (key == "status") is not is_status and (is_status or key == "status")
    } | result
    metadata = {
        key: value
        for key, value in (base.get("metadata") or {}).items()
        if is_status or key in _UNTRACKED_METADATA
    }
    metadata |= {
        key: place[key] for key in _IDENTITY_METADATA if place.get(key) is not None
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
    `errors/409-apply-conflict`.
    """
    if manager == "kubectl" and live and conflicts:
        allowed = _find_last_applied_fields(live, shape)
        conflicts = [
            replace(entry, fields=difference(entry.fields, allowed)) for entry in conflicts
        ]
    found = [
        (entry, path)
        for entry in sorted(conflicts, key=lambda entry: entry.identity)
        for path in format_paths(entry.fields)
    ]
    if not found:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {entry.title}", "field": path}
        for entry, path in found
    ]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: conflict with {found[0][0].title}: {found[0][1]}"
    else:
        lines = []
        for entry, path in found:
            heading = f"conflicts with {entry.title}:"
            lines += [f"- {path}"] if heading in lines else [heading, f"- {path}"]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    raise ApiError(409, "Conflict", message, {"causes": causes})


def _find_last_applied_fields(live: Object, shape: Shape) -> FieldSet | None:
    """What `kubectl apply` without --server-side applied and nobody changed since: kubectl may take
    that over without a conflict.
    """
    try:
        last = msgspec.json.decode(
            annotations_of(live).get(LAST_APPLIED_ANNOTATION, "{}"), type=dict[str, Any]
        )
        was = _select_tracked_part(last, "", {})
    except (msgspec.DecodeError, AttributeError):
        return None
    changed, removed = compare_values(was, _select_tracked_part(live, "", {}), shape)
    return difference(difference(collect_applied_fields(was, shape), changed), removed)

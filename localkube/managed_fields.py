"""The entries of `managedFields`: who wrote which fields, read and written. Pure functions."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from localkube.field_sets import FieldSet, is_valid_field_set, union
from localkube.metadata import Object

MAX_UPDATERS = 10
"""Most entries of the operation Update in one object; older ones are merged (apiserver
`DefaultMaxUpdateManagers`).
"""

ANCIENT_MANAGER = "ancient-changes"


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """One entry of managedFields. `fields` is None when a change leaves the entry no field."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: FieldSet | None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Return what tells this entry from others.

        The API version does not count for an applier: it keeps its entry when it changes to another
        version.
        """
        return (
            self.manager,
            self.operation,
            "" if self.operation == "Apply" else self.api_version,
            self.subresource,
        )

    @property
    def title(self) -> str:
        """Return the words by which a conflict names the manager."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text

    def encode(self) -> Object:
        encoded: Object = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
        }
        if self.time:
            encoded["time"] = self.time
        encoded |= {"fieldsType": "FieldsV1", "fieldsV1": self.fields or {}}
        if self.subresource:
            encoded["subresource"] = self.subresource
        return encoded


def decode_entries(encoded: Any, *, is_trusted: bool = True) -> list[ManagedFieldsEntry]:
    """Decode the entries of an object.

    Returns none at all when one of them is malformed, as a real server does.
    """
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


def write_entries(obj: Object, entries: Iterable[ManagedFieldsEntry]) -> None:
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


def merge_oldest_updaters(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    """Merge the oldest updaters beyond MAX_UPDATERS into one entry per API version."""
    updaters = sorted(
        (entry for entry in entries if entry.operation == "Update"),
        key=operator.attrgetter("time", "identity"),
    )
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return entries
    entries_by_identity = {entry.identity: entry for entry in entries}
    oldest_by_version: dict[str, ManagedFieldsEntry] = {}
    for entry in updaters:
        if excess <= 0:
            break
        merged_entry = ManagedFieldsEntry(
            ANCIENT_MANAGER, "Update", entry.api_version, "", entry.time, entry.fields
        )
        older = oldest_by_version.get(entry.api_version)
        if older is None:
            oldest_by_version[entry.api_version] = entry
            continue
        del entries_by_identity[entry.identity]
        entries_by_identity.pop(older.identity, None)
        oldest_by_version[entry.api_version] = entries_by_identity[merged_entry.identity] = replace(
            merged_entry, fields=union(older.fields, entry.fields)
        )
        excess -= 1
    return list(entries_by_identity.values())

"""What the metadata of every object must be: name, labels, annotations, owners and finalizers,
refused in the real server's words.

Values of a wrong type are passed over: decoding, or a custom kind's schema, has refused them.
"""

from typing import Any

from localkube.errors import Cause, frozen, required
from localkube.metadata import Object, is_terminating
from localkube.resources import names
from localkube.resources.causes import invalid, quote, too_long
from localkube.resources.names import NameRule
from localkube.resources.resource import Resource

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all keys and values together."""

STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")

_RULES: dict[str, NameRule] = {
    "services": names.label_1035,
    "namespaces": names.label,
    "events": names.segment,
    "events.events.k8s.io": names.segment,
}


def name_rule(resource: Resource) -> NameRule:
    """The rule for the names of a kind: it takes a name and gives what is wrong with it."""
    return _RULES.get(resource.key, names.subdomain)


def check(resource: Resource, obj: Object, old: Object | None) -> list[Cause]:
    """Everything wrong with the metadata, in the order a real server names it; `old` is the stored
    object on an update.
    """
    metadata = obj["metadata"]
    causes = _check_name(resource, metadata)
    causes += check_labels(metadata.get("labels"), "metadata.labels")
    causes += _check_annotations(metadata.get("annotations"))
    causes += _check_owners(metadata.get("ownerReferences"))
    causes += _check_finalizers(resource, metadata.get("finalizers"))
    return (
        causes
        if old is None or not is_terminating(old)
        else causes + _check_late_finalizers(metadata, old["metadata"])
    )


def _check_name(resource: Resource, metadata: dict[str, Any]) -> list[Cause]:
    rule, base, name = name_rule(resource), metadata.get("generateName"), metadata.get("name")
    causes = []
    if isinstance(base, str) and base:
        # A base may end in a dash, for more follows it.
        tried = base[:-1] + "a" if base.endswith("-") and len(base) > 1 else base
        causes += [invalid("metadata.generateName", base, text) for text in rule(tried)]
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif isinstance(name, str):
        causes += [invalid("metadata.name", name, text) for text in rule(name)]
    return causes


def check_labels(labels: Any, field: str) -> list[Cause]:
    """What is wrong with a map of labels at `field`."""
    causes = []
    if isinstance(labels, dict):
        for key, value in labels.items():
            causes += [invalid(field, key, text) for text in names.qualified(key)]
            if isinstance(value, str):
                causes += [invalid(field, value, text) for text in names.label_value(value)]
    return causes


def _check_annotations(annotations: Any) -> list[Cause]:
    if not isinstance(annotations, dict):
        return []
    field, causes, size = "metadata.annotations", [], 0
    for key, value in annotations.items():
        causes += [invalid(field, key, text) for text in names.qualified(key.lower())]
        size += len(key.encode()) + (
            len(value.encode(errors="replace")) if isinstance(value, str) else 0
        )
    if size > ANNOTATIONS_LIMIT:
        causes.append(too_long(field, ANNOTATIONS_LIMIT))
    return causes


def _check_owners(owners: Any) -> list[Cause]:
    field, causes = "metadata.ownerReferences", []
    owners = (
        [owner for owner in owners if isinstance(owner, dict)] if isinstance(owners, list) else []
    )
    for owner in owners:
        if not owner.get("apiVersion"):
            causes.append(invalid(f"{field}.apiVersion", "", "version must not be empty"))
        causes += [
            invalid(f"{field}.{part}", "", "must not be empty")
            for part in ("kind", "name", "uid")
            if not owner.get(part)
        ]
    controllers = [
        f"{owner.get('kind')}/{owner.get('name')}"
        for owner in owners
        if owner.get("controller") is True
    ]
    if len(controllers) > 1:
        text = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{' and '.join(controllers)}"
        )
        causes.append(invalid(field, owners, text))
    return causes


def _check_finalizers(resource: Resource, finalizers: Any) -> list[Cause]:
    field, causes = "metadata.finalizers", []
    found = (
        [item for item in finalizers if isinstance(item, str)]
        if isinstance(finalizers, list)
        else []
    )
    for item in found:
        wrong = names.qualified(item)
        causes += [invalid(field, item, text) for text in wrong]
        if (
            not wrong
            and "/" not in item
            and item not in STANDARD_FINALIZERS
            and not resource.custom
        ):
            causes.append(
                invalid(
                    field,
                    item,
                    "name is neither a standard finalizer name nor is it fully qualified",
                )
            )
    if {"orphan", "foregroundDeletion"} <= set(found):
        causes.append(
            invalid(field, found, "finalizer set cannot contain both orphan and foregroundDeletion")
        )
    return causes


def _check_late_finalizers(metadata: dict[str, Any], was: dict[str, Any]) -> list[Cause]:
    """An object that is being deleted takes no new finalizers."""
    before = was.get("finalizers") or []
    late = [item for item in metadata.get("finalizers") or [] if item not in before]
    if not late:
        return []
    listed = ", ".join(map(quote, late))
    text = (
        "no new finalizers can be added if the object is being deleted, found new finalizers "
        f"[]string{{{listed}}}"
    )
    return [frozen("metadata.finalizers", text)]

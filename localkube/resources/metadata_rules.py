"""The rules for every object's metadata: name, labels, annotations, owners and finalizers.

The causes have the real server's words. Values of a wrong type are passed over: decoding, or a
custom kind's schema, has refused them.
"""

from typing import Any

from localkube.errors import MAX_CAUSES, Cause, forbidden_cause, required_cause
from localkube.metadata import Object, is_terminating
from localkube.resources import name_rules
from localkube.resources.causes import invalid_value_cause, quote_value, too_long_cause
from localkube.resources.name_rules import NameRule
from localkube.resources.resource import Resource

MAX_ANNOTATION_BYTES = 256 * 1024
"""Most bytes of all keys and values together."""

STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")

_NAME_RULES: dict[str, NameRule] = {
    "services": name_rules.check_label_1035,
    "namespaces": name_rules.check_label,
    "events": name_rules.check_path_segment,
    "events.events.k8s.io": name_rules.check_path_segment,
}


def get_name_rule(resource: Resource) -> NameRule:
    """Return the rule for the names of a kind.

    The rule takes a name and returns its problems.
    """
    return _NAME_RULES.get(resource.key, name_rules.check_subdomain)


def check_metadata(resource: Resource, obj: Object, old: Object | None) -> list[Cause]:
    """Return all problems of the metadata, in the order of a real server.

    `old` is the stored object on an update.
    """
    metadata = obj["metadata"]
    causes = _check_name(resource, metadata)
    causes += check_labels(metadata.get("labels"), "metadata.labels")
    causes += _check_annotations(metadata.get("annotations"))
    causes += _check_owners(metadata.get("ownerReferences"))
    causes += _check_finalizers(resource, metadata.get("finalizers"))
    if old is not None and is_terminating(old):
        causes += _check_new_finalizers(metadata, old["metadata"])
    return causes


def _check_name(resource: Resource, metadata: dict[str, Any]) -> list[Cause]:
    rule, base, name = get_name_rule(resource), metadata.get("generateName"), metadata.get("name")
    causes = []
    if isinstance(base, str) and base:
        # A base may end in a dash, since the generated part follows it.
        completed = base[:-1] + "a" if base.endswith("-") and len(base) > 1 else base
        causes += [
            invalid_value_cause("metadata.generateName", base, text) for text in rule(completed)
        ]
    if not name:
        causes.append(required_cause("metadata.name", "name or generateName is required"))
    elif isinstance(name, str):
        causes += [invalid_value_cause("metadata.name", name, text) for text in rule(name)]
    return causes


def check_labels(labels: Any, field: str) -> list[Cause]:
    """Return the problems of a map of labels at `field`; ends soon after MAX_CAUSES."""
    causes: list[Cause] = []
    if isinstance(labels, dict):
        for key, value in labels.items():
            if len(causes) > MAX_CAUSES:
                break
            causes += [
                invalid_value_cause(field, key, text)
                for text in name_rules.check_qualified_name(key)
            ]
            if isinstance(value, str):
                causes += [
                    invalid_value_cause(field, value, text)
                    for text in name_rules.check_label_value(value)
                ]
    return causes


def _check_annotations(annotations: Any) -> list[Cause]:
    if not isinstance(annotations, dict):
        return []
    field, causes, size = "metadata.annotations", [], 0
    for key, value in annotations.items():
        causes += [
            invalid_value_cause(field, key, text)
            for text in name_rules.check_qualified_name(key.lower())
        ]
        size += len(key.encode()) + (
            len(value.encode(errors="replace")) if isinstance(value, str) else 0
        )
    if size > MAX_ANNOTATION_BYTES:
        causes.append(too_long_cause(field, MAX_ANNOTATION_BYTES))
    return causes


def _check_owners(owners: Any) -> list[Cause]:
    field = "metadata.ownerReferences"
    causes: list[Cause] = []
    owners = (
        [owner for owner in owners if isinstance(owner, dict)] if isinstance(owners, list) else []
    )
    for owner in owners:
        if len(causes) > MAX_CAUSES:
            return causes
        if not owner.get("apiVersion"):
            causes.append(
                invalid_value_cause(f"{field}.apiVersion", "", "version must not be empty")
            )
        causes += [
            invalid_value_cause(f"{field}.{part}", "", "must not be empty")
            for part in ("kind", "name", "uid")
            if not owner.get(part)
        ]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            text = "/v1, Kind=Event is disallowed from being an owner"
            causes.append(invalid_value_cause(field, owner, text))
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
        causes.append(invalid_value_cause(field, owners, text))
    return causes


def _check_finalizers(resource: Resource, finalizers: Any) -> list[Cause]:
    if not isinstance(finalizers, list):
        return []
    field, causes = "metadata.finalizers", []
    names = [item for item in finalizers if isinstance(item, str)]
    for item in names:
        problems = name_rules.check_qualified_name(item)
        causes += [invalid_value_cause(field, item, text) for text in problems]
        if (
            not problems
            and "/" not in item
            and item not in STANDARD_FINALIZERS
            and not resource.custom
        ):
            causes.append(
                invalid_value_cause(
                    field,
                    item,
                    "name is neither a standard finalizer name nor is it fully qualified",
                )
            )
    if {"orphan", "foregroundDeletion"} <= set(names):
        causes.append(
            invalid_value_cause(
                field, names, "finalizer set cannot contain both orphan and foregroundDeletion"
            )
        )
    return causes


def _check_new_finalizers(metadata: dict[str, Any], old_metadata: dict[str, Any]) -> list[Cause]:
    """Check that an object that is being deleted gets no new finalizers."""
    finalizers, old_finalizers = (
        [item for item in each.get("finalizers") or [] if isinstance(item, str)]
        for each in (metadata, old_metadata)
    )
    known = set(old_finalizers)
    new_finalizers = [item for item in finalizers if item not in known]
    if not new_finalizers:
        return []
    quoted = ", ".join(map(quote_value, new_finalizers))
    text = (
        "no new finalizers can be added if the object is being deleted, found new finalizers "
        f"[]string{{{quoted}}}"
    )
    return [forbidden_cause("metadata.finalizers", text)]

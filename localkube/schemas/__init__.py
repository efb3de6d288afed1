"""Schemas: the fields of each kind and their types, loaded when first asked for and shared.

Which values make sense is not here but in `resources`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from localkube.errors import Cause
from localkube.metadata import Object
from localkube.schemas import builtin, notation
from localkube.schemas.compiled_schema import (
    SchemaNode,
    compile_schema,
    fill_defaults,
    find_errors,
    find_forbidden_changes,
    prune_value,
)

DATA = Path(__file__).parent / "data"

COUNT_FIELDS = frozenset(
    (
        "replicas",
        "minReplicas",
        "maxReplicas",
        "maxRestarts",
        "nProcPerNode",
        "slotsPerWorker",
        "minAvailable",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
        "scheduleTimeoutSeconds",
    )
)
"""The numbers of a training job's spec that make no sense below 0.

The upstream definitions say nothing of it and leave it to admission webhooks, which are not here.
"""

_compiled: dict[int, SchemaNode] = {}


class Schema:
    """One kind's schema.

    `root` is plain JSON schema with every reference resolved; do not change it, its parts are
    shared.
    """

    def __init__(self, root: dict[str, Any], *, custom: bool) -> None:
        self.root = root
        self.custom = custom
        self.node = compile_schema(root, _compiled)

    @property
    def has_rules(self) -> bool:
        """Return whether the schema has validation rules.

        A real server checks them only once everything else is right.
        """
        return self.node.has_immutable_values

    def prune(self, obj: Object) -> list[str]:
        """Remove unknown fields, and nulls and empty lists that mean nothing, in place.

        Returns the paths of the unknown fields in the order of a real server: sorted for a custom
        kind, as written for the others.
        """
        unknown: list[str] = []
        if not self.custom:
            prune_value(self.node, obj, "", unknown, is_typed=True)
            return unknown
        if isinstance(obj, dict):
            # Metadata is of the server's own types whatever the kind.
            prune_value(
                self.node.properties["metadata"],
                obj.get("metadata"),
                "metadata",
                unknown,
                is_typed=True,
            )
        prune_value(self.node, obj, "", unknown, is_typed=False)
        return sorted(unknown)

    def set_defaults(self, obj: Object) -> None:
        """Set the schema's own defaults where they are missing, in place."""
        fill_defaults(self.node, obj)

    def validate(self, obj: Object) -> list[Cause]:
        """Return the problems of an object.

        They are worded and ordered as a real server does (recorded in `errors/422-crd-schema`).
        """
        causes: list[Cause] = []
        find_errors(self.node, obj, "", causes)
        return causes

    def find_forbidden_changes(self, old: Object, new: Object) -> list[Cause]:
        """Return the immutable values that differ."""
        causes: list[Cause] = []
        find_forbidden_changes(self.node, old, new, "", causes)
        return causes


@cache
def load_schema(name: str) -> Schema:
    """Load the schema that a resource names. Raises FileNotFoundError when there is none."""
    if name in builtin.KINDS:
        return Schema(_resolve_references(builtin.KINDS[name]()), custom=False)
    data = _read_data(name)
    if load_definitions()[name]["group"] == "kubeflow.org":
        data["properties"]["spec"] = _bound_counts(data["properties"]["spec"])
    root = _resolve_references(data)
    root["properties"]["metadata"] = notation.OBJECT_META
    return Schema(root, custom=True)


@cache
def load_definitions() -> dict[str, dict[str, Any]]:
    """Load names, scope, printer columns and subresources of the custom kinds, by plural name."""
    loaded: dict[str, dict[str, Any]] = _read_data("definitions")
    return loaded


def _bound_counts(node: Any) -> Any:
    """Return the same schema with a minimum of 0 for each count; references are left alone."""
    if not isinstance(node, dict):
        return node
    bounded = {key: _bound_counts(value) for key, value in node.items()}
    for name, field in node.get("properties", {}).items():
        if name in COUNT_FIELDS and field.get("type") == "integer":
            bounded["properties"][name] = {"minimum": 0} | field
    return bounded


def _read_data(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_bytes())


@cache
def _load_shared(name: str) -> Any:
    return _read_data(name)


def _resolve_references(node: Any) -> Any:
    """Return the same schema with references replaced.

    Parts without any are kept as they are, so shared parts stay one object.
    """
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _load_shared(node["$ref"])
    resolved = {key: _resolve_references(value) for key, value in node.items()}
    return node if all(resolved[key] is node[key] for key in node) else resolved

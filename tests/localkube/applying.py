"""A kind with every sort of field, applied and updated by several managers.

It serves the tests of field ownership.
"""

import copy
from typing import Any

import pytest

from localkube import field_ownership, schemas
from localkube.errors import ApiError

V1 = "test.dev/v1"
TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "mode": TEXT,
                "nested": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
                "table": {"type": "object", "additionalProperties": TEXT},
                "whole": {
                    "type": "object",
                    "additionalProperties": TEXT,
                    "x-kubernetes-map-type": "atomic",
                },
                "plain": {"type": "array", "items": TEXT},
                "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"name": TEXT, "image": TEXT, "rank": {"type": "integer"}},
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
                "ports": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "note": TEXT,
                        },
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}


def build_object(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "x", "namespace": "n"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": V1, "kind": "Thing", "metadata": metadata, "spec": spec}


def apply_as(
    live: dict[str, Any] | None,
    config: dict[str, Any],
    manager: str = "one",
    *,
    force: bool = False,
) -> dict[str, Any]:
    return field_ownership.apply_configuration(
        live, config, manager=manager, force=force, api_version=V1, schema=SCHEMA
    )


def update_as(
    old: dict[str, Any] | None, new: dict[str, Any], manager: str = "user", subresource: str = ""
) -> dict[str, Any]:
    new = copy.deepcopy(new)
    if old and "managedFields" in old["metadata"]:
        new["metadata"].setdefault("managedFields", old["metadata"]["managedFields"])
    field_ownership.track_ownership(
        old, new, manager=manager, subresource=subresource, api_version=V1, schema=SCHEMA
    )
    return new


def change_spec(old: dict[str, Any], **spec: Any) -> dict[str, Any]:
    new = copy.deepcopy(old)
    new["spec"] |= spec
    return new


def find_owned_fields(
    obj: dict[str, Any], manager: str, operation: str = "Update", subresource: str = ""
) -> Any:
    entries = obj["metadata"].get("managedFields", [])
    mine = [
        e
        for e in entries
        if (e["manager"], e["operation"], e.get("subresource", ""))
        == (manager, operation, subresource)
    ]
    assert len(mine) <= 1
    return mine[0]["fieldsV1"] if mine else None


def expect_conflict(live: dict[str, Any], config: dict[str, Any], manager: str = "two") -> ApiError:
    with pytest.raises(ApiError) as refused:
        apply_as(live, config, manager)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    return refused.value


def strip_times(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]


def load_schema_of(obj: dict[str, Any]) -> dict[str, Any]:
    return schemas.load_schema(
        {"PyTorchJob": "pytorchjobs", "Pod": "pods", "Event": "events", "Lease": "leases"}[
            obj["kind"]
        ]
    ).root

"""Objects of a kind, as a client sends them and as the server prepares them."""

import copy
from typing import Any

from localkube import resources, schemas
from localkube.errors import Cause
from localkube.resources.resource import Resource


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    body = {"containers": [{"name": "main", "image": "train:1"}]} | spec
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": body,
    }


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "main", "image": "train:1"} | fields])


def build_object(resource: Resource, name: str = "x", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "uid": "1-2-3"},
    } | fields


def prepare_object(resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
    """The object after pruning and defaults, as a create stores it."""
    new = copy.deepcopy(obj)
    schemas.load_schema(resource.schema).prune(new)
    resource.set_defaults(new)
    if resource is resources.PODS:
        resources.add_lost_node_tolerations(new["spec"], 300)
    return new


def find_causes(
    resource: Resource, obj: dict[str, Any], old: dict[str, Any] | None = None
) -> list[Cause]:
    before = None if old is None else prepare_object(resource, old)
    return resources.check_object(resource, prepare_object(resource, obj), before)


def find_texts(
    resource: Resource, obj: dict[str, Any], old: dict[str, Any] | None = None
) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in find_causes(resource, obj, old)]

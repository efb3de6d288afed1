"""The custom kinds: training jobs and what the KAI scheduler works with.

They are made from the definitions that `schemas` carries. To serve another kind, let
`schemas.build` carry its definition and add one line to `CUSTOM_RESOURCES`.
"""

from collections.abc import Mapping
from typing import Any

from localkube import schemas
from localkube.metadata import Object
from localkube.resources.ignored_parts import find_ignored_parts
from localkube.resources.resource import STATUS, Column, Resource, Subresource
from localkube.resources.table_cells import AGE, AGE_DESCRIPTION, NAME, build_custom_column

CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The verbs of custom kinds, in discovery's order."""

SCALE = Subresource(("get", "patch", "update"), kind="Scale", group="autoscaling", version="v1")

API_GROUP = "apiextensions.k8s.io"


def build_custom_resource(plural: str) -> Resource:
    """Build the resource of a definition.

    Raises KeyError when `schemas` carries none of that name.
    """
    definition = schemas.load_definitions()[plural]
    kind_names = definition["names"]
    defined = definition["subresources"]

    def fill(obj: Object) -> None:
        schemas.load_schema(plural).set_defaults(obj)

    return Resource(
        definition["group"],
        definition["version"],
        plural,
        kind_names["kind"],
        columns=(NAME, *_build_columns(definition)),
        namespaced=definition["scope"] == "Namespaced",
        custom=True,
        short_names=tuple(kind_names.get("shortNames", ())),
        categories=tuple(kind_names.get("categories", ())),
        verbs=CUSTOM_VERBS,
        subresources={
            name: part for name, part in (("status", STATUS), ("scale", SCALE)) if name in defined
        },
        schema=plural,
        set_defaults=fill,
        find_warnings=find_ignored_parts,
    )


def _build_columns(definition: Mapping[str, Any]) -> tuple[Column, ...]:
    if not definition["columns"]:
        return (Column(AGE.name, AGE.cell, "date", description=AGE_DESCRIPTION),)
    return tuple(build_custom_column(column) for column in definition["columns"])


JAXJOBS = build_custom_resource("jaxjobs")
MPIJOBS = build_custom_resource("mpijobs")
PADDLEJOBS = build_custom_resource("paddlejobs")
PYTORCHJOBS = build_custom_resource("pytorchjobs")
TFJOBS = build_custom_resource("tfjobs")
XGBOOSTJOBS = build_custom_resource("xgboostjobs")
QUEUES = build_custom_resource("queues")
PODGROUPS = build_custom_resource("podgroups")

CUSTOM_RESOURCES = (
    JAXJOBS,
    PADDLEJOBS,
    PYTORCHJOBS,
    TFJOBS,
    XGBOOSTJOBS,
    MPIJOBS,
    QUEUES,
    PODGROUPS,
)


def get_scale_paths(resource: Resource) -> Mapping[str, str]:
    """Return where a kind's scale subresource finds its numbers.

    The keys are `specReplicasPath`, `statusReplicasPath`, `labelSelectorPath`.
    """
    paths: Mapping[str, str] = schemas.load_definitions()[resource.plural]["subresources"]["scale"]
    return paths


CRDS = Resource(
    API_GROUP,
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    columns=(
        NAME,
        Column(
            "Created At",
            lambda crd: crd["metadata"].get("creationTimestamp", ""),
            "date",
            description=AGE_DESCRIPTION,
        ),
    ),
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    verbs=("get", "list", "watch"),
)
"""The definitions of what is served, read-only: nobody can define a kind here."""


def build_crds() -> list[Object]:
    """Build a CustomResourceDefinition of each custom kind, with its schema, established."""
    return [_build_crd(resource) for resource in CUSTOM_RESOURCES]


def _build_crd(resource: Resource) -> Object:
    definition = schemas.load_definitions()[resource.plural]
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": _hide_metadata_schema(schemas.load_schema(resource.schema).root)
        },
        "subresources": definition["subresources"],
        "additionalPrinterColumns": definition["columns"],
    }
    conditions = [
        {
            "type": "NamesAccepted",
            "status": "True",
            "reason": "NoConflicts",
            "message": "no conflicts found",
        },
        {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        },
    ]
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": definition["names"],
            "scope": definition["scope"],
            "conversion": {"strategy": "None"},
            "versions": [{key: value for key, value in version.items() if value}],
        },
        "status": {
            "acceptedNames": definition["names"],
            "storedVersions": [resource.version],
            "conditions": conditions,
        },
    }


def _hide_metadata_schema(root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema as its definition had it: metadata is not spelled out there."""
    return root | {"properties": root["properties"] | {"metadata": {"type": "object"}}}

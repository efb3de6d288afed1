"""The custom kinds: training jobs and what the KAI scheduler works with, made from the definitions
that `schemas` carries.

To serve another kind, let `schemas.build` carry its definition and add one line to `CUSTOM`.
"""

from collections.abc import Mapping
from typing import Any

from localkube import schemas
from localkube.metadata import Object
from localkube.resources.cells import AGE, AGE_TEXT, NAME, custom_column
from localkube.resources.resource import STATUS, Column, Resource, Subresource

ORDERED_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""As discovery lists those of custom kinds."""

SCALE = Subresource(("get", "patch", "update"), kind="Scale", group="autoscaling", version="v1")

API_GROUP = "apiextensions.k8s.io"


def custom(plural: str) -> Resource:
    """The resource of a definition. Raises KeyError when `schemas` carries none of that name."""
    definition = schemas.definitions()[plural]
    names = definition["names"]
    given = definition["subresources"]

    def fill(obj: Object) -> None:
        schemas.load(plural).fill(obj)

    return Resource(
        definition["group"],
        definition["version"],
        plural,
        names["kind"],
        columns=(NAME, *_columns(definition)),
        namespaced=definition["scope"] == "Namespaced",
        custom=True,
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        verbs=ORDERED_VERBS,
        subresources={
            name: part for name, part in (("status", STATUS), ("scale", SCALE)) if name in given
        },
        schema=plural,
        defaults=fill,
    )


def _columns(definition: Mapping[str, Any]) -> tuple[Column, ...]:
    if not definition["columns"]:
        return (Column(AGE.name, AGE.cell, "date", description=AGE_TEXT),)
    return tuple(custom_column(column) for column in definition["columns"])


JAXJOBS = custom("jaxjobs")
MPIJOBS = custom("mpijobs")
PYTORCHJOBS = custom("pytorchjobs")
TFJOBS = custom("tfjobs")
XGBOOSTJOBS = custom("xgboostjobs")
QUEUES = custom("queues")
PODGROUPS = custom("podgroups")

CUSTOM = (JAXJOBS, PYTORCHJOBS, TFJOBS, XGBOOSTJOBS, MPIJOBS, QUEUES, PODGROUPS)


def scale_paths(resource: Resource) -> Mapping[str, str]:
    """Where a kind's scale subresource finds its numbers: `specReplicasPath`, `statusReplicasPath`,
    `labelSelectorPath`.
    """
    found: Mapping[str, str] = schemas.definitions()[resource.plural]["subresources"]["scale"]
    return found


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
            description=AGE_TEXT,
        ),
    ),
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    verbs=("get", "list", "watch"),
)
"""What is served, for those who look; nobody can define a kind here."""


def crd_objects() -> list[Object]:
    """A CustomResourceDefinition of each custom kind, with its schema, established."""
    return [_crd(resource) for resource in CUSTOM]


def _crd(resource: Resource) -> Object:
    definition = schemas.definitions()[resource.plural]
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _published(schemas.load(resource.schema).root)},
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


def _published(root: dict[str, Any]) -> dict[str, Any]:
    """A schema as its definition had it: metadata is not spelled out there."""
    return root | {"properties": root["properties"] | {"metadata": {"type": "object"}}}

"""Bodies of assets in the REST API: parsed, serialized, described; `meta` is the same for all."""

import uuid
from collections.abc import Mapping
from typing import Any

from console.errors import Invalid
from console.typed_forms import TypedValues
from environments.api import compliance
from environments.forms import AssetForm
from environments.kinds import AssetKind
from environments.models import Asset
from environments.rest_mapping import Problems, RestMapping
from projects.api import schemas
from projects.scopes import TENANT, Level, Scope, cluster_scope, department_scope, project_scope

_TEXT_FIELDS = ("name", "description")
_SCOPE_FIELDS = ("scope", "projectId", "departmentId", "clusterId")
_READ_ONLY_FIELDS = (
    "id",
    "kind",
    "createdBy",
    "createdAt",
    "updatedBy",
    "updatedAt",
    "projectName",
    "builtIn",
    "version",
)
"""Fields of answers only, accepted so that an answer can be sent back as it is."""
_FALSE_ONLY_FIELDS = ("autoDelete", "private")
"""Fields that Run:ai's clients always send, as false where nobody asked for them."""
KNOWN_PLACES = frozenset(
    f"meta.{name}"
    for name in (*_TEXT_FIELDS, *_SCOPE_FIELDS, *_READ_ONLY_FIELDS, *_FALSE_ONLY_FIELDS)
) | {
    "usedBy",
    "compliance",
}
_LEVELS = {"projectId": Level.PROJECT, "departmentId": Level.DEPARTMENT, "clusterId": Level.CLUSTER}


def parse_asset(rest: RestMapping, body: Any) -> tuple[TypedValues, int | None]:
    """Parse a body into typed values of the form and the version that it changes.

    Raises Invalid with all that is wrong.
    """
    if not isinstance(body, Mapping) or any(
        not isinstance(body.get(name) or {}, Mapping) for name in ("meta", "spec")
    ):
        raise Invalid([("body", "The body must be an object with the objects meta and spec.")])
    typed, problems = rest.parse_body(body, KNOWN_PLACES)
    meta: Mapping[str, Any] = body.get("meta") or {}
    for name in _TEXT_FIELDS:
        if isinstance(value := meta.get(name), str):
            typed[name] = [value]
        elif value is not None:
            problems.append((f"meta.{name}", f"meta.{name} must be a text."))
    for name in _FALSE_ONLY_FIELDS:
        if meta.get(name) not in (None, False):
            problems.append(
                (
                    f"meta.{name}",
                    f"meta.{name} can only be false: Muster has no such assets. Leave it out.",
                )
            )
    if scope := _parse_meta_scope(meta, problems):
        typed["scope"] = [str(scope)]
    version = meta.get("version")
    if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
        problems.append(("meta.version", "meta.version must be a whole number."))
    if problems:
        raise Invalid(problems)
    return typed, version


def _parse_meta_scope(meta: Mapping[str, Any], problems: Problems) -> Scope | None:
    """Return the scope that is given by its name, by an id, or by both; None without any."""
    ids = {id_field: meta[id_field] for id_field in _LEVELS if meta.get(id_field) is not None}
    level_name = meta.get("scope") or (str(_LEVELS[next(iter(ids))]) if ids else None)
    if level_name is None:
        return None
    if level_name in ("tenant", "system"):
        return TENANT
    id_field = next((each for each, level in _LEVELS.items() if level == level_name), "")
    if not id_field:
        problems.append(
            ("meta.scope", "meta.scope must be one of tenant, cluster, department and project.")
        )
        return None
    try:
        return Scope.parse(f"{level_name}:{ids.get(id_field, '')}")
    except ValueError:
        problems.append(
            (
                f"meta.{id_field}",
                f"meta.{id_field} must be given for the scope {level_name}, and be its id.",
            )
        )
        return None


def serialize_asset(kind: AssetKind, asset: Asset, used_by: Mapping[str, Any]) -> dict[str, Any]:
    """Return an asset as the API has it, without its secret."""
    form = kind.get_form(asset)
    assert form.rest is not None
    body = form.rest.serialize_body(kind.build_typed(asset))
    return {
        "meta": serialize_meta(kind, asset) | body.pop("meta", {}),
        "spec": body["spec"],
        "usedBy": used_by,
    }


def serialize_meta(kind: AssetKind, asset: Asset) -> dict[str, Any]:
    """Return the meta data of an asset in an answer."""
    return {
        "id": str(asset.pk),
        "name": asset.name,
        "kind": get_kind_word(kind, kind.get_form(asset)),
        "description": asset.description,
        "scope": str(asset.scope.level),
        "projectId": asset.project_id,
        "projectName": asset.project.name if asset.project else None,
        "departmentId": None if asset.department_id is None else str(asset.department_id),
        "clusterId": None if asset.cluster_id is None else str(asset.cluster_id),
        "builtIn": asset.is_built_in,
        "createdBy": asset.created_by.username if asset.created_by else "",
        "createdAt": asset.created_at.isoformat(),
        "updatedBy": asset.updated_by.username if asset.updated_by else "",
        "updatedAt": asset.updated_at.isoformat(),
        "version": asset.version,
    }


def get_kind_word(kind: AssetKind, form: type[AssetForm]) -> str:
    return form.subtype or kind.key


def build_meta_schema(word: str, **more: schemas.Schema) -> schemas.Schema:
    """Build the schema of the meta data of an answer."""
    optional_id = {"type": ["string", "null"]}
    return schemas.object_schema(
        ["id", "name", "scope", "version"],
        id=schemas.ID,
        name=schemas.TEXT,
        kind=more.pop("kind", schemas.enum_schema(word)),
        description=more.pop("description", schemas.TEXT),
        scope=schemas.enum_schema(*Level),
        projectId={"type": ["integer", "null"]},
        projectName=optional_id,
        departmentId=optional_id,
        clusterId=optional_id,
        builtIn=schemas.BOOLEAN,
        createdBy=schemas.TEXT,
        createdAt=schemas.MOMENT,
        updatedBy=schemas.TEXT,
        updatedAt=schemas.MOMENT,
        version=schemas.describe_schema(schemas.INTEGER, "Raised by every change."),
        **more,
    )


def build_asset_schema(kind: AssetKind, form: type[AssetForm]) -> schemas.Schema:
    """Build the schema of an asset of one form in an answer."""
    rest = form.rest
    assert rest is not None
    form_properties = rest.schema["properties"]
    meta = build_meta_schema(
        get_kind_word(kind, form), **form_properties.get("meta", {}).get("properties", {})
    )
    use_counts = schemas.object_schema(
        workloads=schemas.INTEGER, templates=schemas.INTEGER, dataSources=schemas.INTEGER
    )
    compliance_schema = (
        {"compliance": compliance.SCHEMA} if kind.key in compliance.CHECKED_KINDS else {}
    )
    return schemas.object_schema(
        ["meta", "spec"],
        meta=meta,
        spec=_make_nullable(form_properties.get("spec", schemas.object_schema())),
        usedBy=use_counts,
        **compliance_schema,
    )


def build_any_schema(kind: AssetKind) -> schemas.Schema:
    """Build the schema of an asset in an answer, of whichever form of the kind."""
    words = [get_kind_word(kind, form) for form in kind.forms.values()]
    meta = (
        build_meta_schema(words[0], kind=schemas.enum_schema(*words))
        if len(words) > 1
        else build_meta_schema(words[0])
    )
    return schemas.object_schema(
        ["meta", "spec"], meta=meta, spec={"type": "object"}, usedBy={"type": "object"}
    )


def build_request_meta_schema(**more: schemas.Schema) -> schemas.Schema:
    """Build the schema of the meta data in a request."""
    return schemas.object_schema(
        name=schemas.TEXT,
        description=schemas.TEXT,
        scope=schemas.enum_schema("tenant", "cluster", "department", "project"),
        projectId=schemas.describe_schema(schemas.INTEGER, "Of the scope project."),
        departmentId=schemas.describe_schema(schemas.TEXT, "Of the scope department."),
        clusterId=schemas.describe_schema(schemas.ID, "Of the scope cluster."),
        version=schemas.describe_schema(
            schemas.INTEGER,
            "Of the asset that is changed: 409 where somebody else has changed it since.",
        ),
        **more,
    )


def build_request_schema(form: type[AssetForm]) -> schemas.Schema:
    """Build the schema of the body of a creation or a change."""
    rest = form.rest
    assert rest is not None
    form_properties = rest.schema["properties"]
    meta = build_request_meta_schema(**form_properties.get("meta", {}).get("properties", {}))
    return schemas.object_schema(
        ["meta"],
        meta=meta,
        spec=_make_nullable(form_properties.get("spec", schemas.object_schema())),
    )


def _make_nullable(schema: schemas.Schema) -> schemas.Schema:
    """Return the schema with every property nullable: null is not given, or empty."""
    properties = {
        name: {"anyOf": [part, {"type": "null"}]}
        for name, part in schema.get("properties", {}).items()
    }
    return schema | {"properties": properties}


def parse_scope(level: str, key: str) -> Scope:
    """Return the scope of a level and an id, as query parameters name it. Raises ValueError."""
    if level == Level.CLUSTER:
        return cluster_scope(uuid.UUID(key))
    if not (key.isascii() and key.isdigit() and len(key) < 19):
        raise ValueError(key)
    return project_scope(int(key)) if level == Level.PROJECT else department_scope(int(key))

"""Bodies of the REST API about assets: what all of them have under `meta`, read and shown."""

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
"""What an answer has beside, so that an answer can be sent back as it is."""
_FALSE_ONLY_FIELDS = ("autoDelete", "private")
"""What Run:ai's clients always send, with false where nobody asked for it."""
KNOWN_PLACES = frozenset(
    f"meta.{name}"
    for name in (*_TEXT_FIELDS, *_SCOPE_FIELDS, *_READ_ONLY_FIELDS, *_FALSE_ONLY_FIELDS)
) | {
    "usedBy",
    "compliance",
}
_LEVELS = {"projectId": Level.PROJECT, "departmentId": Level.DEPARTMENT, "clusterId": Level.CLUSTER}


def parse_asset(rest: RestMapping, body: Any) -> tuple[TypedValues, int | None]:
    """What a body says as typed into the form, and the version that it says it changes. Raises
    Invalid with all that is wrong.
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
    """The scope that is said, by its name, by an id, or by both; None where nothing is."""
    ids = {name: meta[name] for name in _LEVELS if meta.get(name) is not None}
    said = meta.get("scope") or (str(_LEVELS[next(iter(ids))]) if ids else None)
    if said is None:
        return None
    if said in ("tenant", "system"):
        return TENANT
    name = next((each for each, level in _LEVELS.items() if level == said), "")
    if not name:
        problems.append(
            ("meta.scope", "meta.scope must be one of tenant, cluster, department and project.")
        )
        return None
    try:
        return Scope.parse(f"{said}:{ids.get(name, '')}")
    except ValueError:
        problems.append(
            (f"meta.{name}", f"meta.{name} must be given for the scope {said}, and be its id.")
        )
        return None


def serialize_asset(kind: AssetKind, asset: Asset, used_by: Mapping[str, Any]) -> dict[str, Any]:
    """An asset as the API has it; nothing of a secret."""
    form = kind.get_form(asset)
    assert form.rest is not None
    body = form.rest.serialize_body(kind.build_typed(asset))
    return {
        "meta": serialize_meta(kind, asset) | body.pop("meta", {}),
        "spec": body["spec"],
        "usedBy": used_by,
    }


def serialize_meta(kind: AssetKind, asset: Asset) -> dict[str, Any]:
    """What all assets have in an answer."""
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
    """The meta data of an answer."""
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
    """An asset of an answer."""
    rest = form.rest
    assert rest is not None
    own = rest.schema["properties"]
    meta = build_meta_schema(get_kind_word(kind, form), **own.get("meta", {}).get("properties", {}))
    counted = schemas.object_schema(
        workloads=schemas.INTEGER, templates=schemas.INTEGER, dataSources=schemas.INTEGER
    )
    more = {"compliance": compliance.SCHEMA} if kind.key in compliance.CHECKED_KINDS else {}
    return schemas.object_schema(
        ["meta", "spec"],
        meta=meta,
        spec=_make_nullable(own.get("spec", schemas.object_schema())),
        usedBy=counted,
        **more,
    )


def build_any_schema(kind: AssetKind) -> schemas.Schema:
    """An asset of an answer, of whichever form."""
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
    """The meta data of a body that is sent."""
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
    """The body of a creation or a change."""
    rest = form.rest
    assert rest is not None
    own = rest.schema["properties"]
    meta = build_request_meta_schema(**own.get("meta", {}).get("properties", {}))
    return schemas.object_schema(
        ["meta"], meta=meta, spec=_make_nullable(own.get("spec", schemas.object_schema()))
    )


def _make_nullable(schema: schemas.Schema) -> schemas.Schema:
    """The same, of which every part may be null: that it is not given, or has nothing."""
    properties = {
        name: {"anyOf": [part, {"type": "null"}]}
        for name, part in schema.get("properties", {}).items()
    }
    return schema | {"properties": properties}


def parse_scope(level: str, key: str) -> Scope:
    """The scope of a level and an id, as the parameters of a list name it. Raises ValueError."""
    if level == Level.CLUSTER:
        return cluster_scope(uuid.UUID(key))
    if not (key.isascii() and key.isdigit() and len(key) < 19):
        raise ValueError(key)
    return project_scope(int(key)) if level == Level.PROJECT else department_scope(int(key))

"""Bodies of assets in the REST API: parsed, serialized, described; `meta` is the same for all."""

import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any

from msgspec import field

from console.errors import Invalid
from console.moments import format_moment
from console.rest_bodies import (
    READ_ONLY,
    Problem,
    Reading,
    RestBody,
    describe_field,
    mark_unsupported,
    read_body,
)
from console.rest_schemas import describe_body
from console.texts import parse_number
from console.typed_forms import TypedValues
from environments.api import compliance
from environments.forms import AssetForm
from environments.kinds import AssetKind
from environments.models import Asset
from environments.rest_mapping import RestMapping
from projects.api import schemas
from projects.scopes import TENANT, Level, Scope, cluster_scope, department_scope, project_scope

_LEVELS = {"projectId": Level.PROJECT, "departmentId": Level.DEPARTMENT, "clusterId": Level.CLUSTER}
_ID: schemas.Schema = {"type": ["integer", "string", "null"]}
_FALSE_ONLY = mark_unsupported(
    False, reason="can only be false: Muster has no such assets. Leave it out"
)


class MetaBody(RestBody, forbid_unknown_fields=True):
    """The meta data of an asset in a request.

    An answer can be sent back as it is. autoDelete and private are what Run:ai's clients always
    send, as false where nobody asked for them.
    """

    name: str | None = None
    description: str | None = None
    scope: Annotated[
        str | None,
        describe_field(
            problem="must be one of tenant, cluster, department and project",
            enum=[*Level, None],
        ),
    ] = None
    project_id: Annotated[Any, describe_field("Of the scope project.", **_ID)] = None
    department_id: Annotated[Any, describe_field("Of the scope department.", **_ID)] = None
    cluster_id: Annotated[Any, describe_field("Of the scope cluster.", **_ID)] = None
    version: Annotated[
        int | None,
        describe_field(
            "Of the asset that is changed: 409 where somebody else has changed it since.",
            problem="must be a whole number",
        ),
    ] = None
    id: Annotated[Any, READ_ONLY] = None
    kind: Annotated[Any, READ_ONLY] = None
    created_by: Annotated[Any, READ_ONLY] = None
    created_at: Annotated[Any, READ_ONLY] = None
    updated_by: Annotated[Any, READ_ONLY] = None
    updated_at: Annotated[Any, READ_ONLY] = None
    project_name: Annotated[Any, READ_ONLY] = None
    built_in: Annotated[Any, READ_ONLY] = None
    auto_delete: Annotated[Any, _FALSE_ONLY] = None
    private: Annotated[Any, _FALSE_ONLY] = None


class AssetBody(RestBody, forbid_unknown_fields=True):
    """A body with the fields that all assets have."""

    meta: MetaBody = field(default_factory=MetaBody)
    used_by: Annotated[Any, READ_ONLY] = None
    compliance: Annotated[Any, READ_ONLY] = None


@cache
def get_body_type(rest: RestMapping) -> type[AssetBody]:
    """Return the struct of the bodies of a form's assets."""
    return rest.build_body_type(AssetBody, MetaBody)


def parse_asset(rest: RestMapping, body: Any) -> tuple[TypedValues, int | None]:
    """Parse a body into typed values of the form and the version that it changes.

    Raises Invalid with all that is wrong.
    """
    if not isinstance(body, Mapping) or any(
        not isinstance(body.get(name) or {}, Mapping) for name in ("meta", "spec")
    ):
        raise Invalid([("body", "The body must be an object with the objects meta and spec.")])
    reading = read_body(get_body_type(rest), body, _describe_unknown)
    typed = rest.build_typed(reading)
    meta = reading.value.meta
    texts = {"name": meta.name, "description": meta.description}
    typed |= {name: [text] for name, text in texts.items() if text is not None}
    if scope := read_scope(meta, reading):
        typed["scope"] = [str(scope)]
    reading.require_valid()
    return typed, meta.version


def _describe_unknown(path: str, name: str, field_names: Sequence[str]) -> Problem:
    place = f"{path}.{name}"[:120] if path else name[:120]
    return place, f"{place} is not known here."


def read_scope(meta: MetaBody, reading: Reading[Any]) -> Scope | None:
    """Return the scope that is given by its name, by an id, or by both; None without any."""
    all_ids = {
        "projectId": meta.project_id,
        "departmentId": meta.department_id,
        "clusterId": meta.cluster_id,
    }
    ids = {name: value for name, value in all_ids.items() if value is not None}
    level_name = meta.scope or (str(_LEVELS[next(iter(ids))]) if ids else None)
    if level_name is None:
        return None
    if level_name in ("tenant", "system"):
        return TENANT
    id_field = next((each for each, level in _LEVELS.items() if level == level_name), "")
    if not id_field:
        reading.refuse("meta.scope", "must be one of tenant, cluster, department and project")
        return None
    try:
        return Scope.parse(f"{level_name}:{ids.get(id_field, '')}")
    except ValueError:
        reading.refuse(
            f"meta.{id_field}", f"must be given for the scope {level_name}, and be its id"
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
        "createdAt": format_moment(asset.created_at),
        "updatedBy": asset.updated_by.username if asset.updated_by else "",
        "updatedAt": format_moment(asset.updated_at),
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
    parts = describe_body(rest.build_body_type(RestBody, RestBody))["properties"]
    meta = build_meta_schema(get_kind_word(kind, form), **parts["meta"]["properties"])
    use_counts = schemas.object_schema(
        workloads=schemas.INTEGER, templates=schemas.INTEGER, dataSources=schemas.INTEGER
    )
    compliance_schema = (
        {"compliance": compliance.SCHEMA} if kind.key in compliance.CHECKED_KINDS else {}
    )
    return schemas.object_schema(
        ["meta", "spec"],
        meta=meta,
        spec=parts["spec"],
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


def parse_scope(level: str, key: str) -> Scope:
    """Return the scope of a level and an id, as query parameters name it. Raises ValueError."""
    if level == Level.CLUSTER:
        return cluster_scope(uuid.UUID(key))
    number = parse_number(key)
    if number is None:
        raise ValueError(key)
    return project_scope(number) if level == Level.PROJECT else department_scope(number)

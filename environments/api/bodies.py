"""Bodies of the REST API about assets: what all of them have under `meta`, read and shown."""

import uuid
from collections.abc import Mapping
from typing import Any

from console.errors import Invalid
from console.typed import Typed
from environments.api import complying
from environments.forms import AssetForm
from environments.kinds import Kind
from environments.models import Asset
from environments.rest import Problems, Rest
from projects.api import schemas
from projects.scopes import TENANT, Level, Scope, of_cluster, of_department, of_project

_TEXTS = ("name", "description")
_PLACED = ("scope", "projectId", "departmentId", "clusterId")
_SHOWN_ONLY = (
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
_ONLY_FALSE = ("autoDelete", "private")
"""What Run:ai's clients always send, with false where nobody asked for it."""
READ = frozenset(f"meta.{name}" for name in (*_TEXTS, *_PLACED, *_SHOWN_ONLY, *_ONLY_FALSE)) | {
    "usedBy",
    "compliance",
}
_LEVELS = {"projectId": Level.PROJECT, "departmentId": Level.DEPARTMENT, "clusterId": Level.CLUSTER}


def read(rest: Rest, body: Any) -> tuple[Typed, int | None]:
    """What a body says as typed into the form, and the version that it says it changes. Raises
    Invalid with all that is wrong.
    """
    if not isinstance(body, Mapping) or any(
        not isinstance(body.get(name) or {}, Mapping) for name in ("meta", "spec")
    ):
        raise Invalid([("body", "The body must be an object with the objects meta and spec.")])
    typed, problems = rest.read(body, READ)
    meta: Mapping[str, Any] = body.get("meta") or {}
    for name in _TEXTS:
        if isinstance(value := meta.get(name), str):
            typed[name] = [value]
        elif value is not None:
            problems.append((f"meta.{name}", f"meta.{name} must be a text."))
    for name in _ONLY_FALSE:
        if meta.get(name) not in (None, False):
            problems.append(
                (
                    f"meta.{name}",
                    f"meta.{name} can only be false: Muster has no such assets. Leave it out.",
                )
            )
    if scope := _scope(meta, problems):
        typed["scope"] = [str(scope)]
    version = meta.get("version")
    if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
        problems.append(("meta.version", "meta.version must be a whole number."))
    if problems:
        raise Invalid(problems)
    return typed, version


def _scope(meta: Mapping[str, Any], problems: Problems) -> Scope | None:
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
        return Scope.read(f"{said}:{ids.get(name, '')}")
    except ValueError:
        problems.append(
            (f"meta.{name}", f"meta.{name} must be given for the scope {said}, and be its id.")
        )
        return None


def shown(kind: Kind, asset: Asset, used: Mapping[str, Any]) -> dict[str, Any]:
    """An asset as the API has it; nothing of a secret."""
    form = kind.form_of(asset)
    assert form.rest is not None
    body = form.rest.shown(kind.typed(asset))
    return {
        "meta": meta_of(kind, asset) | body.pop("meta", {}),
        "spec": body["spec"],
        "usedBy": used,
    }


def meta_of(kind: Kind, asset: Asset) -> dict[str, Any]:
    """What all assets have in an answer."""
    return {
        "id": str(asset.pk),
        "name": asset.name,
        "kind": kind_word(kind, kind.form_of(asset)),
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


def kind_word(kind: Kind, form: type[AssetForm]) -> str:
    return form.subtype or kind.key


def meta_schema(word: str, **more: schemas.Schema) -> schemas.Schema:
    """The meta data of an answer."""
    optional_id = {"type": ["string", "null"]}
    return schemas.obj(
        ["id", "name", "scope", "version"],
        id=schemas.ID,
        name=schemas.TEXT,
        kind=more.pop("kind", schemas.words(word)),
        description=more.pop("description", schemas.TEXT),
        scope=schemas.words(*Level),
        projectId={"type": ["integer", "null"]},
        projectName=optional_id,
        departmentId=optional_id,
        clusterId=optional_id,
        builtIn=schemas.FLAG,
        createdBy=schemas.TEXT,
        createdAt=schemas.MOMENT,
        updatedBy=schemas.TEXT,
        updatedAt=schemas.MOMENT,
        version=schemas.said(schemas.WHOLE, "Raised by every change."),
        **more,
    )


def schema(kind: Kind, form: type[AssetForm]) -> schemas.Schema:
    """An asset of an answer."""
    rest = form.rest
    assert rest is not None
    own = rest.schema["properties"]
    meta = meta_schema(kind_word(kind, form), **own.get("meta", {}).get("properties", {}))
    counted = schemas.obj(
        workloads=schemas.WHOLE, templates=schemas.WHOLE, dataSources=schemas.WHOLE
    )
    more = {"compliance": complying.SCHEMA} if kind.key in complying.KINDS else {}
    return schemas.obj(
        ["meta", "spec"],
        meta=meta,
        spec=_nullable(own.get("spec", schemas.obj())),
        usedBy=counted,
        **more,
    )


def any_schema(kind: Kind) -> schemas.Schema:
    """An asset of an answer, of whichever form."""
    words = [kind_word(kind, form) for form in kind.forms.values()]
    meta = (
        meta_schema(words[0], kind=schemas.words(*words))
        if len(words) > 1
        else meta_schema(words[0])
    )
    return schemas.obj(
        ["meta", "spec"], meta=meta, spec={"type": "object"}, usedBy={"type": "object"}
    )


def meta_asked(**more: schemas.Schema) -> schemas.Schema:
    """The meta data of a body that is sent."""
    return schemas.obj(
        name=schemas.TEXT,
        description=schemas.TEXT,
        scope=schemas.words("tenant", "cluster", "department", "project"),
        projectId=schemas.said(schemas.WHOLE, "Of the scope project."),
        departmentId=schemas.said(schemas.TEXT, "Of the scope department."),
        clusterId=schemas.said(schemas.ID, "Of the scope cluster."),
        version=schemas.said(
            schemas.WHOLE,
            "Of the asset that is changed: 409 where somebody else has changed it since.",
        ),
        **more,
    )


def asking(form: type[AssetForm]) -> schemas.Schema:
    """The body of a creation or a change."""
    rest = form.rest
    assert rest is not None
    own = rest.schema["properties"]
    meta = meta_asked(**own.get("meta", {}).get("properties", {}))
    return schemas.obj(["meta"], meta=meta, spec=_nullable(own.get("spec", schemas.obj())))


def _nullable(schema: schemas.Schema) -> schemas.Schema:
    """The same, of which every part may be null: that it is not given, or has nothing."""
    properties = {
        name: {"anyOf": [part, {"type": "null"}]}
        for name, part in schema.get("properties", {}).items()
    }
    return schema | {"properties": properties}


def scope_of(text: str, key: str) -> Scope:
    """The scope of a level and an id, as the parameters of a list name it. Raises ValueError."""
    if text == Level.CLUSTER:
        return of_cluster(uuid.UUID(key))
    if not (key.isascii() and key.isdigit() and len(key) < 19):
        raise ValueError(key)
    return of_project(int(key)) if text == Level.PROJECT else of_department(int(key))

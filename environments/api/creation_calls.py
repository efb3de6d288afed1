"""An asset as the calls that make it: over REST, and by the `muster` command. Without secrets."""

from collections.abc import Mapping
from typing import Any

from console.shell_commands import CreationCalls, build_command, build_curl, is_typable
from environments import seams
from environments.kinds import AssetKind
from environments.models import Asset, Template
from projects.models import User
from projects.scopes import Level

Body = dict[str, Any]
TEMPLATES_PATH = "workload-templates"


def build_creation_calls(kind: AssetKind, asset: Asset, user: User) -> CreationCalls:
    """Return the calls that make an asset once more, as far as the user may see it."""
    form = kind.get_form(asset)
    rest = form.rest
    if isinstance(asset, Template):
        path, body = TEMPLATES_PATH, seams.TEMPLATE_BODIES.get().build_template_body(asset, user)
    else:
        assert rest is not None
        path, body = f"asset/{rest.path}", rest.serialize_body(kind.build_typed(asset))
    content = _drop_missing(body)
    meta = content.pop("meta", {})
    if asset.description:
        meta["description"] = asset.description
    address = f'"$MUSTER/api/v1/{path}"'
    full_body = {"meta": {"name": asset.name} | _describe_scope(asset) | meta} | content
    return CreationCalls(
        build_curl(address, full_body),
        _build_muster_command(kind, asset, meta, content),
        tuple(part.place for part in rest.parts if part.is_secret) if rest else (),
    )


def _build_muster_command(
    kind: AssetKind, asset: Asset, meta: Mapping[str, Any], content: Body
) -> str:
    words = ["muster", kind.key.replace("-", ""), "create"]
    meta = dict(meta)
    if is_typable(asset.name) and not asset.name.startswith("-"):
        words.append(asset.name)
    else:
        meta["name"] = asset.name
    if kind.has_subtypes:
        words += ["--kind", kind.get_subtype(asset)]
    if asset.project is not None:
        words += ["-p", asset.project.name]
    else:
        scope = _describe_scope(asset)
        words += ["--scope", scope.pop("scope")]
        meta |= scope
    document = ({"meta": meta} if meta else {}) | content
    return build_command([words, ("-f", "-")], document)


def _describe_scope(asset: Asset) -> Body:
    """Return the scope as `meta` has it."""
    scope = asset.scope
    if scope.level is Level.TENANT:
        return {"scope": str(scope.level)}
    return {"scope": str(scope.level), f"{scope.level}Id": str(scope.id)}


def _drop_missing(value: Any) -> Any:
    """Return a body without the values that are missing, and objects that have no others."""
    if not isinstance(value, Mapping):
        return value
    fields = {name: _drop_missing(each) for name, each in value.items()}
    return {name: each for name, each in fields.items() if each is not None and each != {}}

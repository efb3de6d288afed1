"""What can be done to assets, whoever asks."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from console import editing
from console.errors import Clash, NotAllowed
from environments import kinds, links, spreading, uses
from environments.covering import covers
from environments.models import Asset, Credential, DataSource, Template
from projects import access, audit
from projects.models import User
from projects.permissions import Verb
from projects.querysets import beside_names
from projects.scopes import Scope

AnAsset = TypeVar("AnAsset", bound=Asset)

SECRET_CHANGED = "changed"  # noqa: S105 - what the audit log says instead of a secret


def create(model: type[AnAsset], values: Mapping[str, Any], *, scope: Scope, by: User) -> AnAsset:
    """A new asset; `values` are those of its form, judged. Raises NotAllowed or Http404, and Clash
    where the name is taken.
    """
    access.require(by, Verb.CREATE, model.entity, scope)
    asset = model(**values, **scope.columns, created_by=by)
    with transaction.atomic():
        _save(asset)
        _record(audit.Event.CREATE, asset, by, after=_state(asset) | _secret(values))
        _spread(asset, asset.scope)
    return asset


def change(
    asset: Asset, values: Mapping[str, Any], *, scope: Scope, by: User, version: int | None = None
) -> None:
    """Give an asset these values and this scope; workloads made from it stay as they are. Raises as
    `create`.

    `version` is the one that was edited: ChangedMeanwhile where it is not the row's any more. None
    changes whatever is there.
    """
    require_change(asset, by)
    with transaction.atomic():
        locked = _locked(asset)
        require_change(locked, by)
        if scope != locked.scope:
            access.require(by, Verb.CREATE, asset.entity, scope)
        editing.unchanged(locked.version, version, f"{locked.name}")
        _require_cover(locked, scope, by)
        before, scope_before = _state(locked), locked.scope
        for name, value in {**values, **scope.columns}.items():
            setattr(locked, name, value)
        if "secret" in values and isinstance(locked, Credential):
            locked.secret_at = timezone.now()
        locked.version += 1
        locked.updated_by = by
        _save(
            locked,
            {*values, *scope.columns, "version", "updated_by", "updated_at"}
            | ({"secret_at"} if "secret" in values else set()),
        )
        was, now = audit.changed(before, _state(locked) | _secret(values))
        _record(audit.Event.UPDATE, locked, by, before=was, after=now | {"version": locked.version})
        _spread(locked, scope_before, scope)
    asset.refresh_from_db(fields=["version", "updated_at"])


def remove(asset: Asset, by: User, *, version: int | None = None) -> None:
    """Delete an asset; workloads made from it stay as they are. Raises NotAllowed or Http404, and
    Clash while something holds it.
    """
    require_change(asset, by, Verb.DELETE)
    with transaction.atomic():
        locked = _locked(asset)
        require_change(locked, by, Verb.DELETE)
        editing.unchanged(locked.version, version, f"{locked.name}")
        if held := holding(locked, by):
            raise Clash(
                f"{locked.name} cannot be deleted, because it is used by {held.words}. Take it "
                "out there first."
            )
        _record(audit.Event.DELETE, locked, by, before=_state(locked))
        _spread(locked, locked.scope)
        locked.delete()


def end_at(scope: Scope, by: User) -> None:
    """Delete the assets of a scope that is deleted, each with its entry: nobody can choose them any
    more. A few queries for each hundred.

    Asks nobody who may, and no cluster: what is below the scope is gone, or goes.
    """
    with transaction.atomic():
        # Data sources before the credentials that they log in with.
        for kind in sorted(kinds.KINDS, key=lambda each: each.model is Credential):
            rows = kind.model.objects.at(scope).order_by("pk").defer(*kind.deferred)
            if kind.model is DataSource:
                rows = rows.select_related("credential").defer("credential__secret")
            while some := list(rows[: audit.AT_ONCE]):
                gone = [audit.Of(each.pk, each.name, scope, _state(each)) for each in some]
                audit.record_all(
                    audit.Event.DELETE,
                    kind.key,
                    gone,
                    by=by,
                    text=f"It went with its {scope.level}.",
                )
                kind.model.objects.filter(pk__in=[each.pk for each in some]).delete()


def holding(asset: Asset, by: User) -> uses.Uses:
    """What would break without it, as far as `by` may know."""
    return uses.holding(asset, kinds.of(asset).held_by, by)


def may_change(asset: Asset, by: User, verb: Verb = Verb.EDIT) -> bool:
    """Whether to offer it."""
    return not asset.is_built_in and access.may(by, verb, asset.entity, asset.scope)


def require_change(asset: Asset, by: User, verb: Verb = Verb.EDIT) -> None:
    """Raises NotAllowed or Http404 where `by` may not change or delete it."""
    if asset.is_built_in:
        raise NotAllowed(
            f"{asset.name} is built in and cannot be changed. Make a copy and change that."
        )
    access.require(by, verb, asset.entity, asset.scope)


def reach(model: type[AnAsset], key: uuid.UUID, by: User) -> AnAsset | None:
    """The asset, if `by` may see it."""
    return seen(model, by).filter(pk=key).first()


def seen(model: type[AnAsset], by: User) -> models.QuerySet[AnAsset]:
    """The assets that `by` may see, with what pages and the API show of them; a secret is not
    read.
    """
    beside = ("project__cluster", "created_by", "updated_by")
    rows = (
        model.objects.visible_to(by)
        .with_scope()
        .select_related(*beside)
        .defer(*beside_names(model, *beside))
    )
    if issubclass(model, DataSource):
        rows = rows.select_related("credential").defer("credential__secret")
    return rows.defer(*kinds.of(model).deferred)


def _locked(asset: Asset) -> Asset:
    rows = type(asset).objects.select_for_update(of=("self",)).with_scope()
    found: Asset | None = rows.defer(*kinds.of(asset).deferred).filter(pk=asset.pk).first()
    if found is None:
        raise Clash(f"{asset.name} was deleted meanwhile by somebody else. Make a new one.")
    return found


def _save(asset: Asset, fields: Iterable[str] | None = None) -> None:
    try:
        with transaction.atomic():
            asset.save(update_fields=None if fields is None else list(fields))
    except IntegrityError as error:
        raise Clash(
            f"There is one called {asset.name} already: {asset.scope_words}. Choose another name.",
            field="name",
        ) from error
    if isinstance(asset, Template):
        links.renew(asset)


def _spread(asset: Asset, *scopes: Scope) -> None:
    """What is in clusters follows."""
    if isinstance(asset, Credential):
        spreading.soon(*scopes)


def _require_cover(asset: Asset, scope: Scope, by: User) -> None:
    """Raises Clash where a credential would go out of reach of what uses it: its Secret is only
    where it is for use.
    """
    if not isinstance(asset, Credential) or covers(scope, asset.scope):
        return
    if lost := uses.beyond(asset, scope, by):
        told = (
            f"{asset.name} cannot be for that scope alone, because it is used beyond it by "
            f"{lost.words}."
        )
        raise Clash(f"{told} Choose a wider scope, or take it out there first.", field="scope")


def _state(asset: Asset) -> dict[str, Any]:
    """What the audit log compares: JSON values as they are, whose secrets it leaves out by their
    names, and which it then cuts.
    """
    kind = kinds.of(asset)
    found = {name: _plain(value) for name, value in kind.copied(asset).items()}
    return {
        "name": asset.name,
        "description": asset.description,
        "scope": str(asset.scope),
        **found,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, models.Model):
        return str(value)
    # A list or an object has names in it, which tell the audit log what is secret: it stays one.
    return value if value is None or isinstance(value, bool | int | list | dict) else str(value)


def _secret(values: Mapping[str, Any]) -> dict[str, str]:
    return {"secret": SECRET_CHANGED} if values.get("secret") else {}


def _record(
    event: audit.Event,
    asset: Asset,
    by: User,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    key = kinds.of(asset).key
    audit.record(
        event,
        key,
        by=by,
        id=asset.pk,
        name=asset.name,
        scope=asset.scope,
        before=before,
        after=after,
    )

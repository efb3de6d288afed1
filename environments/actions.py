"""What can be done to assets, whoever asks."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from console import edit_conflicts
from console.errors import Clash, NotAllowed
from environments import credential_provisioning, kinds, template_links, uses
from environments.models import Asset, Credential, DataSource, Template
from environments.scope_coverage import scope_covers
from projects import access, audit
from projects.models import User
from projects.permissions import Verb
from projects.querysets import list_fields_beside_names
from projects.scopes import Scope

AssetT = TypeVar("AssetT", bound=Asset)

SECRET_CHANGED = "changed"  # noqa: S105 - what the audit log says instead of a secret


def create(model: type[AssetT], values: Mapping[str, Any], *, scope: Scope, user: User) -> AssetT:
    """A new asset; `values` are those of its form, judged. Raises NotAllowed or Http404, and Clash
    where the name is taken.
    """
    access.require(user, Verb.CREATE, model.entity, scope)
    asset = model(**values, **scope.columns, created_by=user)
    with transaction.atomic():
        _save_asset(asset)
        _record_event(
            audit.Event.CREATE, asset, user, after=_serialize_state(asset) | _mask_secret(values)
        )
        _provision_credential(asset, asset.scope)
    return asset


def change(
    asset: Asset, values: Mapping[str, Any], *, scope: Scope, user: User, version: int | None = None
) -> None:
    """Give an asset these values and this scope; workloads made from it stay as they are. Raises as
    `create`.

    `version` is the one that was edited: ChangedMeanwhile where it is not the row's any more. None
    changes whatever is there.
    """
    require_change(asset, user)
    with transaction.atomic():
        locked = _lock_asset(asset)
        require_change(locked, user)
        if scope != locked.scope:
            access.require(user, Verb.CREATE, asset.entity, scope)
        edit_conflicts.check_version(locked.version, version, f"{locked.name}")
        _check_coverage(locked, scope, user)
        before, scope_before = _serialize_state(locked), locked.scope
        for name, value in {**values, **scope.columns}.items():
            setattr(locked, name, value)
        if "secret" in values and isinstance(locked, Credential):
            locked.secret_at = timezone.now()
        locked.version += 1
        locked.updated_by = user
        _save_asset(
            locked,
            {*values, *scope.columns, "version", "updated_by", "updated_at"}
            | ({"secret_at"} if "secret" in values else set()),
        )
        was, now = audit.select_changes(before, _serialize_state(locked) | _mask_secret(values))
        _record_event(
            audit.Event.UPDATE, locked, user, before=was, after=now | {"version": locked.version}
        )
        _provision_credential(locked, scope_before, scope)
    asset.refresh_from_db(fields=["version", "updated_at"])


def remove(asset: Asset, user: User, *, version: int | None = None) -> None:
    """Delete an asset; workloads made from it stay as they are. Raises NotAllowed or Http404, and
    Clash while something holds it.
    """
    require_change(asset, user, Verb.DELETE)
    with transaction.atomic():
        locked = _lock_asset(asset)
        require_change(locked, user, Verb.DELETE)
        edit_conflicts.check_version(locked.version, version, f"{locked.name}")
        if held := find_uses(locked, user):
            raise Clash(
                f"{locked.name} cannot be deleted, because it is used by {held.description}. Take "
                "it out there first."
            )
        _record_event(audit.Event.DELETE, locked, user, before=_serialize_state(locked))
        _provision_credential(locked, locked.scope)
        locked.delete()


def delete_scope_assets(scope: Scope, user: User) -> None:
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
            while some := list(rows[: audit.BATCH_SIZE]):
                gone = [
                    audit.AuditedObject(each.pk, each.name, scope, _serialize_state(each))
                    for each in some
                ]
                audit.record_all(
                    audit.Event.DELETE,
                    kind.key,
                    gone,
                    by=user,
                    text=f"It went with its {scope.level}.",
                )
                kind.model.objects.filter(pk__in=[each.pk for each in some]).delete()


def find_uses(asset: Asset, user: User) -> uses.Uses:
    """What would break without it, as far as `by` may know."""
    return uses.find_uses(asset, kinds.get_kind(asset).blocked_by, user)


def may_change(asset: Asset, user: User, verb: Verb = Verb.EDIT) -> bool:
    """Whether to offer it."""
    return not asset.is_built_in and access.may(user, verb, asset.entity, asset.scope)


def require_change(asset: Asset, user: User, verb: Verb = Verb.EDIT) -> None:
    """Raises NotAllowed or Http404 where `by` may not change or delete it."""
    if asset.is_built_in:
        raise NotAllowed(
            f"{asset.name} is built in and cannot be changed. Make a copy and change that."
        )
    access.require(user, verb, asset.entity, asset.scope)


def find_asset(model: type[AssetT], key: uuid.UUID, user: User) -> AssetT | None:
    """The asset, if `by` may see it."""
    return list_visible(model, user).filter(pk=key).first()


def list_visible(model: type[AssetT], user: User) -> models.QuerySet[AssetT]:
    """The assets that `by` may see, with what pages and the API show of them; a secret is not
    read.
    """
    beside = ("project__cluster", "created_by", "updated_by")
    rows = (
        model.objects.visible_to(user)
        .with_scope()
        .select_related(*beside)
        .defer(*list_fields_beside_names(model, *beside))
    )
    if issubclass(model, DataSource):
        rows = rows.select_related("credential").defer("credential__secret")
    return rows.defer(*kinds.get_kind(model).deferred)


def _lock_asset(asset: Asset) -> Asset:
    rows = type(asset).objects.select_for_update(of=("self",)).with_scope()
    found: Asset | None = rows.defer(*kinds.get_kind(asset).deferred).filter(pk=asset.pk).first()
    if found is None:
        raise Clash(f"{asset.name} was deleted meanwhile by somebody else. Make a new one.")
    return found


def _save_asset(asset: Asset, fields: Iterable[str] | None = None) -> None:
    try:
        with transaction.atomic():
            asset.save(update_fields=None if fields is None else list(fields))
    except IntegrityError as error:
        raise Clash(
            f"There is one called {asset.name} already: {asset.scope_words}. Choose another name.",
            field="name",
        ) from error
    if isinstance(asset, Template):
        template_links.update_links(asset)


def _provision_credential(asset: Asset, *scopes: Scope) -> None:
    """What is in clusters follows."""
    if isinstance(asset, Credential):
        credential_provisioning.provision_scopes(*scopes)


def _check_coverage(asset: Asset, scope: Scope, user: User) -> None:
    """Raises Clash where a credential would go out of reach of what uses it: its Secret is only
    where it is for use.
    """
    if not isinstance(asset, Credential) or scope_covers(scope, asset.scope):
        return
    if lost := uses.find_uses_outside(asset, scope, user):
        told = (
            f"{asset.name} cannot be for that scope alone, because it is used beyond it by "
            f"{lost.description}."
        )
        raise Clash(f"{told} Choose a wider scope, or take it out there first.", field="scope")


def _serialize_state(asset: Asset) -> dict[str, Any]:
    """What the audit log compares: JSON values as they are, whose secrets it leaves out by their
    names, and which it then cuts.
    """
    kind = kinds.get_kind(asset)
    found = {name: _simplify_value(value) for name, value in kind.get_copied_values(asset).items()}
    return {
        "name": asset.name,
        "description": asset.description,
        "scope": str(asset.scope),
        **found,
    }


def _simplify_value(value: Any) -> Any:
    if isinstance(value, models.Model):
        return str(value)
    # A list or an object has names in it, which tell the audit log what is secret: it stays one.
    return value if value is None or isinstance(value, bool | int | list | dict) else str(value)


def _mask_secret(values: Mapping[str, Any]) -> dict[str, str]:
    return {"secret": SECRET_CHANGED} if values.get("secret") else {}


def _record_event(
    event: audit.Event,
    asset: Asset,
    user: User,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    key = kinds.get_kind(asset).key
    audit.record(
        event,
        key,
        by=user,
        id=asset.pk,
        name=asset.name,
        scope=asset.scope,
        before=before,
        after=after,
    )

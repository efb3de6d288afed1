"""Changes of assets and who may make them, for pages and the REST API alike."""

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
from projects import access, audit, scope_choices
from projects.models import User
from projects.permissions import Verb
from projects.querysets import list_fields_beside_names
from projects.scopes import Scope

AssetT = TypeVar("AssetT", bound=Asset)

SECRET_CHANGED = "changed"  # noqa: S105 - what the audit log says instead of a secret
"""What the audit log says instead of a secret."""


def create(model: type[AssetT], values: Mapping[str, Any], *, scope: Scope, user: User) -> AssetT:
    """Create an asset from the validated values of its form.

    Raises NotAllowed or Http404, and Clash where the name is taken, or the scope was deleted.
    """
    access.require(user, Verb.CREATE, model.entity, scope)
    asset = model(**values, **scope.columns, created_by=user)
    with transaction.atomic():
        scope_choices.require_scope(scope)
        _require_credential(asset, scope)
        _save_asset(asset, user)
        _record_event(
            audit.Event.CREATE, asset, user, after=_serialize_state(asset) | _mask_secret(values)
        )
        _provision_credential(asset, asset.scope)
    return asset


def change(
    asset: Asset, values: Mapping[str, Any], *, scope: Scope, user: User, version: int | None = None
) -> None:
    """Give an asset these values and this scope; workloads made from it stay as they are.

    `version` is the one that was edited: raises ChangedMeanwhile where the row has another by now.
    None changes whatever is there. Raises as `create`.
    """
    require_change(asset, user)
    if scope != asset.scope:
        access.require(user, Verb.CREATE, asset.entity, scope)
    with transaction.atomic():
        # Before any asset, as where one is created and where a scope is deleted.
        scope_choices.require_scope(scope)
        locked = _lock_asset(asset)
        # Again, on the locked row: its scope may have changed since it was loaded.
        require_change(locked, user)
        if scope != locked.scope:
            access.require(user, Verb.CREATE, asset.entity, scope)
        edit_conflicts.check_version(locked.version, version, f"{locked.name}")
        _check_coverage(locked, scope, user)
        before, scope_before = _serialize_state(locked), locked.scope
        columns_before = edit_conflicts.get_edited_columns(locked)
        for name, value in {**values, **scope.columns}.items():
            setattr(locked, name, value)
        _require_credential(locked, scope)
        if edit_conflicts.get_edited_columns(locked) != columns_before:
            if "secret" in values and isinstance(locked, Credential):
                locked.secret_at = timezone.now()
            locked.version += 1
            locked.updated_by = user
            _save_asset(
                locked,
                user,
                {*values, *scope.columns, "version", "updated_by", "updated_at"}
                | ({"secret_at"} if "secret" in values else set()),
            )
            was, now = audit.select_changes(before, _serialize_state(locked) | _mask_secret(values))
            _record_event(
                audit.Event.UPDATE,
                locked,
                user,
                before=was,
                after=now | {"version": locked.version},
            )
        _provision_credential(locked, scope_before, scope)
    # Where nothing was saved, too: somebody else may have changed it since it was loaded.
    asset.refresh_from_db(fields=["version", "updated_at"])


def remove(asset: Asset, user: User, *, version: int | None = None) -> None:
    """Delete an asset; workloads made from it stay as they are.

    Raises NotAllowed or Http404, and Clash while something uses it.
    """
    require_change(asset, user, Verb.DELETE)
    with transaction.atomic():
        locked = _lock_asset(asset)
        require_change(locked, user, Verb.DELETE)
        edit_conflicts.check_version(locked.version, version, f"{locked.name}")
        _require_no_uses(locked, user)
        _record_event(audit.Event.DELETE, locked, user, before=_serialize_state(locked))
        _provision_credential(locked, locked.scope)
        try:
            locked.delete()
        except models.RestrictedError:
            # Something took it since: what raises here undoes the transaction.
            _require_no_uses(locked, user)
            raise


def delete_scope_assets(scope: Scope, user: User) -> None:
    """Delete the assets of a scope that is being deleted, each with its audit entry.

    A few queries for each hundred. Checks no permission and asks no cluster: what is below the
    scope is gone, or goes. Raises Clash where something takes one of its credentials meanwhile.
    """
    with transaction.atomic():
        # Data sources before the credentials that they log in with: the reference restricts.
        for kind in sorted(kinds.KINDS, key=lambda each: each.model is Credential):
            rows = kind.model.objects.at(scope).order_by("pk").defer(*kind.deferred)
            if kind.model is DataSource:
                rows = rows.select_related("credential").defer("credential__secret")
            while batch := list(rows[: audit.BATCH_SIZE]):
                audit_objects = [
                    audit.AuditedObject(each.pk, each.name, scope, _serialize_state(each))
                    for each in batch
                ]
                audit.record_all(
                    audit.Event.DELETE,
                    kind.key,
                    audit_objects,
                    by=user,
                    text=f"It went with its {scope.level}.",
                )
                _delete_rows(kind.model.objects.filter(pk__in=[each.pk for each in batch]))


def _delete_rows(rows: models.QuerySet[Any]) -> None:
    try:
        rows.delete()
    except models.RestrictedError as error:
        raise Clash(
            "Meanwhile somebody chose one of its credentials for a data source, so nothing was "
            "deleted. Try again: what stands in the way then is named."
        ) from error


def find_uses(asset: Asset, user: User) -> uses.Uses:
    """Return what would break without the asset, as far as the user may know."""
    return uses.find_uses(asset, kinds.get_kind(asset).blocked_by, user)


def _require_no_uses(asset: Asset, user: User) -> None:
    """Raise Clash, which names them, where something would break without the asset."""
    if found_uses := find_uses(asset, user):
        raise Clash(
            f"{asset.name} cannot be deleted, because it is used by {found_uses.description}. "
            "Take it out there first."
        )


def may_change(asset: Asset, user: User, verb: Verb = Verb.EDIT) -> bool:
    """Return whether to offer the user to change (or delete) it."""
    return not asset.is_built_in and access.is_permitted(user, verb, asset.entity, asset.scope)


def require_change(asset: Asset, user: User, verb: Verb = Verb.EDIT) -> None:
    """Raise NotAllowed or Http404 if the user may not change or delete it."""
    if asset.is_built_in:
        raise NotAllowed(
            f"{asset.name} is built in and cannot be changed. Make a copy and change that."
        )
    access.require(user, verb, asset.entity, asset.scope)


def find_asset(model: type[AssetT], key: uuid.UUID, user: User) -> AssetT | None:
    """Return the asset if the user may see it, else None."""
    return list_visible(model, user).filter(pk=key).first()


def list_visible(model: type[AssetT], user: User) -> models.QuerySet[AssetT]:
    """Return the assets that the user may see, with what pages and the API show of them.

    A secret is not loaded.
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
    locked: Asset | None = rows.defer(*kinds.get_kind(asset).deferred).filter(pk=asset.pk).first()
    if locked is None:
        raise Clash(f"{asset.name} was deleted meanwhile by somebody else. Make a new one.")
    return locked


def _require_credential(asset: Asset, scope: Scope) -> None:
    """Check again that a data source's credential is there and for use in its scope; lock it.

    It was chosen before the transaction, and who deletes it locks it too. Raises Clash.
    """
    if not isinstance(asset, DataSource) or asset.credential is None:
        return
    name, rows = asset.credential.name, Credential.objects.select_for_update(no_key=True)
    credential = rows.defer("secret").filter(pk=asset.credential_id).first()
    if credential is None or not scope_covers(credential.scope, scope):
        raise Clash(
            f"The credential {name} was meanwhile deleted, or is not for use there any more. "
            "Choose another one.",
            field="credential",
        )


def _save_asset(asset: Asset, user: User, fields: Iterable[str] | None = None) -> None:
    try:
        # A savepoint: PostgreSQL refuses all further queries of a transaction after an error.
        with transaction.atomic():
            asset.save(update_fields=None if fields is None else list(fields))
    except IntegrityError as error:
        raise Clash(
            f"There is one called {asset.name} already: {asset.scope_words}. Choose another name.",
            field="name",
        ) from error
    if isinstance(asset, Template):
        template_links.update_links(asset, user)


def _provision_credential(asset: Asset, *scopes: Scope) -> None:
    """Update a credential's Secret in the clusters; nothing for other assets."""
    if isinstance(asset, Credential):
        credential_provisioning.provision_scopes(*scopes)


def _check_coverage(asset: Asset, scope: Scope, user: User) -> None:
    """Raise Clash if a new scope excludes projects that use the credential.

    Its Secret is only in the namespaces of its scope.
    """
    if not isinstance(asset, Credential) or scope_covers(scope, asset.scope):
        return
    if lost_uses := uses.find_uses_outside(asset, scope, user):
        text = (
            f"{asset.name} cannot be for that scope alone, because it is used beyond it by "
            f"{lost_uses.description}."
        )
        raise Clash(f"{text} Choose a wider scope, or take it out there first.", field="scope")


def _serialize_state(asset: Asset) -> dict[str, Any]:
    """Return what the audit log compares.

    JSON values stay as they are: the log leaves out secrets by their names, and then shortens the
    values.
    """
    kind = kinds.get_kind(asset)
    values = {name: _simplify_value(value) for name, value in kind.get_copied_values(asset).items()}
    return {
        "name": asset.name,
        "description": asset.description,
        "scope": str(asset.scope),
        **values,
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

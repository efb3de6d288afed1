"""What can be done to assets, whoever asks. Everybody's belong to the administrators; a project's to those who may launch there."""

import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

from django.db import IntegrityError, transaction

from console.errors import Clash, NotAllowed
from environments.models import Asset
from projects import access
from projects.access import Action
from projects.models import Project, User

AnAsset = TypeVar("AnAsset", bound=Asset)


def create(model: type[AnAsset], values: Mapping[str, Any], *, project: Project | None, by: User) -> AnAsset:
    """A new asset; `values` are those of its form, judged. Raises NotAllowed or Http404, and Clash where the name is taken."""
    _require(by, project.pk if project else None)
    asset = model(**values, project=project, created_by=by)
    _save(asset)
    return asset


def change(asset: Asset, values: Mapping[str, Any], *, project: Project | None, by: User) -> None:
    """Give an asset these values and this scope; workloads made from it stay as they are. Raises as `create`."""
    require_change(asset, by)
    _require(by, project.pk if project else None)
    for name, value in values.items():
        setattr(asset, name, value)
    asset.project = project
    _save(asset)


def remove(asset: Asset, by: User) -> None:
    """Delete an asset; workloads made from it stay as they are. Raises NotAllowed or Http404."""
    require_change(asset, by)
    asset.delete()


def may_change(asset: Asset, by: User, launching: frozenset[int]) -> bool:
    """Whether to offer it; `launching` are the ids of the projects where `by` may launch."""
    return not asset.is_built_in and (by.is_superuser or asset.project_id in launching)


def require_change(asset: Asset, by: User) -> None:
    """Raises NotAllowed or Http404 where `by` may not change or delete it."""
    if asset.is_built_in:
        raise NotAllowed(f"{asset.name} is built in and cannot be changed. Make a copy and change that.")
    _require(by, asset.project_id)


def _require(by: User, project: int | None) -> None:
    if project is None:
        access.administrator(by)
    else:
        access.require(by, Action.SUBMIT, project)


def _save(asset: Asset) -> None:
    try:
        with transaction.atomic():
            asset.save()
    except IntegrityError as error:
        scope = "everybody" if asset.project is None else f"project {asset.project.name}"
        raise Clash(f"There is one called {asset.name} for {scope} already. Choose another name.", field="name") from error


def reach(model: type[AnAsset], key: uuid.UUID, by: User) -> AnAsset | None:
    """The asset, if `by` may see it."""
    return model.objects.visible_to(by).select_related("project").filter(pk=key).first()

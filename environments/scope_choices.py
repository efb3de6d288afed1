"""The scopes an asset may be given, for forms and request bodies; and details of listed assets."""

from collections.abc import Sequence
from typing import Any

from environments import actions, uses
from environments.kinds import CREDENTIAL, AssetKind
from environments.models import Asset
from projects.models import User
from projects.permissions import Permission, Verb
from projects.scope_choices import ScopeChoices


def get_create_permission(kind: AssetKind) -> Permission:
    return Permission(kind.model.entity, Verb.CREATE)


def list_scope_choices(user: User, kind: AssetKind, asset: Asset | None = None) -> ScopeChoices:
    """Return the scopes that a form offers.

    These are the ones where the user may create one, and the asset's own.
    """
    choices = ScopeChoices(user, get_create_permission(kind))
    if asset is not None and asset.scope not in {scope for scope, _ in choices}:
        choices.insert(0, (asset.scope, asset.scope_words))
    return choices


def annotate_rows(kind: AssetKind, rows: Sequence[Any], user: User) -> None:
    """Put on the rows where they are used, as far as the user sees it, and what the user may do.

    Three queries at most.
    """
    ids = [row.pk for row in rows]
    workloads = uses.count_workloads(ids, user) if kind.is_counted and ids else {}
    templates = uses.count_templates(ids, user) if kind.is_counted and ids else {}
    sources = uses.count_data_sources(ids, user) if kind is CREDENTIAL and ids else {}
    for row in rows:
        row.workloads, row.templates, row.sources = (
            counts.get(row.pk, 0) for counts in (workloads, templates, sources)
        )
        row.may_edit = actions.may_change(row, user)
        row.may_delete = actions.may_change(row, user, Verb.DELETE)

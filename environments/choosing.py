"""Where an asset may be, as forms and bodies offer it; and what lists put on the rows that they
show.
"""

from collections.abc import Sequence
from typing import Any

from environments import actions, uses
from environments.kinds import CREDENTIAL, Kind
from environments.models import Asset
from projects.choosing import Choice, scopes
from projects.models import User
from projects.permissions import Permission, Verb


def creating(kind: Kind) -> Permission:
    return Permission(kind.model.entity, Verb.CREATE)


def choices(user: User, kind: Kind, asset: Asset | None = None) -> Sequence[Choice]:
    """The scopes that a form offers: where `user` may make one, and the one where `asset` is."""
    found = list(scopes(user, creating(kind)))
    if asset is not None and asset.scope not in {scope for scope, _ in found}:
        found.insert(0, (asset.scope, asset.scope_words))
    return found


def prepare(kind: Kind, rows: Sequence[Any], user: User) -> None:
    """Put on the rows where they are used, as far as the user sees it, and what the user may do to
    them. Three queries at most.
    """
    ids = [row.pk for row in rows]
    workloads = uses.workload_counts(ids, user) if kind.is_counted and ids else {}
    templates = uses.template_counts(ids, user) if kind.is_counted and ids else {}
    sources = uses.source_counts(ids, user) if kind is CREDENTIAL and ids else {}
    for row in rows:
        row.workloads, row.templates, row.sources = (
            counts.get(row.pk, 0) for counts in (workloads, templates, sources)
        )
        row.may_edit = actions.may_change(row, user)
        row.may_delete = actions.may_change(row, user, Verb.DELETE)

"""The page of one asset: its values, its version, its history, and where it is used."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from environments import actions, uses
from environments.api.creation_calls import build_creation_calls
from environments.forms import AssetForm
from environments.kinds import CREDENTIAL, AssetKind
from environments.models import Asset, Credential
from environments.scope_choices import get_create_permission
from environments.views.asset_lookup import get_asset
from projects.http import Request
from projects.models import AuditEntry
from projects.permissions import Verb

MAX_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Fact:
    """A field as the page shows it; several values are several lines."""

    label: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the audit log: what was done, and to which fields."""

    entry: AuditEntry
    fields: str


@require_GET
def details(request: Request, kind: AssetKind, key: uuid.UUID) -> HttpResponse:
    """Show one asset to a user who may see it."""
    asset = get_asset(request, kind, key)
    form = kind.get_form(asset)(
        kind.build_typed(asset),
        scopes=[(asset.scope, asset.scope_words)],
        by=request.user,
        asset=asset,
        changes=True,
    )
    used = []
    if kind.is_counted:
        used += [
            *uses.list_workloads(asset, request.user),
            *uses.list_templates(asset, request.user),
        ]
    if kind is CREDENTIAL:
        used += uses.list_data_sources(asset, request.user)
    context = {
        "kind": kind,
        "asset": asset,
        "facts": _list_facts(form, asset),
        "advice": form.advice,
        "used": used,
        "most_used": uses.MAX_USES,
        "changes": _list_changes(kind, asset),
        "calls": build_creation_calls(kind, asset, request.user),
        "may_create": request.user.rights.may_anywhere(get_create_permission(kind)),
        "may_edit": actions.may_change(asset, request.user),
        "may_delete": actions.may_change(asset, request.user, Verb.DELETE),
    }
    return render(request, "environments/details.html", context)


def _list_facts(form: AssetForm, asset: Asset) -> Sequence[Fact]:
    facts = [Fact("Type", [form.label])] if form.label else []
    facts += [
        Fact(str(each.label), _describe_value(form, each.name))
        for each in form.own_fields
        if each.name not in form.secret_fields
    ]
    if form.rows is not None:
        # A row of a secret has its name only.
        lines = [
            "=".join(filter(None, (str(bound.value() or "") for bound in row)))
            for row in form.rows.filled_rows
        ]
        facts.append(Fact(form.rows.name.capitalize(), lines))
    if isinstance(asset, Credential):
        facts.append(Fact("Secret", ["Stored; it is never shown"]))
    return [fact for fact in facts if any(fact.values)]


def _describe_value(form: AssetForm, name: str) -> Sequence[str]:
    """Return the value of a field, choices by their words."""
    field, value = form.fields[name], form[name].value()
    if isinstance(value, bool):
        return ["Yes"] if value else []
    choices = {str(key): str(words) for key, words in getattr(field, "choices", ())}
    values = value if isinstance(value, list) else [value]
    return [choices.get(str(each), str(each)) for each in values if each not in (None, "")]


def _list_changes(kind: AssetKind, asset: Asset) -> Sequence[Change]:
    entries = AuditEntry.objects.filter(entity=kind.key, entity_id=str(asset.pk)).order_by(
        "-at", "-id"
    )[:MAX_CHANGES]
    return [
        Change(
            each,
            ", ".join(name.replace("_", " ") for name in (each.before or {}) if name != "version"),
        )
        for each in entries
    ]

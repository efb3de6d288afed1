"""The forms of assets (new, change, copy) and the question before one is deleted."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console import edit_conflicts
from console.errors import Clash
from console.http import redirect_with_message
from console.questions import Question, render_question
from console.typed_forms import TypedValues, add_row, parse_typed, remove_row
from environments import actions
from environments.forms import AssetForm, build_defaults, choose_first_scope
from environments.kinds import AssetKind
from environments.models import Asset
from environments.scope_choices import list_scope_choices
from environments.views.asset_lookup import get_asset
from projects import access
from projects.http import Request
from projects.permissions import Verb


@dataclass(frozen=True, slots=True)
class FormTask:
    """What a form is for: a new asset, perhaps as a copy of `asset`, or a change of `asset`."""

    kind: AssetKind
    form: type[AssetForm]
    start: TypedValues
    asset: Asset | None = None
    is_change: bool = False


@require_http_methods(["GET", "POST"])
@never_cache
def new(request: Request, kind: AssetKind, subtype: str = "") -> HttpResponse:
    """Create an asset; of a kind with several subtypes, one of these is chosen first."""
    access.require_anywhere(request.user, Verb.CREATE, kind.model.entity)
    if kind.new_url and request.method == "GET":
        return redirect(kind.new_url)
    if kind.has_subtypes and not subtype:
        context = {
            "kind": kind,
            "subtypes": [
                (reverse(f"{kind.url}-new-of", args=[name]), form.label)
                for name, form in kind.forms.items()
            ],
            "back": reverse(kind.name),
            "back_words": kind.title,
        }
        return render(request, "environments/subtypes.html", context)
    if subtype not in kind.forms:
        raise Http404(f"There is no such {kind.noun}.")
    form = kind.forms[subtype]
    return _handle_form(
        request,
        FormTask(
            kind,
            form,
            build_defaults(form, choose_first_scope(form, list_scope_choices(request.user, kind))),
        ),
    )


@require_http_methods(["GET", "POST"])
@never_cache
def edit(request: Request, kind: AssetKind, key: uuid.UUID) -> HttpResponse:
    """Change an asset; workloads made from it stay as they are."""
    asset = get_asset(request, kind, key)
    actions.require_change(asset, request.user)
    return _handle_form(
        request,
        FormTask(kind, kind.get_form(asset), kind.build_typed(asset), asset, is_change=True),
    )


@require_http_methods(["GET", "POST"])
@never_cache
def copy(request: Request, kind: AssetKind, key: uuid.UUID) -> HttpResponse:
    """Create an asset that starts as another is."""
    asset = get_asset(request, kind, key)
    access.require_anywhere(request.user, Verb.CREATE, kind.model.entity)
    scopes = list_scope_choices(request.user, kind)
    typed = kind.build_typed(asset)
    is_allowed = scopes.find(typed["scope"][0]) is not None
    scope = typed["scope"] if is_allowed else [choose_first_scope(kind.get_form(asset), scopes)]
    return _handle_form(
        request,
        FormTask(
            kind,
            kind.get_form(asset),
            typed | {"name": [f"{asset.name[:58]}-copy"], "scope": scope},
            asset,
        ),
    )


@require_http_methods(["GET", "POST"])
@never_cache
def delete(request: Request, kind: AssetKind, key: uuid.UUID) -> HttpResponse:
    """Ask, and then delete; if something uses the asset, say what."""
    asset = get_asset(request, kind, key)
    actions.require_change(asset, request.user, Verb.DELETE)
    if request.method == "POST":
        actions.remove(asset, request.user)
        return redirect_with_message(
            request, reverse(kind.name), f"The {kind.noun} {asset.name} was deleted."
        )
    uses = actions.find_uses(asset, request.user)
    question = Question(
        title=f"Delete {asset.name}",
        button="Delete",
        crumbs=[(reverse(kind.name), kind.title)],
        template="environments/_delete_words.html",
        is_blocked=bool(uses),
        is_answered_in_place=False,
    )
    return render_question(request, question, {"kind": kind, "held": uses})


def _handle_form(request: Request, task: FormTask) -> HttpResponse:
    """Answer with the form as it starts, or as it was sent.

    A sent form is shown with a row more or less, with errors beside their fields, or saved.
    """
    data = parse_typed(request.POST, ("add", "remove")) if request.method == "POST" else task.start
    form = _bind_form(request, task, data)
    if request.method != "POST":
        return _render_form(request, task, form)
    if "add" in request.POST and form.rows is not None:
        return _render_form(request, task, _bind_form(request, task, add_row(data, form.rows)))
    if "remove" in request.POST:
        return _render_form(
            request, task, _bind_form(request, task, remove_row(data, request.POST["remove"]))
        )
    if not form.validate():
        return _render_form(request, task, form, status=422)
    try:
        saved = _save_form(request, task, form)
    except edit_conflicts.ChangedMeanwhile:
        return _render_form(request, task, form, status=409)
    except Clash as clash:
        form.add_error_once(clash.field or None, clash.text)
        return _render_form(request, task, form, status=422)
    messages.success(request, f"The {task.kind.noun} {saved} was saved.")
    return redirect(task.kind.name)


def _save_form(request: Request, task: FormTask, form: AssetForm) -> str:
    if task.is_change and task.asset is not None:
        version = edit_conflicts.parse_started_version(request.POST)
        actions.change(
            task.asset, form.values, scope=form.asset_scope, user=request.user, version=version
        )
    else:
        actions.create(form.model, form.values, scope=form.asset_scope, user=request.user)
    return str(form.values["name"])


def _render_form(
    request: Request, task: FormTask, form: AssetForm, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "kind": task.kind,
        "asset": task.asset if task.is_change else None,
        "form": form,
    }
    if task.is_change and task.asset is not None:
        context |= _build_conflict_context(request, task, form, is_late=status == 409)
    return render(request, "environments/form.html", context, status=status)


def _build_conflict_context(
    request: Request, task: FormTask, form: AssetForm, *, is_late: bool
) -> dict[str, Any]:
    """Return the signed start of the form, and after a conflict what changed meanwhile."""
    assert task.asset is not None
    if request.method == "POST" and not is_late:
        # Shown again for another reason: it still starts from what it started from.
        return {"started_from": request.POST.get(edit_conflicts.START_FIELD, "")}
    current_asset = get_asset(request, task.kind, task.asset.pk)
    sent = request.POST if is_late else None
    return edit_conflicts.build_conflict_context(
        current_asset.version,
        task.kind.build_typed(current_asset),
        sent=sent,
        form=form,
        changed_by=current_asset.updated_by,
        changed_at=current_asset.updated_at,
    )


def _bind_form(request: Request, task: FormTask, data: TypedValues) -> AssetForm:
    scopes = list_scope_choices(request.user, task.kind, task.asset if task.is_change else None)
    return task.form(data, scopes=scopes, by=request.user, asset=task.asset, changes=task.is_change)

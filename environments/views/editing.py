"""The forms of assets: a new one, a change, a copy; and the question before one is deleted."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console import editing
from console.errors import Clash
from console.http import onward, page
from console.typed import Typed, typed, with_row, without_row
from environments import actions
from environments.choosing import choices
from environments.forms import AssetForm, defaults_of, first_scope
from environments.kinds import Kind
from environments.models import Asset
from environments.views.reaching import reached
from projects import access
from projects.http import Request
from projects.permissions import Verb


@dataclass(frozen=True, slots=True)
class Task:
    """What a form is for: a new asset of a form, perhaps as a copy of `asset`, or a change of
    that.
    """

    kind: Kind
    form: type[AssetForm]
    start: Typed
    asset: Asset | None = None
    changes: bool = False


@require_http_methods(["GET", "POST"])
@never_cache
def new(request: Request, kind: Kind, subtype: str = "") -> HttpResponse:
    """A new one; of a kind that has several subtypes, one of these is chosen first."""
    access.anywhere(request.user, Verb.CREATE, kind.model.entity)
    if kind.new_url and request.method == "GET":
        return redirect(kind.new_url)
    if kind.has_subtypes and not subtype:
        subtypes = [(name, form.label) for name, form in kind.forms.items()]
        return render(request, "environments/subtypes.html", {"kind": kind, "subtypes": subtypes})
    if subtype not in kind.forms:
        raise Http404(f"There is no such {kind.noun}.")
    form = kind.forms[subtype]
    return _form(
        request, Task(kind, form, defaults_of(form, first_scope(form, choices(request.user, kind))))
    )


@require_http_methods(["GET", "POST"])
@never_cache
def edit(request: Request, kind: Kind, key: uuid.UUID) -> HttpResponse:
    """Change one; workloads made from it stay as they are."""
    asset = reached(request, kind, key)
    actions.require_change(asset, request.user)
    return _form(request, Task(kind, kind.form_of(asset), kind.typed(asset), asset, changes=True))


@require_http_methods(["GET", "POST"])
@never_cache
def copy(request: Request, kind: Kind, key: uuid.UUID) -> HttpResponse:
    """A new one that starts as another is."""
    asset = reached(request, kind, key)
    access.anywhere(request.user, Verb.CREATE, kind.model.entity)
    scopes = choices(request.user, kind)
    was = kind.typed(asset)
    is_allowed = was["scope"][0] in {str(scope) for scope, _ in scopes}
    scope = was["scope"] if is_allowed else [first_scope(kind.form_of(asset), scopes)]
    return _form(
        request,
        Task(
            kind,
            kind.form_of(asset),
            was | {"name": [f"{asset.name[:58]}-copy"], "scope": scope},
            asset,
        ),
    )


@require_http_methods(["GET", "POST"])
@never_cache
def delete(request: Request, kind: Kind, key: uuid.UUID) -> HttpResponse:
    """Ask, and then delete; where something holds it, say what."""
    asset = reached(request, kind, key)
    actions.require_change(asset, request.user, Verb.DELETE)
    if request.method == "POST":
        actions.remove(asset, request.user)
        return onward(request, reverse(kind.name), f"The {kind.noun} {asset.name} was deleted.")
    context = {"kind": kind, "asset": asset, "held": actions.holding(asset, request.user)}
    return page(request, "environments/delete.html", "environments/_delete.html", context)


def _form(request: Request, task: Task) -> HttpResponse:
    """The form as it starts, or as it was sent: with a row more or less, with errors beside their
    fields, or saved.
    """
    what = typed(request.POST, ("add", "remove")) if request.method == "POST" else task.start
    form = _bound(request, task, what)
    if request.method != "POST":
        return _show(request, task, form)
    if "add" in request.POST and form.rows is not None:
        return _show(request, task, _bound(request, task, with_row(what, form.rows)))
    if "remove" in request.POST:
        return _show(
            request, task, _bound(request, task, without_row(what, request.POST["remove"]))
        )
    if not form.judged():
        return _show(request, task, form, status=422)
    try:
        saved = _saved(request, task, form)
    except editing.ChangedMeanwhile:
        return _show(request, task, form, status=409)
    except Clash as clash:
        form.blame(clash.field or None, clash.text)
        return _show(request, task, form, status=422)
    messages.success(request, f"The {task.kind.noun} {saved} was saved.")
    return redirect(task.kind.name)


def _saved(request: Request, task: Task, form: AssetForm) -> str:
    if task.changes and task.asset is not None:
        version = editing.started_version(request.POST)
        actions.change(
            task.asset, form.values, scope=form.asset_scope, by=request.user, version=version
        )
    else:
        actions.create(form.model, form.values, scope=form.asset_scope, by=request.user)
    return str(form.values["name"])


def _show(request: Request, task: Task, form: AssetForm, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        "kind": task.kind,
        "asset": task.asset if task.changes else None,
        "form": form,
    }
    if task.changes and task.asset is not None:
        context |= _started(request, task, form, is_late=status == 409)
    return render(request, "environments/form.html", context, status=status)


def _started(request: Request, task: Task, form: AssetForm, *, is_late: bool) -> dict[str, Any]:
    """The seal: what the form started from, or, once it came too late, what is there now with what
    changed meanwhile.
    """
    assert task.asset is not None
    if request.method == "POST" and not is_late:
        # Shown again for another reason: it still starts from what it started from.
        return {"started_from": request.POST.get(editing.FIELD, "")}
    now = reached(request, task.kind, task.asset.pk)
    sent = request.POST if is_late else None
    return editing.fields(
        now.version,
        task.kind.typed(now),
        sent=sent,
        form=form,
        by=now.updated_by,
        at=now.updated_at,
    )


def _bound(request: Request, task: Task, data: Typed) -> AssetForm:
    scopes = choices(request.user, task.kind, task.asset if task.changes else None)
    return task.form(data, scopes=scopes, by=request.user, asset=task.asset, changes=task.changes)

"""Templates made in the wizard: a draft that is to become one, the page that saves it, and the
cards of the first step.
"""

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from console import editing
from console.errors import Clash
from console.typed import typed
from environments import actions
from environments.choosing import choices as choices_of
from environments.kinds import TEMPLATE
from environments.models import Template
from projects import access
from projects.http import Request
from projects.looking import writes
from projects.permissions import Entity, Verb
from projects.scopes import of_project
from workloads.forms import template_words
from workloads.forms.filling import Filling
from workloads.forms.steps import Step
from workloads.forms.template_form import SavedTemplateForm, typed_template
from workloads.forms.templating import MAKING
from workloads.models import Draft
from workloads.views import drafting
from workloads.views.drafting import SUBMITTED


@writes
@require_GET
@never_cache
def design(request: Request) -> HttpResponse:
    """Begin a template in the wizard, from nothing."""
    access.anywhere(request.user, Verb.CREATE, Entity.TEMPLATES)
    return redirect("wizard", drafting.begun(request.user, {MAKING: {}}).pk, Step.START.value)


@writes
@require_GET
@never_cache
def redesign(request: Request, key: uuid.UUID) -> HttpResponse:
    """Change a template's steps in the wizard; it stays as it is until it is saved."""
    return redirect(
        "wizard",
        drafting.begun(request.user, drafting.of_template(request, key)).pk,
        Step.START.value,
    )


@writes
@require_GET
@never_cache
def choices(request: Request, draft: uuid.UUID) -> HttpResponse:
    """The template cards of the project that is being chosen."""
    found = drafting.reach(request, draft)
    typed_start = Filling(found.data, request.user).typed(Step.START)
    asked = {
        name: [request.GET[name].replace("\x00", "")]
        for name in ("project", "template")
        if name in request.GET
    }
    filling = Filling(found.data | {Step.START.value: typed_start | asked}, request.user)
    return render(
        request, "workloads/wizard/_template_choice.html", {"draft": found, "form": filling.start}
    )


@writes
@require_http_methods(["GET", "POST"])
@never_cache
def save(request: Request, draft: uuid.UUID) -> HttpResponse:
    """What the template is called, who can use it, and what stays as it is; and then it is made, or
    changed.
    """
    found = drafting.reach(request, draft)
    if SUBMITTED in found.data:
        return redirect("workloads")
    drafting.settle(found, request.user)
    filling = Filling(found.data, request.user)
    if (wrong := filling.first_wrong(Step.REVIEW)) is not None:
        return redirect("wizard", found.pk, wrong.value)
    template = _changed(request, filling)
    _require(request, template)
    form = _form(request, filling, template)
    if request.method != "POST":
        return _show(request, found, filling, form, template)
    if not form.judged():
        return _show(request, found, filling, form, template, status=422)
    try:
        saved = _save(request, form, template)
    except editing.ChangedMeanwhile:
        template = _changed(request, filling)
        return _show(request, found, filling, form, template, status=409)
    except Clash as clash:
        form.blame(clash.field, clash.text)
        return _show(request, found, filling, form, template, status=422)
    messages.success(request, f"The template {saved.name} was saved.")
    if filling.making is None:
        return redirect("wizard", found.pk, Step.REVIEW.value)
    found.delete()
    return redirect("templates")


def _changed(request: Request, filling: Filling) -> Template | None:
    """The template that the draft changes; None where it makes a new one, also where that was
    deleted meanwhile.
    """
    key = (filling.making or {}).get("template")
    return actions.reach(Template, uuid.UUID(key), request.user) if key else None


def _require(request: Request, template: Template | None) -> None:
    if template is None:
        access.anywhere(request.user, Verb.CREATE, Entity.TEMPLATES)
    else:
        actions.require_change(template, request.user)


def _form(request: Request, filling: Filling, template: Template | None) -> SavedTemplateForm:
    data = typed(request.POST) if request.method == "POST" else _start(request, filling)
    head = filling.start
    framework = head.chosen_framework
    draft = {
        "architecture": head.chosen_architecture.value,
        "framework": framework.value if framework else "",
        "form": filling.form_of_template,
    }
    words, scopes = template_words.words(filling), choices_of(request.user, TEMPLATE, template)
    return SavedTemplateForm(
        data, draft=draft, words=words, scopes=scopes, by=request.user, asset=template
    )


def _start(request: Request, filling: Filling) -> dict[str, list[str]]:
    making = filling.making or {}
    offered = [str(scope) for scope, _ in choices_of(request.user, TEMPLATE)]
    here = str(of_project(filling.project)) if filling.project else ""
    scope = making.get("scope") or (here if here in offered else next(iter(offered), ""))
    locked = making.get("locked", filling.template.locked if filling.template else ())
    return typed_template(making.get("name", ""), making.get("description", ""), scope, locked)


def _save(request: Request, form: SavedTemplateForm, template: Template | None) -> Template:
    if template is None:
        return actions.create(Template, form.values, scope=form.asset_scope, by=request.user)
    version = editing.started_version(request.POST)
    actions.change(template, form.values, scope=form.asset_scope, by=request.user, version=version)
    template.name = form.values["name"]
    return template


def _show(
    request: Request,
    draft: Draft,
    filling: Filling,
    form: SavedTemplateForm,
    template: Template | None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "draft": draft,
        "filling": filling,
        "form": form,
        "template": template,
    }
    if template is not None:
        context |= _meanwhile(request, filling, form, template, is_late=status == 409)
    return render(request, "workloads/wizard/save_template.html", context, status=status)


def _meanwhile(
    request: Request,
    filling: Filling,
    form: SavedTemplateForm,
    template: Template,
    *,
    is_late: bool,
) -> dict[str, Any]:
    """What the form started from: the template as it was when the draft was begun."""
    making = filling.making or {}
    if is_late:
        now = drafting.flat(template)
        return editing.fields(
            template.version,
            now,
            sent=request.POST,
            form=form,
            by=template.updated_by,
            at=template.updated_at,
        )
    if request.method == "POST":
        return {"started_from": request.POST.get(editing.FIELD, "")}
    return editing.fields(making["version"], making["was"])

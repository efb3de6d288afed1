"""Templates made in the wizard: their drafts, the page that saves them, the cards."""

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from console import edit_conflicts
from console.errors import Clash
from console.typed_forms import parse_typed
from environments import actions
from environments.kinds import TEMPLATE
from environments.models import Template
from environments.scope_choices import list_scope_choices as choices_of
from projects import access
from projects.http import Request
from projects.impersonation import writes_on_get
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads.forms import lock_descriptions
from workloads.forms.draft_templates import NEW_TEMPLATE
from workloads.forms.steps import Step
from workloads.forms.template_form import SavedTemplateForm, build_template_values
from workloads.forms.wizard_draft import WizardDraft
from workloads.models import Draft
from workloads.views import drafting
from workloads.views.drafting import SUBMITTED


@writes_on_get
@require_GET
@never_cache
def design_template(request: Request) -> HttpResponse:
    """Start a template in the wizard, from nothing."""
    access.require_anywhere(request.user, Verb.CREATE, Entity.TEMPLATES)
    return redirect(
        "wizard", drafting.create_draft(request.user, {NEW_TEMPLATE: {}}).pk, Step.START.value
    )


@writes_on_get
@require_GET
@never_cache
def redesign_template(request: Request, key: uuid.UUID) -> HttpResponse:
    """Open a template's steps in the wizard; it stays as it is until it is saved."""
    return redirect(
        "wizard",
        drafting.create_draft(request.user, drafting.build_redesign_data(request, key)).pk,
        Step.START.value,
    )


@writes_on_get
@require_GET
@never_cache
def template_choices(request: Request, draft: uuid.UUID) -> HttpResponse:
    """Show the template cards of the project that is being chosen."""
    saved_draft = drafting.get_draft(request, draft)
    typed_start = WizardDraft(saved_draft.data, request.user).get_values(Step.START)
    choices = {
        name: [request.GET[name].replace("\x00", "")]
        for name in ("project", "template")
        if name in request.GET
    }
    filling = WizardDraft(
        saved_draft.data | {Step.START.value: typed_start | choices}, request.user
    )
    return render(
        request,
        "workloads/wizard/_template_choice.html",
        {"draft": saved_draft, "form": filling.start},
    )


@writes_on_get
@require_http_methods(["GET", "POST"])
@never_cache
def save_template(request: Request, draft: uuid.UUID) -> HttpResponse:
    """Ask for the template's name, scope and locked fields; then create or change it."""
    saved_draft = drafting.get_draft(request, draft)
    if SUBMITTED in saved_draft.data:
        return drafting.redirect_submitted(request, saved_draft)
    drafting.apply_chosen_template(saved_draft, request.user)
    filling = WizardDraft(saved_draft.data, request.user)
    if (wrong := filling.find_invalid_step(Step.REVIEW)) is not None:
        return redirect("wizard", saved_draft.pk, wrong.value)
    template = _find_changed_template(request, filling)
    _require_permission(request, template)
    form = _build_form(request, filling, template)
    if request.method != "POST":
        return _render_page(request, saved_draft, filling, form, template)
    if not form.validate():
        return _render_page(request, saved_draft, filling, form, template, status=422)
    try:
        saved = _save_form(request, form, template)
    except edit_conflicts.ChangedMeanwhile:
        template = _find_changed_template(request, filling)
        return _render_page(request, saved_draft, filling, form, template, status=409)
    except Clash as clash:
        form.add_error_once(clash.field, clash.text)
        return _render_page(request, saved_draft, filling, form, template, status=422)
    messages.success(request, f"The template {saved.name} was saved.")
    if filling.new_template is None:
        return redirect("wizard", saved_draft.pk, Step.REVIEW.value)
    saved_draft.delete()
    return redirect("templates")


def _find_changed_template(request: Request, filling: WizardDraft) -> Template | None:
    """Return the template that the draft changes.

    None where it makes a new one, also where that template was deleted meanwhile.
    """
    key = (filling.new_template or {}).get("template")
    return actions.find_asset(Template, uuid.UUID(key), request.user) if key else None


def _require_permission(request: Request, template: Template | None) -> None:
    if template is None:
        access.require_anywhere(request.user, Verb.CREATE, Entity.TEMPLATES)
    else:
        actions.require_change(template, request.user)


def _build_form(
    request: Request, filling: WizardDraft, template: Template | None
) -> SavedTemplateForm:
    data = (
        parse_typed(request.POST)
        if request.method == "POST"
        else _build_initial_values(request, filling)
    )
    head = filling.start
    framework = head.chosen_framework
    draft = {
        "architecture": head.chosen_architecture.value,
        "framework": framework.value if framework else "",
        "form": filling.template_form_data,
    }
    words, scopes = (
        lock_descriptions.describe_locks(filling),
        choices_of(request.user, TEMPLATE, template),
    )
    return SavedTemplateForm(
        data, draft=draft, lock_descriptions=words, scopes=scopes, by=request.user, asset=template
    )


def _build_initial_values(request: Request, filling: WizardDraft) -> dict[str, list[str]]:
    making = filling.new_template or {}
    offered = choices_of(request.user, TEMPLATE)
    draft_scope = str(project_scope(filling.project)) if filling.project else ""
    first = next((str(scope) for scope, _ in offered), "")
    scope = making.get("scope") or (
        draft_scope if draft_scope and offered.find(draft_scope) else first
    )
    locked = making.get("locked", filling.template.locked if filling.template else ())
    return build_template_values(
        making.get("name", ""), making.get("description", ""), scope, locked
    )


def _save_form(request: Request, form: SavedTemplateForm, template: Template | None) -> Template:
    if template is None:
        return actions.create(Template, form.values, scope=form.asset_scope, user=request.user)
    version = edit_conflicts.parse_started_version(request.POST)
    actions.change(
        template, form.values, scope=form.asset_scope, user=request.user, version=version
    )
    template.name = form.values["name"]
    return template


def _render_page(
    request: Request,
    draft: Draft,
    filling: WizardDraft,
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
        context |= _build_change_context(request, filling, form, template, is_late=status == 409)
    return render(request, "workloads/wizard/save_template.html", context, status=status)


def _build_change_context(
    request: Request,
    filling: WizardDraft,
    form: SavedTemplateForm,
    template: Template,
    *,
    is_late: bool,
) -> dict[str, Any]:
    """Return the version that the form started from: the template when the draft was begun."""
    making = filling.new_template or {}
    if is_late:
        now = drafting.flatten_template(template)
        return edit_conflicts.build_conflict_context(
            template.version,
            now,
            sent=request.POST,
            form=form,
            changed_by=template.updated_by,
            changed_at=template.updated_at,
        )
    if request.method == "POST":
        return {"started_from": request.POST.get(edit_conflicts.START_FIELD, "")}
    return edit_conflicts.build_conflict_context(making["version"], making["was"])

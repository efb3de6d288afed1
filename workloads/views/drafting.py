"""Drafts: how one is created from nothing, a workload or a template, and found again.

Also fills in a template that is chosen in a draft.
"""

import uuid
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from console.errors import UserError
from console.texts import parse_number
from console.typed_forms import TypedValues
from environments import actions
from environments.models import ComputeResource, DataSource, Environment, Template
from projects.access import is_permitted, list_permitted_projects
from projects.http import Request
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads import journal
from workloads.alternatives.spec_changes import find_spec_change
from workloads.forms import draft_templates, start_form, workload_copies
from workloads.forms.project_assets import MAX_CARDS
from workloads.forms.steps import Step
from workloads.forms.template_form import build_existing_template_values
from workloads.forms.wizard_draft import WizardDraft
from workloads.forms.workload_copies import AvailableAssets
from workloads.models import Draft, Workload
from workloads.placement_rules import load_pools
from workloads.specs import Spec, UnreadableSpec, decode_spec

SUBMITTED = "submitted"
STORED_AT = "at"
"""The wizard form's field, and the key of a draft's data, with the count of what was stored last.

In the data it is by the step.
"""
STORED_BY = "by"
"""The key of a draft's data with the page that stored each step last."""
DATA_WORKERS_PARAMETER = "data_workers"
"""The parameter of a copy's address with the number of data workers that it is to have."""
CHANGE_PARAMETER = "change"
"""The parameter of a copy's address with the key of a change (`alternatives.spec_changes`)."""
PROJECT_PARAMETER = "project"
"""The parameter of a copy's address with the number of the project where it is to be launched."""
MOST_DRAFTS = 50
"""Drafts of one person; the oldest are deleted when there are more."""
MOST_EMPTY_DRAFTS = 10
"""Drafts of one person into which nothing was typed; the oldest are deleted when there are more."""


def create_draft(user: User, data: dict[str, Any]) -> Draft:
    """Create a draft with this data, and delete the person's oldest drafts where there are many."""
    drafts = Draft.objects.filter(user=user)
    # An empty draft is not used again: another tab may be open with it, whose input would mix.
    draft = Draft.objects.create(user=user, data=data)
    _delete_oldest(drafts.filter(data={}), MOST_EMPTY_DRAFTS)
    _delete_oldest(drafts, MOST_DRAFTS)
    return draft


def _delete_oldest(drafts: QuerySet[Draft], most: int) -> None:
    """Delete those that were not changed for the longest time, so that at most `most` are left."""
    by_age = drafts.order_by("-updated_at").values_list("pk", flat=True)
    drafts.filter(pk__in=list(by_age[most : most * 2])).delete()


def get_draft(request: Request, key: uuid.UUID) -> Draft:
    """Return one of the person's own drafts. Raises Http404."""
    return get_object_or_404(Draft, pk=key, user=request.user)


def redirect_submitted(request: Request, draft: Draft) -> HttpResponse:
    """Redirect from a submitted draft to the workloads, with a message that names its workload."""
    visible = Workload.objects.visible_to(request.user).filter(pk=draft.data[SUBMITTED])
    name = visible.values_list("name", flat=True).first()
    text = f"This was submitted already as {name}." if name else "This was submitted already."
    messages.info(request, f"{text} Begin a new training to submit another.")
    return redirect("workloads")


def build_copy_data(request: Request, key: str) -> dict[str, Any]:
    """Build a draft's data from a workload that the person sees.

    In the workload's project if they may launch there, else in another one.
    """
    visible = Workload.objects.visible_to(request.user).select_related("project__cluster")
    workload: Workload = get_object_or_404(visible, pk=_parse_uuid(key, "workload"))
    project = _find_project(request, workload.project)
    try:
        spec = decode_spec(workload.spec)
    except UnreadableSpec as error:
        raise UserError(
            f"{workload.name} was submitted by another version of Muster and cannot be copied: "
            f"{error}."
        ) from error
    spec = _apply_change(_set_data_workers(spec, request), project, request)
    name, used = journal.suggest_free_name(project, workload.name), list(workload.assets.all())
    data, notes = workload_copies.build_copy_data(
        spec, project=project, name=name, assets=_load_assets(project), used=used
    )
    for note in notes:
        messages.info(request, note)
    return data


def build_changed_draft_data(request: Request, key: str) -> dict[str, Any]:
    """Build the data of a copy of a person's own draft, changed as the address says."""
    draft = get_draft(request, _parse_uuid(key, "draft"))
    filling = WizardDraft(draft.data, request.user)
    if filling.project is None or filling.find_invalid_step(Step.REVIEW) is not None:
        return dict(draft.data)
    project = _find_project(request, filling.project)
    judged = filling.judge()
    assert judged is not None
    # With what policies set: the changes were found of that.
    spec = _apply_change(judged.spec, project, request)
    return workload_copies.build_draft_data(
        spec,
        project=project,
        name=journal.suggest_free_name(project, spec.name),
        assets=_load_assets(project),
        used={each.asset for each in filling.used_assets},
    )


def _find_project(request: Request, usual: Project) -> Project:
    """Return where a copy is launched: the project of the address, the usual one, or any other.

    The first of these in which the person may launch.
    """
    permitted = list_permitted_projects(request.user, Verb.CREATE, Entity.WORKLOADS).select_related(
        "cluster"
    )
    named = parse_number(request.GET.get(PROJECT_PARAMETER, ""))
    project = None if named is None else permitted.filter(pk=named).first()
    if project is None and is_permitted(
        request.user, Verb.CREATE, Entity.WORKLOADS, project_scope(usual.pk)
    ):
        project = usual
    project = project or permitted.order_by("name").first()
    assert project is not None
    if named is not None and project.pk != named:
        messages.warning(
            request,
            f"You may not launch workloads in the project that was asked for: this copy is for "
            f"{project.name}.",
        )
    return project


def _apply_change(spec: Spec, project: Project, request: Request) -> Spec:
    """Return the spec with the change that the address names; the same where it has none such."""
    key = request.GET.get(CHANGE_PARAMETER, "")
    if not key:
        return spec
    change = find_spec_change(spec, load_pools(project), key)
    if change is None:
        messages.warning(
            request, "The change that was asked for does not apply any more: this is a plain copy."
        )
        return spec
    return change.spec


def _set_data_workers(spec: Spec, request: Request) -> Spec:
    """Return the spec with as many data workers as the address asks for, if it does.

    A workload without data workers stays so: the address alone does not say what they prepare.
    """
    workers = parse_number(request.GET.get(DATA_WORKERS_PARAMETER), 1)
    if not workers or spec.data_delivery is None:
        return spec
    return replace(spec, data_delivery=replace(spec.data_delivery, workers=workers))


def _load_assets(project: Project) -> AvailableAssets:
    """Load the assets that are for use in a project."""
    models = (Environment, ComputeResource)
    environments, resources = (
        list(model.objects.within(project).order_by("name")[:MAX_CARDS]) for model in models
    )
    sources = (
        DataSource.objects.within(project)
        .select_related("credential")
        .defer("credential__secret")
        .order_by("name")
    )
    return AvailableAssets(
        environments, resources, list(sources[:MAX_CARDS]), Template.objects.within(project)
    )


def build_template_data(request: Request, key: str) -> dict[str, Any]:
    """Build a draft's data from a template that the person sees.

    The draft is in a project of theirs where the template is for use.
    """
    template: Template = get_object_or_404(
        Template.objects.visible_to(request.user), pk=_parse_uuid(key, "template")
    )
    projects = list_permitted_projects(request.user, Verb.CREATE, Entity.WORKLOADS)
    scope = Q()
    for level in ("project", "department", "cluster"):
        if (scope_id := getattr(template, f"{level}_id")) is not None:
            scope = Q(**{"pk" if level == "project" else level: scope_id})
    usable_projects = list(projects.filter(scope).select_related("cluster").order_by("name"))
    if not usable_projects:
        raise UserError(
            f"You may launch workloads in no project where the template {template.name} is for "
            "use. Choose another template."
        )
    last_project_id = (
        Workload.objects.filter(submitted_by=request.user)
        .order_by("-created_at")
        .values_list("project_id", flat=True)
        .first()
    )
    return draft_templates.apply_template(
        {"start": start_form.build_start_defaults(usable_projects, last_project_id)}, template
    )


def build_redesign_data(request: Request, key: uuid.UUID) -> dict[str, Any]:
    """Build the data of a draft that changes a template. Raises Http404 or NotAllowed."""
    template = actions.find_asset(Template, key, request.user)
    if template is None:
        raise Http404("There is no such template among those that you may see.")
    actions.require_change(template, request.user)
    data = draft_templates.apply_template(
        {"start": start_form.build_start_defaults(_list_projects(request.user, template), None)},
        template,
    )
    # Who makes a template changes what it locks.
    data.pop(draft_templates.APPLIED_TEMPLATE)
    making = {
        "template": str(template.pk),
        "version": template.version,
        "was": flatten_template(template),
    }
    making |= {"name": template.name, "description": template.description}
    making |= {"scope": str(template.scope), "locked": list(template.locked)}
    return data | {draft_templates.NEW_TEMPLATE: making}


def flatten_template(template: Template) -> TypedValues:
    """Return everything that was typed to make a template, in one, to compare with it later."""
    named = {
        f"{'master ' if step == Step.MASTER else ''}{name}": values
        for step in (Step.START, Step.SETUP, Step.MASTER)
        for name, values in template.form.get(step.value, {}).items()
    }
    return build_existing_template_values(template) | {
        name: values for name, values in named.items() if name != "template"
    }


def _list_projects(user: User, template: Template) -> list[Project]:
    """List the projects in which a template can be edited. Those where it is for use come first."""
    rows = list(Project.objects.visible_to(user).select_related("cluster").order_by("name"))
    return sorted(rows, key=lambda project: not draft_templates.is_usable_in(template, project))


def note_stored(data: dict[str, Any], step: Step, *, at: int = 0, page: str = "") -> None:
    """Note in a draft's data that a step was stored, by a page of that name, at its count.

    Pages that show the step then see that it was changed. The count always rises.
    """
    counts = data.get(STORED_AT, {})
    data[STORED_AT] = counts | {step.value: max(at, counts.get(step.value, 0) + 1)}
    data[STORED_BY] = data.get(STORED_BY, {}) | {step.value: page}


def apply_chosen_template(draft: Draft, user: User) -> bool:
    """Fill in the template that is chosen in the first step. Return whether the choice changed.

    Also takes out the values of a template that is not chosen any more.
    """
    wanted_key = (draft.data.get(Step.START, {}).get("template") or [start_form.SCRATCH])[-1]
    current_key = draft.data.get(draft_templates.APPLIED_TEMPLATE, {}).get("id", start_form.SCRATCH)
    if wanted_key == current_key or draft_templates.NEW_TEMPLATE in draft.data:
        return False
    filling = WizardDraft(draft.data, user)
    chosen = filling.start.chosen_template
    if chosen is None and wanted_key != start_form.SCRATCH:
        return False
    with transaction.atomic():
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        if SUBMITTED not in fresh.data:
            is_there = current_key in filling.start.templates
            before = fresh.data
            fresh.data = (
                draft_templates.apply_template(before, chosen)
                if chosen
                else draft_templates.remove_template(before, is_there=is_there)
            )
            for step in (Step.SETUP, Step.MASTER):
                if fresh.data.get(step.value) != before.get(step.value):
                    note_stored(fresh.data, step)
            fresh.save(update_fields=["data", "updated_at"])
    draft.data = fresh.data
    return True


def _parse_uuid(text: str, noun: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Http404(f"There is no such {noun}.") from None

"""Drafts: how one is begun, from nothing, a workload or a template; whose they are; and a template
that is filled in when it is chosen.
"""

import uuid
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import Q
from django.http import Http404
from django.shortcuts import get_object_or_404

from console.errors import UserError
from console.typed import Typed
from environments import actions
from environments.models import ComputeResource, DataSource, Environment, Template
from projects.access import actionable, may
from projects.http import Request
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import of_project
from workloads import journal
from workloads.forms import copying, start, templating
from workloads.forms.copying import Assets
from workloads.forms.filling import Filling
from workloads.forms.offered import MOST_CARDS
from workloads.forms.steps import Step
from workloads.forms.template_form import typed_of
from workloads.models import Draft, Workload
from workloads.specs import BadSpec, from_json

SUBMITTED = "submitted"
MOST_DRAFTS = 50
"""Of one person; the oldest go when there are more."""


def begun(user: User, data: dict[str, Any]) -> Draft:
    """A new draft with this in it; an empty one that is there already is used again."""
    mine = Draft.objects.filter(user=user)
    draft: Draft | None = None if data else mine.filter(data={}).first()
    if draft is None:
        draft = Draft.objects.create(user=user, data=data)
        old = list(
            mine.order_by("-updated_at").values_list("pk", flat=True)[MOST_DRAFTS : MOST_DRAFTS * 2]
        )
        mine.filter(pk__in=old).delete()
    return draft


def reach(request: Request, key: uuid.UUID) -> Draft:
    """A person's own draft. Raises Http404."""
    return get_object_or_404(Draft, pk=key, user=request.user)


def copied(request: Request, key: str) -> dict[str, Any]:
    """A draft's data from a workload that the person sees; in its project if they may launch
    there.
    """
    visible = Workload.objects.visible_to(request.user).select_related("project__cluster")
    workload: Workload = get_object_or_404(visible, pk=_uuid(key, "workload"))
    project = (
        workload.project
        if may(request.user, Verb.CREATE, Entity.WORKLOADS, of_project(workload.project_id))
        else None
    )
    if project is None:
        project = (
            actionable(request.user, Verb.CREATE, Entity.WORKLOADS)
            .select_related("cluster")
            .order_by("name")
            .first()
        )
    assert project is not None
    try:
        spec = from_json(workload.spec)
    except BadSpec as error:
        raise UserError(
            f"{workload.name} was submitted by another version of Muster and cannot be copied: "
            f"{error}."
        ) from error
    name, used = journal.free_name(project, workload.name), list(workload.assets.all())
    data, notes = copying.copied(
        spec, project=project, name=name, assets=_assets(project), used=used
    )
    for note in notes:
        messages.info(request, note)
    return data


def _assets(project: Project) -> Assets:
    """What is for use in a project."""
    models = (Environment, ComputeResource)
    environments, resources = (
        list(model.objects.within(project).order_by("name")[:MOST_CARDS]) for model in models
    )
    sources = (
        DataSource.objects.within(project)
        .select_related("credential")
        .defer("credential__secret")
        .order_by("name")
    )
    return Assets(
        environments, resources, list(sources[:MOST_CARDS]), Template.objects.within(project)
    )


def from_template(request: Request, key: str) -> dict[str, Any]:
    """A draft's data from a template that the person sees, in a project of theirs where it is for
    use.
    """
    template: Template = get_object_or_404(
        Template.objects.visible_to(request.user), pk=_uuid(key, "template")
    )
    mine = actionable(request.user, Verb.CREATE, Entity.WORKLOADS)
    near = Q()
    for level in ("project", "department", "cluster"):
        if (wanted := getattr(template, f"{level}_id")) is not None:
            near = Q(**{"pk" if level == "project" else level: wanted})
    there = list(mine.filter(near).select_related("cluster").order_by("name"))
    if not there:
        raise UserError(
            f"You may launch workloads in no project where the template {template.name} is for "
            "use. Choose another template."
        )
    last = (
        Workload.objects.filter(submitted_by=request.user)
        .order_by("-created_at")
        .values_list("project_id", flat=True)
        .first()
    )
    return templating.filled({"start": start.defaults(there, last)}, template)


def of_template(request: Request, key: uuid.UUID) -> dict[str, Any]:
    """A draft's data that changes a template. Raises Http404 or NotAllowed."""
    template = actions.reach(Template, key, request.user)
    if template is None:
        raise Http404("There is no such template among those that you may see.")
    actions.require_change(template, request.user)
    data = templating.filled(
        {"start": start.defaults(_projects(request.user, template), None)}, template
    )
    # Who makes a template changes what it locks.
    data.pop(templating.APPLIED)
    making = {"template": str(template.pk), "version": template.version, "was": flat(template)}
    making |= {"name": template.name, "description": template.description}
    making |= {"scope": str(template.scope), "locked": list(template.locked)}
    return data | {templating.MAKING: making}


def flat(template: Template) -> Typed:
    """Everything that was typed to make a template, in one, to compare with it later."""
    named = {
        f"{'master ' if step == Step.MASTER else ''}{name}": values
        for step in (Step.START, Step.SETUP, Step.MASTER)
        for name, values in template.form.get(step.value, {}).items()
    }
    return typed_of(template) | {
        name: values for name, values in named.items() if name != "template"
    }


def _projects(user: User, template: Template) -> list[Project]:
    """Where a template can be looked at with what it is made of: those where it is for use
    first.
    """
    rows = list(Project.objects.visible_to(user).select_related("cluster").order_by("name"))
    return sorted(rows, key=lambda project: not templating.usable(template, project))


def settle(draft: Draft, user: User) -> bool:
    """Fill in the template that is chosen in the first step, or take out the one that is not chosen
    any more; whether there was one.
    """
    wanted = (draft.data.get(Step.START, {}).get("template") or [start.SCRATCH])[-1]
    now = draft.data.get(templating.APPLIED, {}).get("id", start.SCRATCH)
    if wanted == now or templating.MAKING in draft.data:
        return False
    filling = Filling(draft.data, user)
    chosen = filling.start.chosen_template
    if chosen is None and wanted != start.SCRATCH:
        return False
    with transaction.atomic():
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        if SUBMITTED not in fresh.data:
            is_there = now in filling.start.templates
            fresh.data = (
                templating.filled(fresh.data, chosen)
                if chosen
                else templating.emptied(fresh.data, is_there=is_there)
            )
            fresh.save(update_fields=["data", "updated_at"])
    draft.data = fresh.data
    return True


def _uuid(text: str, noun: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Http404(f"There is no such {noun}.") from None

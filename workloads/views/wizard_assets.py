"""NEW ENVIRONMENT, NEW COMPUTE RESOURCE and NEW DATA SOURCE inside the wizard.

The asset is made in place and chosen at once, and no input is lost.
"""

import uuid
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import reswap, retarget, trigger_client_event

from console.errors import Clash
from console.http import render_page
from console.typed_forms import TypedValues, add_row, parse_typed, remove_row
from environments import actions
from environments.forms import AssetForm, build_defaults
from environments.kinds import COMPUTE, DATA_SOURCE, ENVIRONMENT, AssetKind
from environments.models import Asset
from projects.http import Request
from projects.impersonation import writes_on_get
from projects.permissions import Permission, Verb
from projects.scope_choices import ScopeChoice
from projects.scopes import TENANT, cluster_scope, department_scope, project_scope
from workloads.forms.source_fields import DATA_SOURCES_FIELD
from workloads.forms.steps import Step
from workloads.forms.wizard_draft import WizardDraft
from workloads.models import Draft

KINDS: Mapping[str, AssetKind] = {kind.key: kind for kind in (ENVIRONMENT, COMPUTE, DATA_SOURCE)}


@writes_on_get
@require_http_methods(["GET", "POST"])
@never_cache
def new_asset(request: Request, draft: uuid.UUID, kind: str) -> HttpResponse:
    """Show the form of a new asset in a dialog or page, and choose the asset once made.

    For a kind with several subtypes, ?type= is one of these; without it they are shown to choose
    from.
    """
    saved_draft = get_object_or_404(Draft, pk=draft, user=request.user)
    filling = WizardDraft(saved_draft.data, request.user)
    if kind not in KINDS:
        raise Http404("There is no such asset.")
    if filling.project is None:
        return redirect("wizard", saved_draft.pk, Step.START.value)
    form_class = KINDS[kind].forms.get(request.GET.get("type", ""))
    if form_class is None:
        return _render_types(request, saved_draft, KINDS[kind])
    if request.method != "POST":
        return _render_form(
            request,
            saved_draft,
            kind,
            _bind_form(
                filling, form_class, build_defaults(form_class, str(project_scope(filling.project)))
            ),
        )
    typed_values = parse_typed(request.POST, ("add", "remove"))
    form = _bind_form(filling, form_class, typed_values)
    if form.rows is not None and "add" in request.POST:
        return _render_form(
            request,
            saved_draft,
            kind,
            _bind_form(filling, form_class, add_row(typed_values, form.rows)),
        )
    if "remove" in request.POST:
        return _render_form(
            request,
            saved_draft,
            kind,
            _bind_form(filling, form_class, remove_row(typed_values, request.POST["remove"])),
        )
    asset = _create_asset(request, form)
    if asset is None:
        return _render_form(request, saved_draft, kind, form, status=422)
    _choose_asset(request, saved_draft, kind, str(asset.pk))
    if not request.htmx:
        return redirect("wizard", saved_draft.pk, Step.SETUP.value)
    part = f"workloads/wizard/_{kind.replace('-', '_')}_choice.html"
    filling = WizardDraft(saved_draft.data, request.user)
    answer = render(
        request, part, {"draft": saved_draft, "filling": filling, "form": filling.setup}
    )
    answer = reswap(retarget(answer, f"#{kind}-choice"), "outerHTML")
    return trigger_client_event(answer, "muster:close", {}, after="settle")


def _render_types(request: Request, draft: Draft, kind: AssetKind) -> HttpResponse:
    """Show the subtypes to choose from, of a kind that has several."""
    if not kind.has_subtypes:
        raise Http404(f"There is no such {kind.noun}.")
    url = reverse("wizard-asset", args=[draft.pk, kind.key])
    context = {
        "kind": kind,
        "subtypes": [(f"{url}?type={name}", form.label) for name, form in kind.forms.items()],
        "back": reverse("wizard", args=[draft.pk, Step.SETUP.value]),
        "back_words": "New training",
    }
    return render_page(
        request, "environments/subtypes.html", "workloads/wizard/_asset_types.html", context
    )


def _bind_form(filling: WizardDraft, form: type[AssetForm], data: TypedValues) -> AssetForm:
    """Return the form for the draft's project and architecture, which it need not ask for."""
    assert filling.project is not None
    framework = filling.start.chosen_framework
    serves = f"{filling.start.chosen_architecture.value}:{framework.value if framework else ''}"
    form_values = data | ({"serves": [serves]} if form.kind == ENVIRONMENT.key else {})
    return form(
        form_values, scopes=_list_scopes(filling, form), by=filling.user, auto_id="asset_%s"
    )


def _list_scopes(filling: WizardDraft, form: type[AssetForm]) -> Sequence[ScopeChoice]:
    """List the scopes around the draft's project where the person may make such an asset."""
    assert filling.project is not None
    project, permission = filling.project, Permission(form.model.entity, Verb.CREATE)
    enclosing = [
        (TENANT, "Everybody"),
        (cluster_scope(project.cluster_id), f"Cluster {project.cluster.name}"),
        (department_scope(project.department_id), f"Department {project.department.name}"),
        (project_scope(project), f"Project {project.name}"),
    ]
    return [each for each in enclosing if filling.user.rights.may(permission, each[0])]


def _create_asset(request: Request, form: AssetForm) -> Asset | None:
    if not form.validate():
        return None
    try:
        return actions.create(form.model, form.values, scope=form.asset_scope, user=request.user)
    except Clash as clash:
        form.add_error_once(clash.field, clash.text)
        return None


def _choose_asset(request: Request, draft: Draft, kind: str, key: str) -> None:
    with transaction.atomic():
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        # Nothing may be stored of the step yet: then it begins as the page shows it, with what the
        # project and its policies preset.
        step = WizardDraft(fresh.data, request.user).get_values(Step.SETUP)
        chosen: TypedValues = (
            {DATA_SOURCES_FIELD: [*step.get(DATA_SOURCES_FIELD, []), key]}
            if kind == DATA_SOURCE.key
            else {f"{kind}_choice": [key]}
        )
        fresh.data[Step.SETUP.value] = step | chosen
        fresh.save(update_fields=["data", "updated_at"])
    draft.data = fresh.data


def _render_form(
    request: Request, draft: Draft, kind: str, form: AssetForm, status: int = 200
) -> HttpResponse:
    context = {
        "draft": draft,
        "form": form,
        "kind": kind,
        "noun": KINDS[kind].noun,
        "in_wizard": True,
    }
    context["fields"] = KINDS[kind].fields_template
    return render_page(
        request,
        "workloads/wizard/new_asset.html",
        "workloads/wizard/_new_asset.html",
        context,
        status=status,
    )

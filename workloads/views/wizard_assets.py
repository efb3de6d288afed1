"""NEW ENVIRONMENT and NEW COMPUTE RESOURCE inside the wizard: made in place, chosen at once, and nothing typed is lost."""

import uuid
from typing import Any

from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import reswap, retarget, trigger_client_event

from console.errors import Clash
from console.http import page
from console.typed import Typed, typed, with_row, without_row
from environments import actions
from environments.forms import FORMS, AssetForm, EnvironmentForm, defaults
from environments.models import Asset
from projects.http import Request
from workloads.forms import setup as setup_step
from workloads.forms.filling import Filling, Step
from workloads.models import Draft


@require_http_methods(["GET", "POST"])
@never_cache
def new_asset(request: Request, draft: uuid.UUID, kind: str) -> HttpResponse:
    """The form of a new asset, in the page's dialog or as a page of its own; made, it is chosen in the draft."""
    found = get_object_or_404(Draft, pk=draft, user=request.user)
    filling = Filling(found.data, request.user)
    if kind not in FORMS:
        raise Http404("There is no such asset.")
    if filling.project is None:
        return redirect("wizard", found.pk, Step.START.value)
    if request.method != "POST":
        return _form(request, found, kind, _bound(filling, kind, defaults(kind, str(filling.project.pk))))
    what = typed(request.POST, ("add", "remove"))
    form = _bound(filling, kind, what)
    if isinstance(form, EnvironmentForm) and "add" in request.POST:
        return _form(request, found, kind, _bound(filling, kind, with_row(what, form.variables)))
    if "remove" in request.POST:
        return _form(request, found, kind, _bound(filling, kind, without_row(what, request.POST["remove"])))
    made = _made(request, form)
    if made is None:
        return _form(request, found, kind, form, status=422)
    _choose(found, kind, str(made.pk))
    if not request.htmx:
        return redirect("wizard", found.pk, Step.SETUP.value)
    part = f"workloads/wizard/_{kind}_choice.html"
    filling = Filling(found.data, request.user)
    answer = render(request, part, {"draft": found, "filling": filling, "form": filling.setup})
    answer = reswap(retarget(answer, f"#{kind}-choice"), "outerHTML")
    return trigger_client_event(answer, "muster:close", {}, after="settle")


def _bound(filling: Filling, kind: str, data: Typed) -> AssetForm:
    """For the draft's project, and its architecture, which the form therefore need not ask for."""
    assert filling.project is not None
    framework = filling.start.chosen_framework
    serves = f"{filling.start.chosen_architecture.value}:{framework.value if framework else ''}"
    given = data | ({"serves": [serves]} if kind == EnvironmentForm.kind else {})
    return FORMS[kind](given, scopes=[filling.project], everybody=filling.user.is_superuser, auto_id="asset_%s")


def _made(request: Request, form: AssetForm) -> Asset | None:
    if not form.judged():
        return None
    try:
        return actions.create(form.model, form.values, project=form.project, by=request.user)
    except Clash as clash:
        form.blame(clash.field, clash.text)
        return None


def _choose(draft: Draft, kind: str, key: str) -> None:
    with transaction.atomic():
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        step: dict[str, Any] = fresh.data.get(Step.SETUP) or setup_step.defaults()
        fresh.data[Step.SETUP.value] = step | {f"{kind}_choice": [key]}
        fresh.save(update_fields=["data", "updated_at"])
    draft.data = fresh.data


def _form(request: Request, draft: Draft, kind: str, form: AssetForm, status: int = 200) -> HttpResponse:
    context = {"draft": draft, "form": form, "kind": kind, "in_wizard": True}
    return page(request, f"workloads/wizard/new_{kind}.html", f"workloads/wizard/_new_{kind}.html", context, status=status)

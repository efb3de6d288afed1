"""The wizard: a draft is filled in step by step, reviewed and submitted. What is typed is stored
before it is judged.
"""

import json
import shlex
import uuid
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console.errors import Clash, Invalid, NotAllowed
from console.typed import Typed, typed, with_row, without_row
from projects import access
from projects.access import actionable
from projects.http import Request
from projects.looking import writes
from projects.models import Project
from projects.permissions import Entity, Permission, Verb
from workloads import actions, blueprint, fit
from workloads.forms.filling import Filling, with_special
from workloads.forms.inwords import (
    compute_in_words,
    configuration_in_words,
    in_words,
    volume_in_words,
)
from workloads.forms.pods import PodForm
from workloads.forms.steps import Step, step_of
from workloads.forms.templating import APPLIED, MAKING
from workloads.manifests import CannotBuild, as_rest, as_yaml, refusals, rest_path, target
from workloads.models import Draft
from workloads.specs import Problem, Spec
from workloads.views import drafting
from workloads.views.drafting import SUBMITTED

BUTTONS = ("go", "add", "remove", "take")
STORED_AT = "at"


@writes
@require_GET
@never_cache
def new(request: Request) -> HttpResponse:
    """Start a draft, empty or filled in by a workload or a template, and go to its first step; or
    save a workload as a template.
    """
    if request.GET.get("as") == "template":
        access.anywhere(request.user, Verb.CREATE, Entity.TEMPLATES)
    if not actionable(request.user, Verb.CREATE, Entity.WORKLOADS).exists():
        raise NotAllowed(
            "You may launch workloads in no project. Ask the administrator of a project to make "
            "you its member."
        )
    if "copy" in request.GET:
        data = drafting.copied(request, request.GET["copy"])
    else:
        data = (
            drafting.from_template(request, request.GET["template"])
            if "template" in request.GET
            else {}
        )
    if data and request.GET.get("as") == "template":
        data = {name: value for name, value in data.items() if name != APPLIED}
        return redirect("wizard-template", drafting.begun(request.user, data | {MAKING: {}}).pk)
    return redirect("wizard", drafting.begun(request.user, data).pk, Step.START.value)


@writes
@require_http_methods(["GET", "POST"])
@never_cache
def wizard(request: Request, draft: uuid.UUID, step: str) -> HttpResponse:
    """One step: shown as it was left, or stored, judged and left for the next."""
    found, here = drafting.reach(request, draft), _step(step)
    if SUBMITTED in found.data:
        return redirect("workloads")
    if here is not Step.START:
        drafting.settle(found, request.user)
    if request.method == "POST":
        return _submit(request, found) if here is Step.REVIEW else _leave(request, found, here)
    filling = Filling(found.data, request.user)
    if (wrong := filling.first_wrong(here)) is not None:
        return redirect("wizard", found.pk, wrong.value)
    if here not in filling.steps:
        return redirect("wizard", found.pk, Step.REVIEW.value)
    return _show(request, found, filling, here)


@require_POST
def save(request: Request, draft: uuid.UUID, step: str) -> HttpResponse:
    """Store what is typed so far, unjudged: the page's script calls it while somebody types."""
    found, here = drafting.reach(request, draft), _step(step)
    if here is not Step.REVIEW and SUBMITTED not in found.data:
        _store(found, here, typed(request.POST, BUTTONS), request.POST.get(STORED_AT, ""))
    return HttpResponse(status=204)


def _step(word: str) -> Step:
    try:
        return Step(word)
    except ValueError:
        raise Http404("The wizard has no such step.") from None


def _store(draft: Draft, step: Step, what: Typed, at: str = "") -> None:
    """Keep what was typed into one step. `at` counts up in the browser, so that what was sent
    earlier and comes later changes nothing.
    """
    moment = int(at) if at.isascii() and at.isdecimal() and len(at) < 16 else 0
    with transaction.atomic():
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        moments = fresh.data.get(STORED_AT, {})
        if SUBMITTED not in fresh.data and (not moment or moment >= moments.get(step, 0)):
            before = fresh.data.get(step.value, {})
            fresh.data[step.value] = with_special(what, before) if step is Step.SETUP else what
            fresh.data[STORED_AT] = moments | {step.value: moment or moments.get(step, 0)}
            fresh.save(update_fields=["data", "updated_at"])
    draft.data = fresh.data


def _leave(request: Request, draft: Draft, step: Step) -> HttpResponse:
    """Store a step, and go where the pressed button says; on only if nothing is wrong with it."""
    what = typed(request.POST, BUTTONS)
    if taken := request.POST.get("take"):
        what["name"] = [taken]
    filling = Filling(draft.data | {step.value: what}, request.user)
    form = filling.form(step)
    if isinstance(form, PodForm) and request.POST.get("add") in form.rows:
        what = with_row(what, form.rows[request.POST["add"]])
    elif removed := request.POST.get("remove"):
        what = without_row(what, removed)
    _store(draft, step, what, request.POST.get(STORED_AT, ""))
    go = request.POST.get("go", "")
    if step is Step.START and drafting.settle(draft, request.user):
        filling = Filling(draft.data, request.user)
    if "add" in request.POST or "remove" in request.POST:
        return redirect("wizard", draft.pk, step.value)
    if go == "here":
        return redirect("wizard", draft.pk, step.value)
    if go in ("environment", "compute", "data-source"):
        return redirect("wizard-asset", draft.pk, go)
    if go == "back":
        return redirect("wizard", draft.pk, _beside(filling, step, -1).value)
    if (wrong := filling.first_wrong(step)) is not None:
        return redirect("wizard", draft.pk, wrong.value)
    if not filling.judge(step) or filling.refused(step):
        return _show(request, draft, filling, step, status=422)
    return redirect("wizard", draft.pk, _beside(filling, step, 1).value)


def _beside(filling: Filling, step: Step, by: int) -> Step:
    steps = filling.steps
    at = steps.index(step) if step in steps else 0
    return steps[min(max(at + by, 0), len(steps) - 1)]


def _show(
    request: Request, draft: Draft, filling: Filling, step: Step, status: int = 200
) -> HttpResponse:
    steps = filling.steps
    at = steps.index(step)
    wrong = filling.first_wrong(Step.REVIEW) if status == 200 and step is not Step.REVIEW else None
    furthest = at if status != 200 else steps.index(wrong) if wrong else len(steps) - 1
    if status == 200 and step is not Step.REVIEW:
        filling.hush(step)
    stepper = [
        {
            "step": each,
            "label": filling.label(each),
            "number": number,
            "here": number == at + 1,
            "done": number <= at,
            "open": number - 1 <= max(at, furthest),
        }
        for number, each in enumerate(steps, 1)
    ]
    context: dict[str, Any] = {
        "draft": draft,
        "filling": filling,
        "step": step,
        "stepper": stepper,
        "first": at == 0,
    }
    context["label"] = filling.label(step)
    context["form"] = filling.form(step) if step is not Step.REVIEW else None
    if step is Step.REVIEW:
        context |= _review(request, filling)
        context["may_save_template"] = request.user.rights.anywhere(
            Permission(Entity.TEMPLATES, Verb.CREATE)
        )
    return render(request, f"workloads/wizard/{step.value}.html", context, status=status)


def _review(request: Request, filling: Filling) -> dict[str, Any]:
    spec, project = filling.spec(), filling.project
    assert project is not None
    can, setup = filling.capabilities, spec.setup
    return {
        "spec": spec,
        "project": project,
        "totals": spec.totals,
        "configuration": configuration_in_words(spec.configuration, spec.framework),
        "compute": compute_in_words(setup.compute),
        "master_compute": compute_in_words(spec.master_setup.compute) if spec.has_master else "",
        "server_compute": compute_in_words(spec.server_setup.compute),
        "command": in_words(setup.environment.command),
        "arguments": in_words(setup.environment.args),
        "master_differs": [
            group.title
            for _, groups in filling.master.sections
            for group in groups
            if group.differs
        ]
        if spec.has_master
        else [],
        "volumes": [volume_in_words(volume) for volume in setup.volumes],
        "node_pools": in_words(setup.node_pools),
        "topology": in_words(setup.topology),
        "used": filling.used,
        "fit": fit.of(spec, project),
        "can": can,
        "target": target(spec, can),
        "refused": [(problem.text, step_of(problem.field)) for problem in refusals(spec, can)],
        "yaml": _yaml(spec, project),
        "curl": curl(request, spec, filling),
    }


def _yaml(spec: Spec, project: Project) -> str:
    """Its objects on that project's cluster; "" where it cannot be built for it, which the refusals
    tell of.
    """
    try:
        return as_yaml(blueprint.of_spec(spec, project))
    except CannotBuild:
        return ""


def curl(request: Request, spec: Spec, filling: Filling) -> str:
    """The same submission as one command for a shell. The token is left to the shell's variable
    TOKEN.
    """
    project = filling.project
    assert project is not None
    body = as_rest(spec, project_id=str(project.pk), cluster_id=str(project.cluster_id))
    lines = (
        f"curl -X POST {shlex.quote(request.build_absolute_uri(rest_path(spec)))}",
        '-H "Authorization: Bearer $TOKEN"',
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(body, indent=2, ensure_ascii=False))}",
    )
    return " \\\n  ".join(lines)


def _submit(request: Request, draft: Draft) -> HttpResponse:
    """Launch what the draft says, once however often it is asked; or open the step that has what is
    wrong.
    """
    if request.POST.get("go") == "back":
        return redirect(
            "wizard", draft.pk, _beside(Filling(draft.data, request.user), Step.REVIEW, -1).value
        )
    filling = Filling(draft.data, request.user)
    if (wrong := filling.first_wrong(Step.REVIEW)) is not None:
        return _show(request, draft, filling, wrong, status=422)
    if filling.making is not None:
        return redirect("wizard-template", draft.pk)
    assert filling.project is not None
    spec = filling.spec()
    try:
        with transaction.atomic():
            fresh = Draft.objects.select_for_update().get(pk=draft.pk)
            if SUBMITTED in fresh.data:
                return redirect("workloads")
            workload = actions.submit(
                spec, project=filling.project, by=request.user, assets=filling.used
            )
            fresh.data = {SUBMITTED: str(workload.pk)}
            fresh.save(update_fields=["data", "updated_at"])
    except Clash as clash:
        filling.name_taken(clash.text)
        return _show(request, draft, filling, Step.START, status=422)
    except Invalid as refused:
        steps = [filling.blame(Problem(field, text)) for field, text in refused.problems]
        return _show(
            request,
            draft,
            filling,
            min(steps, key=filling.steps.index, default=step_of("name")),
            status=422,
        )
    messages.success(request, f"{workload.name} was submitted. It shows here as it starts.")
    return redirect("workloads")

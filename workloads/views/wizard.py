"""The wizard: a draft is filled in step by step, reviewed and submitted.

Input is stored before it is validated.
"""

import contextlib
import hashlib
import json
import shlex
import uuid
from typing import Any, cast

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console import edit_conflicts
from console.errors import Clash, Invalid, NotAllowed
from console.shell_commands import build_curl
from console.texts import parse_number
from console.typed_forms import TypedValues, add_row, parse_typed, remove_row
from projects import access
from projects.access import list_permitted_projects
from projects.http import Request
from projects.impersonation import writes_on_get
from projects.permissions import Entity, Permission, Verb
from workloads import actions, workload_manifests
from workloads.forms.draft_content import keep_other_kinds
from workloads.forms.draft_templates import APPLIED_TEMPLATE, NEW_TEMPLATE, TYPED_STEPS
from workloads.forms.pod_form import PodForm
from workloads.forms.setup_descriptions import (
    describe_compute,
    describe_configuration,
    describe_data_delivery,
    describe_value,
    describe_volume,
)
from workloads.forms.steps import Step, get_step
from workloads.forms.wizard_draft import WizardDraft
from workloads.forms.workload_form import KIND_SPECIFIC_NAMES
from workloads.judgement import Judgement
from workloads.manifests import CannotBuild, choose_target, dump_yaml
from workloads.models import Draft
from workloads.preflight import Answer, check_submission
from workloads.queries.read_only_mounts import are_mounts_enforced
from workloads.rest.submit_command import build_submit_command
from workloads.rest.writing import build_rest_body, get_rest_path
from workloads.specs import Problem, VolumeAccess, encode_spec
from workloads.views import drafting
from workloads.views.describing import UNENFORCED, describe_spec, has_read_only_mounts
from workloads.views.drafting import STORED_AT, STORED_BY, SUBMITTED
from workloads.views.machine_picture import MachinePicture, build_judged_picture, build_picture

PAGE = "page"
"""The form's field that tells pages apart that show the same step."""
UNTYPED_FIELDS = ("go", "add", "remove", "take", PAGE)
"""The form's buttons, and what else nobody types."""
OTHER_PAGE = "you, in another tab or window"
REVIEWED_SPEC = "reviewed_spec"
"""The review's field with the digest of what it shows."""


@writes_on_get
@require_GET
@never_cache
def start_draft(request: Request) -> HttpResponse:
    """Create a draft, empty or from a workload or template, and open it.

    Or save a workload as a template.
    """
    if request.GET.get("as") == "template":
        access.require_anywhere(request.user, Verb.CREATE, Entity.TEMPLATES)
    if not list_permitted_projects(request.user, Verb.CREATE, Entity.WORKLOADS).exists():
        raise NotAllowed(
            "You may launch workloads in no project. Ask the administrator of a project to make "
            "you its member."
        )
    if "copy" in request.GET:
        data = drafting.build_copy_data(request, request.GET["copy"])
    elif "draft" in request.GET:
        data = drafting.build_changed_draft_data(request, request.GET["draft"])
    else:
        data = (
            drafting.build_template_data(request, request.GET["template"])
            if "template" in request.GET
            else {}
        )
    if data and request.GET.get("as") == "template":
        data = {name: value for name, value in data.items() if name != APPLIED_TEMPLATE}
        return redirect(
            "wizard-template", drafting.create_draft(request.user, data | {NEW_TEMPLATE: {}}).pk
        )
    return redirect("wizard", drafting.create_draft(request.user, data).pk, Step.START.value)


@writes_on_get
@require_http_methods(["GET", "POST"])
@never_cache
def wizard_step(request: Request, draft: uuid.UUID, step: str) -> HttpResponse:
    """Show one step as it was left, or store it and go on."""
    saved_draft, current_step = drafting.get_draft(request, draft), _parse_step(step)
    if SUBMITTED in saved_draft.data:
        return drafting.redirect_submitted(request, saved_draft)
    if current_step is not Step.START:
        _apply_chosen_template(request, saved_draft)
    if request.method == "POST":
        return (
            _submit_draft(request, saved_draft)
            if current_step is Step.REVIEW
            else _leave_step(request, saved_draft, current_step)
        )
    filling = WizardDraft(saved_draft.data, request.user)
    if (wrong := filling.find_invalid_step(current_step)) is not None:
        return redirect("wizard", saved_draft.pk, wrong.value)
    if current_step not in filling.steps:
        return redirect("wizard", saved_draft.pk, Step.REVIEW.value)
    return _render_step(request, saved_draft, filling, current_step)


@require_POST
def save_step(request: Request, draft: uuid.UUID, step: str) -> HttpResponse:
    """Store the input so far, without validation, and answer what the page starts from now.

    409 where the draft was submitted meanwhile, 412 where another page changed the step. The page's
    script calls it while somebody types.
    """
    saved_draft, current_step = drafting.get_draft(request, draft), _parse_step(step)
    if current_step is not Step.REVIEW and not _store_step(
        request, saved_draft, current_step, parse_typed(request.POST, UNTYPED_FIELDS)
    ):
        return HttpResponse(status=412)
    if SUBMITTED in saved_draft.data:
        return HttpResponse(status=409)
    if current_step is Step.REVIEW:
        return HttpResponse(status=204)
    start = edit_conflicts.sign_start(
        _get_stored_count(saved_draft, current_step),
        _get_form_values(WizardDraft(saved_draft.data, request.user), current_step),
    )
    return HttpResponse(start, content_type="text/plain")


@require_GET
@never_cache
def show_machines(request: Request, draft: uuid.UUID) -> HttpResponse:
    """Show the machines of the total of GPUs that was stored last, a part of the setup step."""
    filling = WizardDraft(drafting.get_draft(request, draft).data, request.user)
    picture = _build_setup_picture(filling)
    return render(request, "workloads/_machines.html", {"picture": picture})


@require_GET
@never_cache
def show_preflight(request: Request, draft: uuid.UUID) -> HttpResponse:
    """Show what the cluster says of the draft's objects in a dry run, a part of the review."""
    filling = WizardDraft(drafting.get_draft(request, draft).data, request.user)
    context: dict[str, Any] = {"checks": (), "was_asked": False}
    is_complete = filling.new_template is None and filling.find_invalid_step(Step.REVIEW) is None
    judged = filling.judge() if is_complete else None
    if judged is not None and not judged.refusals:
        context |= {"cluster": judged.cluster, "asked_at": timezone.now()}
        # What cannot be built has its refusals on the page.
        with contextlib.suppress(CannotBuild):
            context["checks"] = checks = check_submission(judged)
            context["was_asked"] = any(each.answer is not Answer.UNCHECKED for each in checks)
    return render(request, "workloads/wizard/_preflight.html", context)


def _build_setup_picture(filling: WizardDraft) -> MachinePicture | None:
    """Return the picture of a total of GPUs; None without one, or where the project is not chosen.

    A template has no project's nodes.
    """
    if not filling.is_distributed or filling.setup.read("total_gpus") is None:
        return None
    judged = filling.judge(Step.SETUP)
    return None if judged is None else build_judged_picture(judged)


def _parse_step(word: str) -> Step:
    try:
        return Step(word)
    except ValueError:
        raise Http404("The wizard has no such step.") from None


def _apply_chosen_template(request: Request, draft: Draft) -> bool:
    """Fill in the template that is chosen in the first step. Return whether the choice changed.

    A message says so where its values take the place of typed ones.
    """
    had_typed_steps = TYPED_STEPS in draft.data
    is_changed = drafting.apply_chosen_template(draft, request.user)
    if not had_typed_steps and TYPED_STEPS in draft.data:
        messages.info(
            request,
            "The template's values took the place of what you typed. Choose “Start from scratch” "
            "in the first step to bring it back.",
        )
    return is_changed


def _store_step(
    request: Request,
    draft: Draft,
    step: Step,
    typed_values: TypedValues,
    *,
    is_button_press: bool = False,
) -> bool:
    """Store the input of one step. Return False, and store nothing, where another page changed it.

    The form's `at` counts up in the browser, so that a request that was sent earlier and comes
    later changes nothing. A pressed button stores its form whatever its `at`.
    """
    sent_at = parse_number(request.POST.get(STORED_AT, ""), 15) or 0
    with transaction.atomic():
        # Saves of the page's script run beside the one of a button: each changes only its own step.
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        stored_at = _get_stored_count(fresh, step)
        # The clock of another machine may have been ahead: what a person sends off counts anyway.
        is_newest = is_button_press or not sent_at or sent_at >= stored_at
        is_submitted = SUBMITTED in fresh.data
        is_changed = not is_submitted and _is_changed_elsewhere(request, fresh, step)
        if not is_submitted and not is_changed and is_newest:
            page, before = _get_page(request), fresh.data.get(step.value, {})
            stored = keep_other_kinds(typed_values, before) if step is Step.SETUP else typed_values
            # A page that changes nothing takes the step from no other page.
            if stored != before or page == _get_storing_page(fresh, step):
                fresh.data[step.value] = stored
                drafting.note_stored(fresh.data, step, at=sent_at, page=page)
                fresh.save(update_fields=["data", "updated_at"])
    draft.data = fresh.data
    return not is_changed


def _is_changed_elsewhere(request: Request, draft: Draft, step: Step) -> bool:
    """Return whether another page stored other values since the sending one was shown or stored."""
    start = edit_conflicts.parse_start(request.POST.get(edit_conflicts.START_FIELD, ""))
    if start is None or start.version == _get_stored_count(draft, step):
        return False
    if _get_storing_page(draft, step) == _get_page(request):
        return False
    current = _get_form_values(WizardDraft(draft.data, request.user), step)
    return bool(edit_conflicts.find_differences(start.values, current))


def _get_stored_count(draft: Draft, step: Step) -> int:
    count: int = draft.data.get(STORED_AT, {}).get(step.value, 0)
    return count


def _get_storing_page(draft: Draft, step: Step) -> str:
    page: str = draft.data.get(STORED_BY, {}).get(step.value, "")
    return page


def _get_form_values(filling: WizardDraft, step: Step) -> TypedValues:
    """Return the values that the form of a step shows.

    Those that the chosen kind of workload does not have are left out; the master's include what it
    has from the workers.
    """
    form = filling.get_form(step)
    form_data = cast(QueryDict, form.data)
    return {
        name: values
        for name, values in form_data.lists()
        if name in form.fields or name not in KIND_SPECIFIC_NAMES
    }


def _get_page(request: Request) -> str:
    return request.POST.get(PAGE, "")[:32].replace("\x00", "")


def _leave_step(request: Request, draft: Draft, step: Step) -> HttpResponse:
    """Store a step, and go where the pressed button says.

    Goes on only if the step is valid.
    """
    typed_values = parse_typed(request.POST, UNTYPED_FIELDS)
    if offered_name := request.POST.get("take"):
        typed_values["name"] = [offered_name]
    filling = WizardDraft(draft.data | {step.value: typed_values}, request.user)
    form = filling.get_form(step)
    if isinstance(form, PodForm) and request.POST.get("add") in form.rows:
        typed_values = add_row(typed_values, form.rows[request.POST["add"]])
    elif removed := request.POST.get("remove"):
        typed_values = remove_row(typed_values, removed)
    if not _store_step(request, draft, step, typed_values, is_button_press=True):
        filling = WizardDraft(draft.data | {step.value: typed_values}, request.user)
        if step in filling.steps:
            return _render_step(request, draft, filling, step, status=409)
        messages.warning(
            request,
            f"The step {filling.get_step_label(step)} was not stored: in another tab or window you "
            "chose a configuration without it. Choose one with it to fill it in.",
        )
        return redirect("wizard", draft.pk, Step.REVIEW.value)
    target = request.POST.get("go", "")
    if step is Step.START and _apply_chosen_template(request, draft):
        filling = WizardDraft(draft.data, request.user)
    if "add" in request.POST or "remove" in request.POST:
        return redirect("wizard", draft.pk, step.value)
    if target == "here" or "anyway" in request.POST:
        return redirect("wizard", draft.pk, step.value)
    if target in ("environment", "compute", "data-source"):
        return redirect("wizard-asset", draft.pk, target)
    if target == "back":
        return redirect("wizard", draft.pk, _find_neighbour_step(filling, step, -1).value)
    if (wrong := filling.find_invalid_step(step)) is not None:
        return redirect("wizard", draft.pk, wrong.value)
    if not filling.validate_step(step) or filling.add_refusals(step):
        return _render_step(request, draft, filling, step, status=422)
    return redirect("wizard", draft.pk, _find_neighbour_step(filling, step, 1).value)


def _find_neighbour_step(filling: WizardDraft, step: Step, distance: int) -> Step:
    steps = filling.steps
    at = steps.index(step) if step in steps else 0
    return steps[min(max(at + distance, 0), len(steps) - 1)]


def _render_step(
    request: Request, draft: Draft, filling: WizardDraft, step: Step, status: int = 200
) -> HttpResponse:
    steps = filling.steps
    at = steps.index(step)
    wrong = (
        filling.find_invalid_step(Step.REVIEW)
        if status == 200 and step is not Step.REVIEW
        else None
    )
    furthest = at if status != 200 else steps.index(wrong) if wrong else len(steps) - 1
    if status == 200 and step is not Step.REVIEW:
        filling.hide_errors(step)
    stepper = [
        {
            "step": each,
            "label": filling.get_step_label(each),
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
        "stored_at": _get_stored_count(draft, step),
    }
    context["label"] = filling.get_step_label(step)
    context["form"] = filling.get_form(step) if step is not Step.REVIEW else None
    if step is not Step.REVIEW:
        context |= _build_conflict_context(request, draft, filling, step, is_late=status == 409)
    if step is Step.SETUP:
        context["picture"] = _build_setup_picture(filling)
        context["enforces_mounts"] = filling.project is None or are_mounts_enforced(
            filling.project.cluster
        )
    if step is Step.REVIEW:
        context |= _build_review_context(request, filling) | {"is_late": status == 409}
        context["may_save_template"] = request.user.rights.may_anywhere(
            Permission(Entity.TEMPLATES, Verb.CREATE)
        )
    return render(request, f"workloads/wizard/{step.value}.html", context, status=status)


def _build_conflict_context(
    request: Request, draft: Draft, filling: WizardDraft, step: Step, *, is_late: bool
) -> dict[str, Any]:
    """Return what the form of a step started from; where it came too late, what changed, too."""
    stored_at = _get_stored_count(draft, step)
    # What an answer to a page shows goes on from that page.
    page = {"page": _get_page(request) or uuid.uuid4().hex}
    if not is_late:
        return page | edit_conflicts.build_conflict_context(
            stored_at, _get_form_values(filling, step)
        )
    return page | edit_conflicts.build_conflict_context(
        stored_at,
        _get_form_values(WizardDraft(draft.data, request.user), step),
        sent=request.POST,
        form=filling.get_form(step),
        changed_by=OTHER_PAGE,
    )


def _build_review_context(request: Request, filling: WizardDraft) -> dict[str, Any]:
    judged = filling.judge()
    assert judged is not None
    spec, project = judged.spec, judged.project
    can, setup = filling.capabilities, spec.setup
    enforces = not has_read_only_mounts(spec) or are_mounts_enforced(project.cluster)
    return {
        "spec": spec,
        "reviewed_spec": _compute_spec_digest(judged),
        "picture": build_picture(spec),
        "project": project,
        "totals": spec.totals,
        "data_totals": spec.data_totals,
        "configuration": describe_configuration(spec.configuration, spec.framework),
        "compute": describe_compute(setup.compute),
        "master_compute": describe_compute(spec.master_setup.compute) if spec.has_master else "",
        "data_workers": describe_data_delivery(spec.data_delivery) if spec.data_delivery else "",
        "server_compute": describe_compute(spec.parameter_server_setup.compute),
        "container_command": describe_value(setup.environment.command),
        "arguments": describe_value(setup.environment.args),
        "master_differs": [
            group.title
            for _, groups in filling.master.sections
            for group in groups
            if group.differs
        ]
        if spec.has_master
        else [],
        "volumes": [
            describe_volume(volume)
            + (UNENFORCED if volume.access is not VolumeAccess.READ_WRITE and not enforces else "")
            for volume in setup.volumes
        ],
        "node_pools": describe_value(setup.node_pools),
        "topology": describe_value(setup.topology),
        "used": filling.used_assets,
        "sections": describe_spec(spec, enforces_mounts=enforces),
        "fit": judged.fit,
        "can": can,
        "target": choose_target(spec, can),
        "refused": [(problem.text, get_step(problem.field)) for problem in judged.refusals],
        "yaml": _build_yaml(judged),
        "curl": _build_curl(request, judged),
        "command": build_submit_command(spec, project.name),
    }


def _compute_spec_digest(judged: Judgement) -> str:
    """Return a digest of what would be launched: the judged spec and its project."""
    content = json.dumps([judged.project.pk, encode_spec(judged.spec)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _build_yaml(judged: Judgement) -> str:
    """Return the submission's objects on its cluster as YAML.

    "" where they cannot be built for it; the refusals say why.
    """
    try:
        objects = workload_manifests.build_for_spec(judged.spec, judged.project, judged.pools)
        return dump_yaml(objects)
    except CannotBuild:
        return ""


def _build_curl(request: Request, judged: Judgement) -> str:
    """Return the same submission as a REST call."""
    spec, project = judged.spec, judged.project
    body = build_rest_body(spec, project_id=str(project.pk), cluster_id=str(project.cluster_id))
    return build_curl(shlex.quote(request.build_absolute_uri(get_rest_path(spec))), body)


def _submit_draft(request: Request, draft: Draft) -> HttpResponse:
    """Launch the draft, once however often it is asked; or show the step with errors.

    Shows the review again where it showed something else than would be launched now.
    """
    if request.POST.get("go") == "back":
        return redirect(
            "wizard",
            draft.pk,
            _find_neighbour_step(WizardDraft(draft.data, request.user), Step.REVIEW, -1).value,
        )
    filling = WizardDraft(draft.data, request.user)
    if (wrong := filling.find_invalid_step(Step.REVIEW)) is not None:
        return _render_step(request, draft, filling, wrong, status=422)
    if filling.new_template is not None:
        return redirect("wizard-template", draft.pk)
    judged = filling.judge()
    assert judged is not None
    is_reviewed = request.POST.get(REVIEWED_SPEC) == _compute_spec_digest(judged)
    try:
        with transaction.atomic():
            # A second click waits here, and finds the draft submitted.
            fresh = Draft.objects.select_for_update().get(pk=draft.pk)
            if SUBMITTED in fresh.data:
                return drafting.redirect_submitted(request, fresh)
            # Another tab may have stored something since the draft was read.
            is_reviewed = is_reviewed and fresh.data == draft.data
            if is_reviewed:
                workload = actions.submit(
                    filling.build_spec(),
                    project=judged.project,
                    user=request.user,
                    assets=filling.used_assets,
                    judgement=judged,
                )
                fresh.data = {SUBMITTED: str(workload.pk)}
                fresh.save(update_fields=["data", "updated_at"])
    except Clash as clash:
        filling.report_taken_name(clash.text)
        return _render_step(request, draft, filling, Step.START, status=422)
    except Invalid as refused:
        steps = [filling.add_error(Problem(field, text)) for field, text in refused.problems]
        return _render_step(
            request,
            draft,
            filling,
            min(steps, key=filling.steps.index, default=get_step("name")),
            status=422,
        )
    if not is_reviewed:
        return _show_review_again(request, fresh)
    messages.success(request, f"{workload.name} was submitted. It shows here as it starts.")
    return redirect("workloads")


def _show_review_again(request: Request, draft: Draft) -> HttpResponse:
    """Show the review as it is now, or the first step that became invalid."""
    filling = WizardDraft(draft.data, request.user)
    wrong = filling.find_invalid_step(Step.REVIEW)
    if wrong is not None:
        return _render_step(request, draft, filling, wrong, status=422)
    return _render_step(request, draft, filling, Step.REVIEW, status=409)

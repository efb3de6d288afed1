"""What would help a workload that waits, or a draft: a page, and the same as it is found out."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console import http
from console.streams import PieceResponse
from projects.http import Request
from workloads.alternatives import (
    AnswerBoard,
    CannotAsk,
    Question,
    ask_for_draft,
    ask_for_workload,
    play_question,
    play_to_end,
)
from workloads.forms.steps import Step
from workloads.forms.wizard_draft import WizardDraft
from workloads.judgement import Judgement
from workloads.models import Workload
from workloads.queries.forecasts import WAITING_STATUSES
from workloads.views import drafting
from workloads.views.logstream import format_event

PART = "workloads/_alternatives.html"
BuildQuestion = Callable[[], Question]


@require_safe
@never_cache
def workload_alternatives(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Show what would help a workload that waits; as events where these are asked for.

    With `played` the page has all answers, for readers without scripts.
    """
    visible = Workload.objects.visible_to(request.user).select_related("project__cluster")
    workload: Workload = get_object_or_404(visible, pk=pk)
    context: dict[str, Any] = {"w": workload, "copy_of": f"copy={workload.pk}"}

    def build() -> Question:
        if workload.status not in WAITING_STATUSES or workload.released_at is not None:
            raise CannotAsk("It does not wait any more.")
        return ask_for_workload(workload, request.user)

    if _wants_events(request):
        return _stream(request, build, context)
    if "played" in request.GET:
        context |= _describe(*play_to_end(build, request.user.pk))
    return http.render_page(
        request, "workloads/alternatives.html", "workloads/_alternatives_dialog.html", context
    )


@require_safe
@never_cache
def draft_alternatives(request: Request, draft: uuid.UUID) -> HttpResponseBase:
    """Show what would let a draft start sooner; as events for the review, else as a page."""
    saved = drafting.get_draft(request, draft)
    filling = WizardDraft(saved.data, request.user)
    context: dict[str, Any] = {"draft": saved, "copy_of": f"draft={saved.pk}"}

    def build() -> Question:
        judged = _judge_draft(filling)
        if judged is None or judged.refusals:
            raise CannotAsk("It is not complete, or its cluster cannot run it as it is.")
        return ask_for_draft(judged, request.user)

    if _wants_events(request):
        return _stream(request, build, context)
    context |= _describe(*play_to_end(build, request.user.pk))
    return render(request, "workloads/wizard/alternatives.html", context)


def _judge_draft(filling: WizardDraft) -> Judgement | None:
    """Judge a draft; None where it is a template's, or not complete."""
    if filling.new_template is not None or filling.find_invalid_step(Step.REVIEW) is not None:
        return None
    return filling.judge()


def _wants_events(request: Request) -> bool:
    return request.headers.get("Accept", "").startswith("text/event-stream")


def _describe(board: AnswerBoard | None, trouble: str = "") -> dict[str, Any]:
    """Return what the part shows; with a trouble no more comes."""
    return {
        "base": None if board is None else board.base,
        "best": () if board is None else board.list_best(),
        "has_arrivals": board is not None and board.has_arrivals,
        "is_over": bool(trouble) or (board is not None and board.is_over),
        "trouble": trouble,
        "is_played": True,
    }


def _stream(request: Request, build: BuildQuestion, context: dict[str, Any]) -> HttpResponseBase:
    """Send the list anew each time that it shows more."""
    if request.method == "HEAD":
        return HttpResponse(content_type="text/event-stream")

    def render_part(part_context: dict[str, Any]) -> str:
        # Django's own kind of string cannot be encoded.
        return str.__str__(render_to_string(PART, context | part_context, request))

    def render_events() -> Iterator[str]:
        board, sent = None, ""
        try:
            for board in play_question(build, request.user.pk):
                html = render_part(_describe(board))
                # Something is sent all the same: whoever has gone is noticed.
                yield format_event("alternatives", html) if html != sent else ": quiet\n\n"
                sent = html
        except CannotAsk as error:
            yield format_event("alternatives", render_part(_describe(board, str(error))))
        yield format_event("over", {})

    response = PieceResponse(render_events(), content_type="text/event-stream")
    response["X-Accel-Buffering"] = "no"
    return response

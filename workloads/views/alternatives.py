"""What would help a workload that waits, or a draft: a page, and the same as it is found out."""

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
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
    ask_simulator,
)
from workloads.forms.steps import Step
from workloads.forms.wizard_draft import WizardDraft
from workloads.judgement import Judgement
from workloads.models import Workload
from workloads.queries.forecasts import WAITING_STATUSES
from workloads.views import drafting
from workloads.views.logstream import format_event

PART = "workloads/_alternatives.html"
LEAST_PAUSE = 0.3
"""Seconds between two states of the list that are sent."""

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
        context |= _play(request, build)
    return http.render_page(
        request, "workloads/alternatives.html", "workloads/_alternatives_dialog.html", context
    )


@require_safe
@never_cache
def draft_alternatives(request: Request, draft: uuid.UUID) -> HttpResponseBase:
    """Show what would let a draft start sooner, a part of the review; as events or at once."""
    saved = drafting.get_draft(request, draft)
    filling = WizardDraft(saved.data, request.user)
    context = {"copy_of": f"draft={saved.pk}", "is_draft": True}

    def build() -> Question:
        judged = _judge_draft(filling)
        if judged is None or judged.refusals:
            raise CannotAsk("It is not complete, or its cluster cannot run it as it is.")
        return ask_for_draft(judged, request.user)

    if _wants_events(request):
        return _stream(request, build, context)
    context |= _play(request, build)
    return HttpResponse(render_to_string(PART, context, request))


def _judge_draft(filling: WizardDraft) -> Judgement | None:
    """Judge a draft; None where it is a template's, or not complete."""
    if filling.new_template is not None or filling.find_invalid_step(Step.REVIEW) is not None:
        return None
    return filling.judge()


def _wants_events(request: Request) -> bool:
    return request.headers.get("Accept", "").startswith("text/event-stream")


def _play(request: Request, build: BuildQuestion) -> dict[str, Any]:
    """Return what is known once all is played, which takes some seconds."""
    board, trouble = None, ""
    try:
        question = build()
        board = AnswerBoard(question)
        for answer in ask_simulator(question, request.user.pk):
            board.note(answer)
    except CannotAsk as error:
        trouble = str(error)
    return _describe(board, is_over=True, trouble=trouble)


def _describe(board: AnswerBoard | None, *, is_over: bool, trouble: str = "") -> dict[str, Any]:
    return {
        "base": None if board is None else board.base,
        "best": () if board is None else board.list_best(),
        "is_over": is_over,
        "trouble": trouble,
        "is_played": True,
    }


def _stream(request: Request, build: BuildQuestion, context: dict[str, Any]) -> HttpResponseBase:
    """Send the list anew each time that more is known."""
    if request.method == "HEAD":
        return HttpResponse(content_type="text/event-stream")

    def render_event(found: dict[str, Any]) -> str:
        html = render_to_string(PART, context | found, request)
        # Django's own kind of string cannot be encoded.
        return format_event("alternatives", str.__str__(html))

    def render_events() -> Iterator[str]:
        board, trouble, sent_at = None, "", 0.0
        try:
            question = build()
            board = AnswerBoard(question)
            for answer in ask_simulator(question, request.user.pk):
                board.note(answer)
                if time.monotonic() - sent_at >= LEAST_PAUSE:
                    sent_at = time.monotonic()
                    yield render_event(_describe(board, is_over=False))
        except CannotAsk as error:
            trouble = str(error)
        yield render_event(_describe(board, is_over=True, trouble=trouble))
        yield format_event("over", {})

    response = PieceResponse(render_events(), content_type="text/event-stream")
    response["X-Accel-Buffering"] = "no"
    return response

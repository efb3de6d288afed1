"""The pages of a person's named views of the workload table: save, edit, delete."""

import copy
import uuid
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console import tables
from console.errors import UserError
from console.http import redirect_with_message, render_form
from console.questions import Question, render_question
from projects.http import Request
from workloads import saved_views
from workloads.forms.saved_view import SavedViewChangeForm, SavedViewForm
from workloads.models import SavedView
from workloads.workload_table import TABLE

VIEW = "view"
"""The parameter of the table's address that names the view that it belongs to."""
NO_VIEW = "all"
"""The table without a view, also for who begins with one."""


def build_view_address(view: SavedView) -> str:
    """Build the address of a view: who gets it sees the same columns, filters and order."""
    return f"{reverse('workloads')}?{urlencode({VIEW: view.pk})}&{view.query}"


@never_cache
@require_http_methods(["GET", "POST"])
def save_view(request: Request) -> HttpResponse:
    """Save what the table of the address shows as a new view."""
    form = SavedViewForm(request.POST or None, initial=_build_initial(request))
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            view = saved_views.create_view(
                request.user,
                name=values["name"],
                query=_clean_query(request, values["query"]),
                is_default=values["is_default"],
            )
            return redirect_with_message(
                request, build_view_address(view), f"View {view.name} is saved."
            )
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    return _render_form(
        request,
        form,
        title="Save view",
        intro="A view has the columns, the filters and the order of the table.",
    )


@never_cache
@require_http_methods(["GET", "POST"])
def edit_view(request: Request, view_id: uuid.UUID) -> HttpResponse:
    """Rename a view, begin with it or not, or replace what it shows."""
    view = _get_own_view(request, view_id)
    initial = _build_initial(request) | {"name": view.name, "is_default": view.is_default}
    form = SavedViewChangeForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            saved_views.change_view(
                view,
                name=values["name"],
                is_default=values["is_default"],
                query=_clean_query(request, values["query"]) if values["replace"] else "",
            )
            return redirect_with_message(
                request, build_view_address(view), f"View {view.name} is saved."
            )
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    return _render_form(request, form, title=f"Edit view {view.name}")


@never_cache
@require_http_methods(["GET", "POST"])
def delete_view(request: Request, view_id: uuid.UUID) -> HttpResponse:
    """Delete a view when the question is answered."""
    view = _get_own_view(request, view_id)
    if request.method == "POST":
        saved_views.delete_view(view)
        return redirect_with_message(
            request, f"{reverse('workloads')}?{VIEW}={NO_VIEW}", f"View {view.name} is deleted."
        )
    question = Question(
        title=f"Delete view {view.name}",
        button="Delete",
        crumbs=[(build_view_address(view), view.name)],
        effects=["The workloads that it shows stay as they are. Addresses of it go on working."],
    )
    return render_question(request, question)


def _get_own_view(request: Request, view_id: uuid.UUID) -> SavedView:
    view: SavedView = get_object_or_404(
        SavedView.objects.select_related("user"), pk=view_id, user=request.user
    )
    return view


def _build_initial(request: Request) -> dict[str, Any]:
    return {"query": tables.build_query(request, TABLE)}


def _clean_query(request: Request, query: str) -> str:
    """Return the query of the same table without anything that is no part of its state."""
    addressed = copy.copy(request)
    addressed.GET = QueryDict(query)
    return tables.build_query(addressed, TABLE)


def _render_form(
    request: Request, form: SavedViewForm, *, title: str, intro: str = ""
) -> HttpResponse:
    context = {
        "title": title,
        "intro": intro,
        "yes": "Save view",
        "back": reverse("workloads"),
        "back_words": "Workloads",
    }
    return render_form(request, form, context)

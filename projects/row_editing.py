"""The form that changes a row; the second of two editors is shown what the first changed."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from django.forms import BaseForm
from django.http import HttpResponse

from console import edit_conflicts
from console.errors import UserError
from console.http import redirect_with_message, render_form
from projects import quotas
from projects.http import Request
from projects.last_changes import find_last_change


class EditedRow(Protocol):
    """A row that a form changes."""

    pk: Any
    name: str


class FormRenderer(Protocol):
    """Renders a form as a page; without a status it is 422 where the form has errors."""

    def __call__(
        self, request: Request, form: BaseForm, context: dict[str, Any], status: int = 0
    ) -> HttpResponse: ...


Row = TypeVar("Row", bound=EditedRow)


def edit_row(
    request: Request,
    form: BaseForm,
    row: Row,
    *,
    entity: str,
    back: str,
    values: Callable[[Row], Mapping[str, Any]],
    reload: Callable[[], Row],
    save: Callable[[int], str],
    get_version: Callable[[Row], int] = attrgetter("version"),
    render: FormRenderer = render_form,
    context: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Answer with the form as it starts, as it was sent, or save it and go `back`.

    `entity` is the row's name in the audit log, `values` returns a row as the form has it. `save`
    saves the valid form, given the version that was started from, and returns the message for the
    user; it raises UserError and ChangedMeanwhile. The version rises with each change.
    """

    def build_start(present: Row, **conflict: Any) -> dict[str, Any]:
        start = quotas.to_form_data(values(present))
        return edit_conflicts.build_conflict_context(get_version(present), start, **conflict)

    def render_conflict(present: Row) -> HttpResponse:
        by, at = find_last_change(entity, row.pk)
        conflict = build_start(present, sent=request.POST, form=form, changed_by=by, changed_at=at)
        return render(request, form, page | conflict, status=409)

    page = {
        **(context or {}),
        "title": f"Edit {row.name}",
        "yes": "Save",
        "back": back,
        "back_words": row.name,
    }
    if request.method != "POST":
        return render(request, form, page | build_start(row))
    version = edit_conflicts.parse_started_version(request.POST)
    if version != get_version(row):
        # Before it is validated: against the changed row what was sent may make no sense.
        return render_conflict(row)
    if form.is_valid():
        try:
            return redirect_with_message(request, back, save(version))
        except edit_conflicts.ChangedMeanwhile:
            return render_conflict(reload())
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    # What was started from stays with the form until it is saved, however often it is mended.
    started_from = request.POST.get(edit_conflicts.START_FIELD, "")
    return render(request, form, page | {"started_from": started_from})

"""The form that changes a row; the second of two editors is shown what the first changed."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from django.forms import BaseForm
from django.http import HttpResponse

from console import edit_conflicts
from console.errors import Clash
from console.http import redirect_with_message, render_form
from projects import quotas
from projects.http import Request
from projects.last_changes import find_last_change


class VersionedRow(Protocol):
    """A row whose version rises with each change."""

    pk: int
    name: str
    version: int


Row = TypeVar("Row", bound=VersionedRow)


def edit_row(
    request: Request,
    form: BaseForm,
    row: Row,
    *,
    entity: str,
    back: str,
    values: Callable[[Row], Mapping[str, Any]],
    reload: Callable[[], Row],
    save: Callable[[int | None], str],
    context: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Answer with the form as it starts, as it was sent, or save it and go `back`.

    `entity` is the row's name in the audit log, `values` returns a row as the form has it. `save`
    saves the valid form, given the version that was started from, and returns the message for the
    user; it raises Clash and ChangedMeanwhile.
    """

    def build_start(present: Row, **conflict: Any) -> dict[str, Any]:
        start = quotas.to_form_data(values(present))
        return edit_conflicts.build_conflict_context(present.version, start, **conflict)

    page = {
        **(context or {}),
        "title": f"Edit {row.name}",
        "yes": "Save",
        "back": back,
        "back_words": row.name,
    }
    if request.method != "POST":
        return render_form(request, form, page | build_start(row))
    if form.is_valid():
        try:
            message = save(edit_conflicts.parse_started_version(request.POST))
            return redirect_with_message(request, back, message)
        except edit_conflicts.ChangedMeanwhile:
            by, at = find_last_change(entity, row.pk)
            conflict = build_start(
                reload(), sent=request.POST, form=form, changed_by=by, changed_at=at
            )
            return render_form(request, form, page | conflict, status=409)
        except Clash as refusal:
            form.add_error(refusal.field or None, refusal.text)
    # What was started from stays with the form until it is saved, however often it is mended.
    started_from = request.POST.get(edit_conflicts.START_FIELD, "")
    return render_form(request, form, page | {"started_from": started_from})

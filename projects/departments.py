"""What can be done to departments. Pages and the REST API call these."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from console import editing
from console.errors import Clash
from projects import access, audit, leaving, quotas
from projects.models import Department, User
from projects.permissions import Entity, Verb
from projects.scopes import of_department

MOST_NAMED = 5


def create(form: "quotas.SharesForm", by: User) -> Department:
    """A new department as a valid form says. Raises NotAllowed, and Clash where its name is
    taken.
    """
    access.require(by, Verb.CREATE, Entity.DEPARTMENTS)
    made = Department(name=form.cleaned_data["name"])
    form.fill(made)
    try:
        with transaction.atomic():
            made.save(force_insert=True)
            _record(audit.Event.CREATE, made, by, None, told(made))
    except IntegrityError:
        raise _taken(made.name) from None
    return made


def change(
    department: Department, form: "quotas.SharesForm", by: User, edited: int | None = None
) -> Department:
    """The department as a valid form says; the Queues of its projects follow.

    `edited` is the version that was looked at. Raises NotAllowed, Http404, ChangedMeanwhile, and
    Clash where its name is taken.
    """
    access.require(by, Verb.EDIT, Entity.DEPARTMENTS, of_department(department))
    try:
        with transaction.atomic():
            row: Department = Department.objects.select_for_update().get(pk=department.pk)
            editing.unchanged(row.version, edited, f"Department {row.name}")
            before = told(row)
            row.name = form.cleaned_data["name"]
            form.fill(row)
            row.version += 1
            row.save()
            _record(audit.Event.UPDATE, row, by, *audit.changed(before, told(row)))
            provision(row)
    except IntegrityError:
        raise _taken(form.cleaned_data["name"]) from None
    return row


def delete(department: Department, by: User) -> None:
    """Delete a department that has no project, and with it what is of its scope.

    The history of its projects that have left stays, and with it the row they name.

    Raises NotAllowed, Http404, and Clash while it has projects, or something elsewhere needs a
    credential of it.
    """
    access.require(by, Verb.DELETE, Entity.DEPARTMENTS, of_department(department))
    with transaction.atomic():
        row = Department.objects.select_for_update().get(pk=department.pk)
        if why := hindrances(row, by):
            raise Clash(why)
        _record(audit.Event.DELETE, row, by, told(row), None)
        leaving.end_at(of_department(row), by)
        if row.projects.exists():
            row.left_at = timezone.now()
            row.save(update_fields=["left_at"])
        else:
            row.delete()


def hindrances(department: Department, by: User) -> str:
    """Why a department cannot be deleted now, and what to do, as far as `by` may know; "" where it
    can.
    """
    names = list(department.projects.there().order_by("name").values_list("name", flat=True)[:100])
    if not names:
        used = import_string(f"{settings.ASSETS}.holding")(of_department(department), by)
        told = f"Credentials of department {department.name} are used elsewhere, by {used}."
        return (
            f"{told} Choose other credentials there, or delete what uses them, first."
            if used
            else ""
        )
    shown = ", ".join(names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (
        f"Department {department.name} has projects: {shown}{more}. Delete them, or move them to "
        "another department, first."
    )


def provision(department: Department) -> None:
    """Have the Queues of its projects brought up to date once this is committed."""
    step: Any = import_string(settings.PROVISION)
    for project_id in quotas.projects_of(department):
        step.soon(project_id)


def told(department: Department) -> Mapping[str, Any]:
    """What the audit log has of it."""
    return {"name": department.name} | quotas.exact(department)


def _record(event: audit.Event, row: Department, by: User, before: Any, after: Any) -> None:
    audit.record(
        event,
        "department",
        by=by,
        id=row.pk,
        name=row.name,
        scope=of_department(row),
        before=before,
        after=after,
    )


def _taken(name: str) -> Clash:
    return Clash(f"There is a department {name} already. Choose another name.", field="name")

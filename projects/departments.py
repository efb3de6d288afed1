"""Actions on departments, which pages and the REST API call."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.shortcuts import get_object_or_404
from django.utils import timezone

from console import edit_conflicts
from console.errors import Clash
from console.texts import join_first
from projects import access, audit, project_removal, quotas, seams
from projects.models import Department, User
from projects.permissions import Entity, Verb
from projects.scopes import department_scope


def create(form: "quotas.SharesForm", by: User) -> Department:
    """Create a department from a valid form.

    Raises NotAllowed, and Clash for a name that is taken.
    """
    access.require(by, Verb.CREATE, Entity.DEPARTMENTS)
    department = Department(name=form.cleaned_data["name"])
    form.fill_row(department)
    try:
        with transaction.atomic():
            department.save(force_insert=True)
            _record_change(audit.Event.CREATE, department, by, None, audit_values(department))
    except IntegrityError:
        raise _make_name_clash(department.name) from None
    return department


def change(
    department: Department, form: "quotas.SharesForm", by: User, version: int | None = None
) -> Department:
    """Change a department from a valid form, and update the Queues of its projects.

    `version` is the one that the user edited. Raises NotAllowed, Http404, ChangedMeanwhile, and
    Clash for a name that is taken.
    """
    access.require(by, Verb.EDIT, Entity.DEPARTMENTS, department_scope(department))
    try:
        with transaction.atomic():
            row = _lock_department(department)
            edit_conflicts.check_version(row.version, version, f"Department {row.name}")
            before, columns_before = audit_values(row), edit_conflicts.get_edited_columns(row)
            row.name = form.cleaned_data["name"]
            form.fill_row(row)
            if edit_conflicts.get_edited_columns(row) != columns_before:
                row.version += 1
                row.save()
                _record_change(
                    audit.Event.UPDATE, row, by, *audit.select_changes(before, audit_values(row))
                )
            schedule_provisioning(row)
    except IntegrityError:
        raise _make_name_clash(form.cleaned_data["name"]) from None
    return row


def delete(department: Department, by: User) -> None:
    """Delete a department without projects, with everything of its scope.

    The row stays where deleted projects name it, for their history. Raises NotAllowed, Http404, and
    Clash while it has projects or its credentials are used elsewhere.
    """
    access.require(by, Verb.DELETE, Entity.DEPARTMENTS, department_scope(department))
    with transaction.atomic():
        row = _lock_department(department)
        if why := describe_blockers(row, by):
            raise Clash(why)
        _record_change(audit.Event.DELETE, row, by, audit_values(row), None)
        project_removal.delete_scope_contents(department_scope(row), by)
        if row.projects.exists():
            row.deleted_at = timezone.now()
            row.save(update_fields=["deleted_at"])
        else:
            row.delete()


def describe_blockers(department: Department, by: User) -> str:
    """Describe what prevents deletion of a department, as far as `by` may know; "" for nothing."""
    names = list(department.projects.there().order_by("name").values_list("name", flat=True)[:100])
    if not names:
        used = seams.SCOPE_ASSETS.get().describe_uses(department_scope(department), by)
        reason = f"Credentials of department {department.name} are used elsewhere, by {used}."
        return (
            f"{reason} Choose other credentials there, or delete what uses them, first."
            if used
            else ""
        )
    return (
        f"Department {department.name} has projects: {join_first(names)}. Delete them, or move "
        "them to another department, first."
    )


def schedule_provisioning(department: Department) -> None:
    """Schedule an update of the Queues of the department's projects after the commit."""
    for project_id in quotas.list_project_ids(department):
        seams.PROVISION_STEP.get().enqueue(project_id)


def audit_values(department: Department) -> Mapping[str, Any]:
    """Return the values of a department that the audit log records."""
    return {"name": department.name} | quotas.exact_values(department)


def _lock_department(department: Department) -> Department:
    """Lock and return the row of a department. Raises Http404 where it was deleted meanwhile."""
    row: Department = get_object_or_404(
        Department.objects.there().select_for_update(), pk=department.pk
    )
    return row


def _record_change(event: audit.Event, row: Department, by: User, before: Any, after: Any) -> None:
    audit.record(
        event,
        "department",
        by=by,
        id=row.pk,
        name=row.name,
        scope=department_scope(row),
        before=before,
        after=after,
    )


def _make_name_clash(name: str) -> Clash:
    return Clash(f"There is a department {name} already. Choose another name.", field="name")

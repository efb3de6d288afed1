"""Removal of a project: permission, what blocks it, and what ends at once.

The rooms above remove it from its cluster.
"""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from console.errors import Clash
from console.texts import join_first
from projects import access, audit, granting, seams
from projects.actions import end_service_account
from projects.models import AccessRule, Project, ServiceAccount, User
from projects.permissions import Entity, Verb
from projects.scopes import Scope, project_scope


def find_blockers(project: Project) -> Sequence[str]:
    """Return the names of workloads that are still at work in the project."""
    return [
        name for each in seams.PROJECT_CONTENTS.get_all() for name in each.list_blockers(project)
    ]


def remove_project(project: Project, by: User) -> None:
    """Remove a project: nobody sees it, and its rules, programs and assets end now.

    Finished workloads are deleted later; their history stays. The name is free at once, except on
    its own cluster, where it is free once nothing is left there. Raises NotAllowed for everybody
    but an administrator, and Clash while something is at work.
    """
    access.require(by, Verb.DELETE, Entity.PROJECTS, project_scope(project))
    with transaction.atomic():
        # A submission that is being written holds the row: it comes before, and is counted, or
        # finds no project.
        row = Project.objects.select_for_update().get(pk=project.pk)
        if row.deleted_at is not None:
            return
        if names := find_blockers(row):
            raise Clash(describe_blockers(row, names))
        delete_scope_contents(project_scope(row), by)
        row.deleted_at, row.deleted_by, row.sync_error = timezone.now(), by, ""
        row.save(update_fields=["deleted_at", "deleted_by", "sync_error"])
        audit.record(
            audit.Event.DELETE,
            "project",
            by=by,
            id=row.pk,
            name=row.name,
            scope=project_scope(row),
            before={"name": row.name},
        )


def delete_scope_contents(scope: Scope, by: User) -> None:
    """Delete the service accounts, access rules and assets of a scope, recording each."""
    for account in ServiceAccount.objects.at(scope).select_related("user"):
        end_service_account(account, by)
    granting.end_rules(
        AccessRule.objects.at(scope).with_subject().select_for_update(of=("self",)), by
    )
    seams.SCOPE_ASSETS.get().delete_assets(scope, by)


def describe_blockers(project: Project, names: Sequence[str]) -> str:
    """Describe why a project cannot be deleted now."""
    return (
        f"Project {project.name} has workloads that are still at work: {join_first(names)}. Stop "
        "or delete them first."
    )

"""When a project is deleted: who may, what stands against it, and what of it ends at once. Its
cluster follows, a floor above.
"""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from console.errors import Clash
from projects import access, audit, granting
from projects.actions import end_service_account
from projects.models import AccessRule, Project, ServiceAccount, User
from projects.permissions import Entity, Verb
from projects.scopes import Scope, project_scope

MAX_NAMED = 5


def find_blockers(project: Project) -> Sequence[str]:
    """The names of what has to end first: whatever in the floors above is still at work in the
    project.
    """
    return [
        name for path in settings.LEAVING for name in import_string(f"{path}.hindering")(project)
    ]


def remove_project(project: Project, by: User) -> None:
    """Delete a project: nobody sees it any more, its people have no role in it, and its programs
    and assets end now.

    What has come to rest in it is deleted afterwards, and its history stays. Its name is free at
    once, but on its own cluster, where it is once nothing is left there. Raises NotAllowed for
    anybody but an administrator of Muster, and Clash while something is at work.
    """
    access.require(by, Verb.DELETE, Entity.PROJECTS, project_scope(project))
    with transaction.atomic():
        # A submission that is being written holds the row: it comes before, and is counted, or
        # finds no project.
        row = Project.objects.select_for_update().get(pk=project.pk)
        if row.left_at is not None:
            return
        if names := find_blockers(row):
            raise Clash(describe_blockers(row, names))
        delete_scope_contents(project_scope(row), by)
        row.left_at, row.left_by, row.sync_error = timezone.now(), by, ""
        row.save(update_fields=["left_at", "left_by", "sync_error"])
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
    """What belongs to a scope goes with it: its service accounts, its access rules and its assets,
    each with its entry.
    """
    for account in ServiceAccount.objects.at(scope).select_related("user"):
        end_service_account(account, by)
    granting.end_rules(AccessRule.objects.at(scope).with_subject(), by)
    import_string(f"{settings.ASSETS}.delete_assets")(scope, by)


def describe_blockers(project: Project, names: Sequence[str]) -> str:
    """Why a project cannot be deleted now."""
    shown = ", ".join(names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return (
        f"Project {project.name} has workloads that are still at work: {shown}{more}. Stop or "
        "delete them first."
    )

"""What becomes of assets when their scope is deleted, or a project changes its department."""

from django.db.models import Q

from environments import actions, seams, uses
from environments.models import Credential
from projects.models import Project, User
from projects.scopes import Scope, department_scope

MAX_NAMES = 5


def describe_uses(scope: Scope, user: User) -> str:
    """Say what elsewhere uses the scope's assets, so that it cannot be deleted; "" for nothing.

    As far as the user may know. A data source takes no credential from outside its scope, but its
    project may once have moved to another department.
    """
    return uses.find_uses_of_scope(scope, user).description


def delete_assets(scope: Scope, user: User) -> None:
    """Delete the assets of a deleted scope, each with its audit entry."""
    actions.delete_scope_assets(scope, user)


def describe_lost_credentials(project: Project, department: int, user: User) -> str:
    """Name the department's credentials that a project uses and loses when it leaves; "" for none.

    Their Secrets are in the namespaces of the department's projects only. Those that the user may
    not see are counted.
    """
    department_credentials = Credential.objects.at(department_scope(department))
    by_workloads = seams.ASSET_USES.get().filter_used_in(
        project, department_credentials.values("pk")
    )
    lost_credentials = (
        department_credentials.filter(Q(pk__in=by_workloads) | Q(data_sources__project=project))
        .order_by("name")
        .distinct()
    )
    visible = Credential.objects.visible_to(user).filter(
        pk__in=lost_credentials.order_by().values("pk")
    )
    visible_names = list(visible.order_by("name").values_list("name", flat=True))
    further, hidden_count = (
        len(visible_names) - MAX_NAMES,
        lost_credentials.count() - len(visible_names),
    )
    parts = [
        ", ".join(visible_names[:MAX_NAMES]),
        f"{further} more" if further > 0 else "",
        f"{hidden_count} that you may not see" if hidden_count else "",
    ]
    return " and ".join(filter(None, parts))

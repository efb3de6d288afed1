"""What becomes of assets when their scope goes, or a project goes elsewhere. `settings.ASSETS`
names this room: scopes lie floors below.
"""

from django.conf import settings
from django.db.models import Q
from django.utils.module_loading import import_string

from environments import actions, uses
from environments.models import Credential
from projects.models import Project, User
from projects.scopes import Scope, department_scope

MOST_NAMED = 5


def describe_uses(scope: Scope, user: User) -> str:
    """What elsewhere needs something of the scope, so that it cannot be deleted, as far as `by` may
    know; "" for nothing.

    A data source takes no credential from beside its scope, but its project may once have gone to
    another department.
    """
    return uses.find_uses_of_scope(scope, user).description


def delete_assets(scope: Scope, user: User) -> None:
    """Delete the assets of the scope, which nobody can choose any more, each with its entry."""
    actions.delete_scope_assets(scope, user)


def describe_lost_credentials(project: Project, department: int, user: User) -> str:
    """The department's credentials that the project's workloads and data sources use, and lose when
    it leaves; "" for none.

    Their Secrets are in the namespaces of the department's projects only. Those that `by` may not
    see are counted.
    """
    theirs = Credential.objects.at(department_scope(department))
    by_workloads = import_string(f"{settings.ASSET_USES}.used_in")(project, theirs.values("pk"))
    lost = (
        theirs.filter(Q(pk__in=by_workloads) | Q(data_sources__project=project))
        .order_by("name")
        .distinct()
    )
    mine = Credential.objects.visible_to(user).filter(pk__in=lost.order_by().values("pk"))
    seen = list(mine.order_by("name").values_list("name", flat=True))
    more, hidden = len(seen) - MOST_NAMED, lost.count() - len(seen)
    told = [
        ", ".join(seen[:MOST_NAMED]),
        f"{more} more" if more > 0 else "",
        f"{hidden} that you may not see" if hidden else "",
    ]
    return " and ".join(filter(None, told))

"""After a credential came, changed or went: the namespaces that have it follow, soon where they are
few, and with the heartbeat all.
"""

from clusters.tasks import provision
from projects.models import Project
from projects.scopes import Level, Scope

MAX_PROJECTS = 100
"""Projects that are asked for at once; the heartbeat finds the others by what differs there."""


def provision_scopes(*scopes: Scope) -> None:
    """Have the projects below these scopes provisioned, once the caller's transaction is
    committed.
    """
    keys: set[int] = set()
    for scope in scopes:
        below = Project.objects.there().filter(cluster__is_enabled=True).order_by("pk")
        if scope.level is Level.PROJECT:
            below = below.filter(pk=scope.id)
        elif scope.level is not Level.TENANT:
            below = below.filter(**{f"{scope.level}_id": scope.id})
        keys.update(below.values_list("pk", flat=True)[:MAX_PROJECTS])
    for key in sorted(keys)[:MAX_PROJECTS]:
        provision.enqueue(key)

"""Updates the Secrets of a created, changed or deleted credential in its namespaces.

At once for the first MAX_PROJECTS projects; the heartbeat does all others.
"""

from clusters.tasks import provision
from projects.models import Project
from projects.scopes import Level, Scope

MAX_PROJECTS = 100
"""Projects that are provisioned at once; the heartbeat finds the others by what differs there."""


def provision_scopes(*scopes: Scope) -> None:
    """Provision the projects below these scopes, once the transaction is committed."""
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

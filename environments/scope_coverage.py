"""Whether what belongs to one scope can be used everywhere in another."""

from projects.models import Project
from projects.scopes import Level, Scope, cluster_scope, department_scope


def scope_covers(outer: Scope, inner: Scope) -> bool:
    """Return whether everything of `inner` is in `outer`."""
    if outer == inner or outer.level is Level.TENANT:
        return True
    if not (inner.level is Level.PROJECT and isinstance(inner.id, int)):
        return False
    above = Project.objects.filter(pk=inner.id).values_list("department_id", "cluster_id").first()
    return above is not None and outer in (department_scope(above[0]), cluster_scope(above[1]))

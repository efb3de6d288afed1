"""Whether what belongs to one scope can be used everywhere in another."""

from projects.models import Project
from projects.scopes import Level, Scope, of_cluster, of_department


def covers(outer: Scope, inner: Scope) -> bool:
    """Whether everything of `inner` is in `outer`."""
    if outer == inner or outer.level is Level.TENANT:
        return True
    if not (inner.level is Level.PROJECT and isinstance(inner.id, int)):
        return False
    above = Project.objects.filter(pk=inner.id).values_list("department_id", "cluster_id").first()
    return above is not None and outer in (of_department(above[0]), of_cluster(above[1]))

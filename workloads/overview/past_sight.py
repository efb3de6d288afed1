"""What a user may see today, by which a past moment is shown to them."""

from collections.abc import Mapping
from dataclasses import dataclass

from clusters.models import Cluster
from projects.department_sums import annotate_sums
from projects.models import Department, Project, User
from projects.permissions import Entity
from projects.querysets import list_visible_project_ids
from projects.rights import view_permission

MOST_CLUSTERS = 200
"""Clusters whose nodes are shown."""


@dataclass(frozen=True, slots=True)
class PastSight:
    """The names of what a user may see today, by id; what is not there has no name for them."""

    projects: Mapping[int, str]
    """Projects whose workloads are visible, of those that still exist."""
    quotas: Mapping[int, str]
    departments: Mapping[int, str]
    cluster_counts: Mapping[int, int]
    """On how many clusters each visible department has projects today; then is not recorded."""
    clusters: Mapping[bytes, str]
    """Clusters whose nodes are shown: the first of the visible ones."""
    cluster_ids: frozenset[bytes] | None
    """All visible clusters; None is every cluster, those that were removed as well."""

    def counts_cluster(self, cluster: bytes) -> bool:
        """Tell whether what is hidden in a cluster is at least counted."""
        return self.cluster_ids is None or cluster in self.cluster_ids


def load_sight(user: User) -> PastSight:
    """Load what the user may see. Three queries, and those of the rights."""
    workloads = list_visible_project_ids(user)
    quotas = user.rights.project_ids(view_permission(Entity.PROJECTS))
    projects = dict(Project.objects.there().order_by("name").values_list("pk", "name"))
    columns = ("pk", "name", "clusters_count")
    departments = list(
        annotate_sums(Department.objects.visible_to(user)).order_by("name").values_list(*columns)
    )
    clusters = list(Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name"))
    sees_every_cluster = user.rights.permitted_scopes(view_permission(Entity.CLUSTERS)).tenant
    return PastSight(
        _choose(projects, workloads),
        _choose(projects, quotas),
        {pk: name for pk, name, _ in departments},
        {pk: clusters or 0 for pk, _, clusters in departments},
        {pk.bytes: name for pk, name in clusters[:MOST_CLUSTERS]},
        None if sees_every_cluster else frozenset(pk.bytes for pk, _ in clusters),
    )


def _choose(names: Mapping[int, str], chosen: frozenset[int] | None) -> Mapping[int, str]:
    return {pk: name for pk, name in names.items() if chosen is None or pk in chosen}

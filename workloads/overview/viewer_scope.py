"""Who sees what of the overview: a tile tells of where one may view both the overview and what the
tile is about.
"""

from dataclasses import dataclass
from functools import cached_property

from django.db.models import QuerySet

from clusters.models import Cluster
from projects.models import Department, Project, User
from projects.permissions import Entity
from projects.querysets import InProject
from projects.rights import view_permission
from workloads.models import Workload
from workloads.queries import list_in_projects

MOST_CLUSTERS = 200

ProjectIds = frozenset[int] | None
"""None means every one."""


@dataclass(frozen=True)
class ViewerScope:
    """What one person sees of it."""

    user: User

    @cached_property
    def workloads(self) -> ProjectIds:
        """The projects whose workloads are told of."""
        return self._intersect_with_overview(Entity.WORKLOADS)

    @cached_property
    def projects(self) -> ProjectIds:
        """The projects whose quotas are told of."""
        return self._intersect_with_overview(Entity.PROJECTS)

    @cached_property
    def departments(self) -> ProjectIds:
        """The departments whose quotas are told of."""
        where = self.user.rights.permitted_scopes(view_permission(Entity.DEPARTMENTS))
        return None if where.tenant else where.departments

    @property
    def sees_workloads(self) -> bool:
        return self.workloads is None or bool(self.workloads)

    @property
    def sees_projects(self) -> bool:
        return self.projects is None or bool(self.projects)

    @property
    def sees_nodes(self) -> bool:
        rights = self.user.rights
        return rights.may_anywhere(view_permission(Entity.CLUSTERS)) and rights.may_anywhere(
            view_permission(Entity.OVERVIEW)
        )

    @property
    def sees_departments(self) -> bool:
        return self.user.rights.may_anywhere(view_permission(Entity.DEPARTMENTS))

    @cached_property
    def clusters(self) -> list[Cluster]:
        """Those whose nodes are counted, without their secrets."""
        if not self.sees_nodes:
            return []
        seen = Cluster.objects.visible_to(self.user).filter(is_enabled=True)
        return list(
            seen.only("id", "name", "prometheus_url", "unreachable_since", "last_seen_at")[
                :MOST_CLUSTERS
            ]
        )

    def workload_rows(self) -> InProject:
        """The workloads that are told of; not those that the cluster has let go of."""
        rows: InProject = list_in_projects(self.workloads).filter(released_at=None)
        return rows if self.sees_workloads else Workload.objects.none()

    def project_rows(self) -> "QuerySet[Project]":
        """The projects whose quotas are told of."""
        found: QuerySet[Project] = Project.objects.there()
        return found if self.projects is None else found.filter(pk__in=self.projects)

    def department_rows(self) -> "QuerySet[Department]":
        found: QuerySet[Department] = Department.objects.there()
        return found if self.departments is None else found.filter(pk__in=self.departments)

    def _intersect_with_overview(self, entity: Entity) -> ProjectIds:
        overview, others = (
            self.user.rights.project_ids(view_permission(Entity.OVERVIEW)),
            self.user.rights.project_ids(view_permission(entity)),
        )
        if overview is None or others is None:
            return others if overview is None else overview
        return overview & others

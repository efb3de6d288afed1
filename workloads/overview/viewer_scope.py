"""What a user sees of the overview.

A tile counts what lies where the user may view both the overview and the tile's subject.
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
"""None means every project."""


@dataclass(frozen=True)
class ViewerScope:
    """What one user sees of the overview."""

    user: User

    @cached_property
    def workloads(self) -> ProjectIds:
        """The projects whose workloads are visible."""
        return self._intersect_with_overview(Entity.WORKLOADS)

    @cached_property
    def projects(self) -> ProjectIds:
        """The projects whose quotas are visible."""
        return self._intersect_with_overview(Entity.PROJECTS)

    @cached_property
    def departments(self) -> ProjectIds:
        """The departments whose quotas are visible."""
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
        """The clusters whose nodes are counted, without their secrets."""
        if not self.sees_nodes:
            return []
        visible = Cluster.objects.visible_to(self.user).filter(is_enabled=True)
        return list(
            visible.only("id", "name", "prometheus_url", "unreachable_since", "last_seen_at")[
                :MOST_CLUSTERS
            ]
        )

    def workload_rows(self) -> InProject:
        """Return the visible workloads, without released ones."""
        rows: InProject = list_in_projects(self.workloads).filter(released_at=None)
        return rows if self.sees_workloads else Workload.objects.none()

    def project_rows(self) -> "QuerySet[Project]":
        """Return the projects whose quotas are visible."""
        rows: QuerySet[Project] = Project.objects.there()
        return rows if self.projects is None else rows.filter(pk__in=self.projects)

    def department_rows(self) -> "QuerySet[Department]":
        rows: QuerySet[Department] = Department.objects.there()
        return rows if self.departments is None else rows.filter(pk__in=self.departments)

    def _intersect_with_overview(self, entity: Entity) -> ProjectIds:
        overview, others = (
            self.user.rights.project_ids(view_permission(Entity.OVERVIEW)),
            self.user.rights.project_ids(view_permission(entity)),
        )
        if overview is None or others is None:
            return others if overview is None else overview
        return overview & others

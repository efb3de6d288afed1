"""What `projects` needs of the floors above it (see `console.seams`)."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

from console.seams import Seam, SharedSeam
from projects.models import Project, User
from projects.scopes import Scope


class ProjectContents(Protocol):
    """What belongs to a project and has to end before the project does."""

    def list_blockers(self, project: Project) -> Sequence[str]:
        """Return the names of what is still at work, which forbids deletion of the project."""

    def clear_project(self, project: Project) -> str:
        """Request deletion of the rest of a deleted project; return what is left in words."""


class ScopeAssets(Protocol):
    """The assets of a project, a department or a cluster; texts are "" for nothing."""

    def describe_uses(self, scope: Scope, user: User) -> str: ...
    def delete_assets(self, scope: Scope, user: User) -> None: ...
    def describe_lost_credentials(self, project: Project, department: int, user: User) -> str: ...


class ProvisionStep(Protocol):
    """The step that brings a project in its cluster up to date."""

    def enqueue(self, project_id: int, /) -> None: ...


class ResourceAmounts(Protocol):
    """GPUs in devices, CPU in cores, memory in bytes."""

    @property
    def gpus(self) -> Decimal: ...
    @property
    def cpu(self) -> Decimal: ...
    @property
    def memory(self) -> Decimal: ...


class QuotaUsage(Protocol):
    """What non-preemptible workloads of some projects hold."""

    def sum_non_preemptible(self, projects: Iterable[int]) -> ResourceAmounts: ...


class ProjectOverview(Protocol):
    """The overview on top of a project's page: its templates, their context and static files."""

    TEMPLATE: str
    CHART: str
    STYLES: Sequence[str]
    SCRIPTS: Sequence[str]

    def build_context(self, project: Project, user: User) -> Mapping[str, Any]: ...


PROJECT_CONTENTS = SharedSeam[ProjectContents]("PROJECT_CONTENTS")
SCOPE_ASSETS = Seam[ScopeAssets]("SCOPE_ASSETS")
PROVISION_STEP = Seam[ProvisionStep]("PROVISION_STEP")
QUOTA_USAGE = Seam[QuotaUsage]("QUOTA_USAGE")
PROJECT_OVERVIEW = Seam[ProjectOverview]("PROJECT_OVERVIEW")

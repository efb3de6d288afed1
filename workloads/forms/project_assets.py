"""The assets that the wizard offers in a project: those available there, ordered by name."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from environments.models import ComputeResource, Credential, DataSource, Environment, Template
from projects.models import Project, User
from workloads.forms.credential_choices import CredentialChoice, list_credential_choices
from workloads.specs import Architecture, Framework

MAX_CARDS = 500
"""The most assets of a kind that one page offers."""


class ProjectAssets:
    """The assets available in a project; none without a project.

    Whoever may launch there may use them all. `visible_to` narrows them to what a user may see: a
    template is made by people who may not launch.
    """

    def __init__(self, project: Project | None, *, visible_to: User | None = None) -> None:
        self._project = project
        self._visible_to = visible_to

    @property
    def storage_classes(self) -> Sequence[str]:
        """Return the storage classes of the project's cluster."""
        return (
            [each.name for each in self._project.cluster.parsed_findings.storage_classes]
            if self._project
            else []
        )

    @cached_property
    def templates(self) -> Sequence[Template]:
        return list(self.query_assets(Template)[:MAX_CARDS])

    @cached_property
    def resources(self) -> Sequence[ComputeResource]:
        return list(self.query_assets(ComputeResource)[:MAX_CARDS])

    @cached_property
    def sources(self) -> Sequence[DataSource]:
        return list(
            self.query_assets(DataSource)
            .select_related("credential")
            .defer("credential__secret")[:MAX_CARDS]
        )

    @cached_property
    def credentials(self) -> Sequence[CredentialChoice]:
        return list_credential_choices(self.query_assets(Credential).defer("secret")[:MAX_CARDS])

    def environments(
        self, architecture: Architecture, framework: Framework | None
    ) -> Sequence[Environment]:
        """Return the environments that run this kind of workload."""
        fitting = self.query_assets(Environment).filter(architecture=architecture.value)
        if framework is not None:
            fitting = fitting.filter(framework__in=("", framework.value))
        return list(fitting[:MAX_CARDS])

    def query_assets(self, model: Any) -> Any:
        """Return a queryset of all available assets of one model."""
        rows = model.objects.with_scope().order_by("name", "id")
        if self._project is None:
            return rows.none()
        within = rows.within(self._project)
        return within if self._visible_to is None else within.visible_to(self._visible_to)

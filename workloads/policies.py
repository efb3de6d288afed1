"""The policies in force in a project or scope, from the database. One query."""

from collections.abc import Sequence
from dataclasses import dataclass

from environments.models import Policy as PolicyRow
from projects.models import Project
from projects.scopes import TENANT, Level, Scope
from workloads import policing
from workloads.asset_references import AssetReference
from workloads.asset_uses import build_asset_reference
from workloads.policing import MergedPolicies, PolicyRules, PolicySource
from workloads.specs import Architecture, Spec

LEVELS = tuple(Level)
"""From the widest to the nearest."""


@dataclass(frozen=True)
class PoliciesInForce:
    """The policies in force in a scope, and their combination for each architecture."""

    rows: Sequence[PolicyRow]

    def merge(self, architecture: Architecture | None = None) -> MergedPolicies:
        """Merge the policies for workloads of an architecture.

        Without an architecture only those for all workloads count.
        """
        architectures = ("", architecture.value) if architecture else ("",)
        return policing.merge_policies(
            build_policy(row) for row in self.rows if row.architecture in architectures
        )

    def list_references(self, merged: MergedPolicies, spec: Spec) -> Sequence[AssetReference]:
        """Return references to the policies that set a value of the spec."""
        rows = {str(row.pk): row for row in self.rows}
        return [
            build_asset_reference(rows[key])
            for key in policing.list_setting_policy_ids(spec, merged)
        ]


def load_for_project(project: Project) -> PoliciesInForce:
    """Load the policies of a project and of the scopes above it."""
    return PoliciesInForce(
        list(PolicyRow.objects.within(project).with_scope().order_by("name", "pk"))
    )


def load_for_scope(scope: Scope) -> PoliciesInForce:
    """Load the policies of a scope and of the scopes above it."""
    if scope.level is Level.PROJECT:
        return load_for_project(Project.objects.get(**{"pk": scope.id}))
    rows = PolicyRow.objects.with_scope()
    rows_in_scope = rows.at(TENANT) if scope == TENANT else rows.at(TENANT) | rows.at(scope)
    return PoliciesInForce(list(rows_in_scope.order_by("name", "pk")))


def build_policy(row: PolicyRow) -> PolicyRules:
    """Build the rules to merge from a row that is loaded with its scope."""
    return PolicyRules(build_source(row), policing.parse_known_rules(row.rules))


def build_source(row: PolicyRow) -> PolicySource:
    """Build the description of a policy that stands beside its rules."""
    where = row.scope_words
    return PolicySource(
        LEVELS.index(row.scope.level), row.name, str(row.pk), where[0].lower() + where[1:]
    )

"""The policies that hold in a project, out of the database, and a submission held against them: one
query.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from console.errors import Noncompliant
from environments.models import Policy as PolicyRow
from projects.models import Project
from projects.scopes import TENANT, Level, Scope
from workloads import policing
from workloads.asset_uses import AssetReference, build_asset_reference
from workloads.policing import MergedPolicies, PolicyRules, PolicySource
from workloads.specs import Architecture, Spec

LONGEST_NOTE = 1000
LEVELS = tuple(Level)
"""From the widest to the nearest."""


@dataclass(frozen=True)
class PoliciesInForce:
    """The policies of a project, and what they make together for each architecture."""

    rows: Sequence[PolicyRow]

    def merge(self, architecture: Architecture | None = None) -> MergedPolicies:
        """Those for workloads of an architecture; without one, those for all workloads."""
        wanted = ("", architecture.value) if architecture else ("",)
        return policing.merge_policies(
            build_policy(row) for row in self.rows if row.architecture in wanted
        )

    def list_references(self, merged: MergedPolicies, spec: Spec) -> Sequence[AssetReference]:
        """Those that have set something of a submission."""
        rows = {str(row.pk): row for row in self.rows}
        return [
            build_asset_reference(rows[key])
            for key in policing.list_setting_policy_ids(spec, merged)
        ]


def load_for_project(project: Project) -> PoliciesInForce:
    """The policies of a project and of what is above it."""
    return PoliciesInForce(
        list(PolicyRow.objects.within(project).with_scope().order_by("name", "pk"))
    )


def load_for_scope(scope: Scope) -> PoliciesInForce:
    """The policies of a scope and of what is above it."""
    if scope.level is Level.PROJECT:
        return load_for_project(Project.objects.get(**{"pk": scope.id}))
    rows = PolicyRow.objects.with_scope()
    found = rows.at(TENANT) if scope == TENANT else rows.at(TENANT) | rows.at(scope)
    return PoliciesInForce(list(found.order_by("name", "pk")))


def build_policy(row: PolicyRow) -> PolicyRules:
    """A row, whose scope is loaded with it, as far as merging goes."""
    return PolicyRules(build_source(row), policing.parse_known_rules(row.rules))


def build_source(row: PolicyRow) -> PolicySource:
    """What is said of a policy where its rules are."""
    where = row.scope_words
    return PolicySource(
        LEVELS.index(row.scope.level), row.name, str(row.pk), where[0].lower() + where[1:]
    )


@dataclass(frozen=True, slots=True)
class PolicyCheck:
    """A submission held against the policies of its project: `spec` is completed with what they set
    where it says nothing.
    """

    spec: Spec
    merged: MergedPolicies
    policies: PoliciesInForce

    def require_compliance(self) -> None:
        """Raises Noncompliant where it is not as they want it."""
        _require_compliance(self.spec, self.merged)

    @property
    def note(self) -> str:
        """What they set, in a sentence."""
        told = "; ".join(
            f"{label} {value} ({by})"
            for label, value, by in policing.list_set_values(self.spec, self.merged)
        )
        return f"Set by policy: {told[:LONGEST_NOTE]}." if told else ""

    @property
    def policy_references(self) -> Sequence[AssetReference]:
        """The policies that did."""
        return self.policies.list_references(self.merged, self.spec)


def check_policies(
    spec: Spec, project: Project, given_fields: Container[str] | None = None
) -> PolicyCheck:
    """See `policing.completed` for what `said` is."""
    policies = load_for_project(project)
    merged = policies.merge(spec.architecture)
    return PolicyCheck(policing.complete_spec(spec, merged, given_fields), merged, policies)


def require_compliance(spec: Spec, project: Project, lead: str = "") -> None:
    """Raises Noncompliant for a workload as it is, unless the policies of today allow it."""
    _require_compliance(spec, load_for_project(project).merge(spec.architecture), lead)


def _require_compliance(spec: Spec, merged: MergedPolicies, lead: str = "") -> None:
    if found := policing.find_issues(spec, merged):
        raise Noncompliant([(issue.field, issue.text, issue.rule) for issue in found], lead)

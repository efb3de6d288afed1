"""The policies in force in a project, from the database, and the check of a submission.

One query.
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


@dataclass(frozen=True, slots=True)
class PolicyCheck:
    """A submission checked against the policies of its project.

    `spec` is completed with what policies set where the submission gives nothing.
    """

    spec: Spec
    merged: MergedPolicies
    policies: PoliciesInForce

    def require_compliance(self) -> None:
        """Raise Noncompliant where the spec breaks a policy."""
        _require_compliance(self.spec, self.merged)

    @property
    def note(self) -> str:
        """What the policies set, as a sentence."""
        set_values = "; ".join(
            f"{label} {value} ({by})"
            for label, value, by in policing.list_set_values(self.spec, self.merged)
        )
        return f"Set by policy: {set_values[:LONGEST_NOTE]}." if set_values else ""

    @property
    def policy_references(self) -> Sequence[AssetReference]:
        """The policies that set a value."""
        return self.policies.list_references(self.merged, self.spec)


def check_policies(
    spec: Spec, project: Project, given_fields: Container[str] | None = None
) -> PolicyCheck:
    """Check a spec against the policies of its project.

    See `policing.complete_spec` for `given_fields`.
    """
    policies = load_for_project(project)
    merged = policies.merge(spec.architecture)
    return PolicyCheck(policing.complete_spec(spec, merged, given_fields), merged, policies)


def require_compliance(spec: Spec, project: Project, lead: str = "") -> None:
    """Raise Noncompliant for a workload that today's policies forbid."""
    _require_compliance(spec, load_for_project(project).merge(spec.architecture), lead)


def _require_compliance(spec: Spec, merged: MergedPolicies, lead: str = "") -> None:
    if issues := policing.find_issues(spec, merged):
        raise Noncompliant([(issue.field, issue.text, issue.rule) for issue in issues], lead)

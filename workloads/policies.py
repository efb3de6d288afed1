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
from workloads.asset_uses import Used, used
from workloads.policing import Merged, Policy, Source
from workloads.specs import Architecture, Spec

LONGEST_NOTE = 1000
LEVELS = tuple(Level)
"""From the widest to the nearest."""


@dataclass(frozen=True)
class InForce:
    """The policies of a project, and what they make together for each architecture."""

    rows: Sequence[PolicyRow]

    def merged(self, architecture: Architecture | None = None) -> Merged:
        """Those for workloads of an architecture; without one, those for all workloads."""
        wanted = ("", architecture.value) if architecture else ("",)
        return policing.merge(as_policy(row) for row in self.rows if row.architecture in wanted)

    def used(self, merged: Merged, spec: Spec) -> Sequence[Used]:
        """Those that have set something of a submission."""
        rows = {str(row.pk): row for row in self.rows}
        return [used(rows[key]) for key in policing.setters(spec, merged)]


def in_force(project: Project) -> InForce:
    """The policies of a project and of what is above it."""
    return InForce(list(PolicyRow.objects.within(project).with_scope().order_by("name", "pk")))


def in_scope(scope: Scope) -> InForce:
    """The policies of a scope and of what is above it."""
    if scope.level is Level.PROJECT:
        return in_force(Project.objects.get(**{"pk": scope.id}))
    rows = PolicyRow.objects.with_scope()
    found = rows.at(TENANT) if scope == TENANT else rows.at(TENANT) | rows.at(scope)
    return InForce(list(found.order_by("name", "pk")))


def as_policy(row: PolicyRow) -> Policy:
    """A row, whose scope is loaded with it, as far as merging goes."""
    return Policy(source_of(row), policing.known(row.rules))


def source_of(row: PolicyRow) -> Source:
    """What is said of a policy where its rules are."""
    where = row.scope_words
    return Source(
        LEVELS.index(row.scope.level), row.name, str(row.pk), where[0].lower() + where[1:]
    )


@dataclass(frozen=True, slots=True)
class Held:
    """A submission held against the policies of its project: `spec` is completed with what they set
    where it says nothing.
    """

    spec: Spec
    merged: Merged
    policies: InForce

    def require(self) -> None:
        """Raises Noncompliant where it is not as they want it."""
        _require(self.spec, self.merged)

    @property
    def note(self) -> str:
        """What they set, in a sentence."""
        told = "; ".join(
            f"{label} {value} ({by})"
            for label, value, by in policing.set_by(self.spec, self.merged)
        )
        return f"Set by policy: {told[:LONGEST_NOTE]}." if told else ""

    @property
    def used(self) -> Sequence[Used]:
        """The policies that did."""
        return self.policies.used(self.merged, self.spec)


def held(spec: Spec, project: Project, said: Container[str] | None = None) -> Held:
    """See `policing.completed` for what `said` is."""
    policies = in_force(project)
    merged = policies.merged(spec.architecture)
    return Held(policing.completed(spec, merged, said), merged, policies)


def require(spec: Spec, project: Project, lead: str = "") -> None:
    """Raises Noncompliant for a workload as it is, unless the policies of today allow it."""
    _require(spec, in_force(project).merged(spec.architecture), lead)


def _require(spec: Spec, merged: Merged, lead: str = "") -> None:
    if found := policing.issues(spec, merged):
        raise Noncompliant([(issue.field, issue.text, issue.rule) for issue in found], lead)

"""What is to be said of a submission before it is accepted, each part computed once.

The wizard's steps, its review, the REST API and `actions.submit` all judge by it.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property

from clusters.models import Cluster
from console.errors import Clash, Invalid, Noncompliant
from projects.models import Project
from workloads import fit, placement_rules, policies, policing, source_addresses
from workloads.asset_references import AssetReference
from workloads.manifests import find_refusals
from workloads.manifests.placement import NodePools
from workloads.policies import PoliciesInForce
from workloads.policing import MergedPolicies, PolicyIssue
from workloads.specs import Problem, Spec, find_problems

MAX_NOTE_CHARS = 1000


@dataclass(frozen=True)
class Judgement:
    """A submission in a project, judged. Each property is computed when it is first asked for.

    `spec` is completed with what policies and the project set where the submission gives nothing,
    and with the machines that are worked out of a total of GPUs.
    """

    spec: Spec
    project: Project
    cluster: Cluster
    policies: PoliciesInForce
    merged: MergedPolicies
    machine_problems: Sequence[Problem] = ()
    """Why no machines make its total of GPUs."""
    is_stored: bool = False
    """Whether it was accepted earlier: rules of the spec that came since do not hold for it."""

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the spec itself, and with its machines on the cluster's nodes."""
        if self.is_stored:
            return ()
        return (*find_problems(self.spec), *self.machine_problems)

    @cached_property
    def policy_issues(self) -> Sequence[PolicyIssue]:
        """The rules of policies that it breaks."""
        return policing.find_issues(self.spec, self.merged)

    @cached_property
    def refusals(self) -> Sequence[Problem]:
        """What the cluster cannot do, or the project may not have, of a valid spec."""
        if self.problems:
            return ()
        is_local = self.cluster.is_local
        addresses = source_addresses.find_address_problems(self.spec, is_local=is_local)
        return (
            *(Problem(field, text) for field, text in addresses),
            *find_refusals(self.spec, self.cluster.can, is_stored=self.is_stored),
            *self._pool_problems,
        )

    @cached_property
    def _pool_problems(self) -> Sequence[Problem]:
        named_pools = placement_rules.list_named_pools(self.spec)
        if not named_pools:
            return ()
        return placement_rules.find_pool_problems(named_pools, self.project, self.pools)

    @cached_property
    def pools(self) -> NodePools:
        """The node pools of the cluster. One query."""
        return placement_rules.load_pools(self.project)

    @cached_property
    def fit(self) -> fit.Fit:
        """Whether a valid spec fits into quota and nodes, now or ever."""
        return fit.check_fit(self.spec, self.project, self.pools)

    @cached_property
    def impossibilities(self) -> Sequence[str]:
        """Why a valid spec cannot start, as cluster and quota are now; a part of `fit`."""
        return fit.list_impossibilities(self.spec, self.project, self.pools)

    @property
    def warnings(self) -> Sequence[str]:
        """What whoever submits a valid spec should know: why it cannot start, or may not."""
        volumes = fit.check_volumes(self.spec, self.cluster)
        return [*self.impossibilities, *([volumes.text] if volumes else [])]

    @property
    def note(self) -> str:
        """What the policies set, as a sentence."""
        set_values = "; ".join(
            f"{label} {value} ({by})"
            for label, value, by in policing.list_set_values(self.spec, self.merged)
        )
        return f"Set by policy: {set_values[:MAX_NOTE_CHARS]}." if set_values else ""

    @property
    def policy_references(self) -> Sequence[AssetReference]:
        """References to the policies that set a value."""
        return self.policies.list_references(self.merged, self.spec)

    def require_acceptable(self, lead: str = "") -> None:
        """Raise what stands in the way; `lead` comes before what policies forbid.

        Invalid has the problems of the spec or the refusals, Noncompliant the rules that it breaks.
        Raises Clash where the cluster is disabled.
        """
        if self.problems:
            raise Invalid([(each.field, each.text) for each in self.problems])
        if issues := self.policy_issues:
            raise Noncompliant([(each.field, each.text, each.rule) for each in issues], lead)
        if not self.cluster.is_enabled:
            raise Clash(
                f"The cluster {self.cluster.name} is disabled: nothing is launched there. "
                "Ask its administrator, or use another cluster."
            )
        if self.refusals:
            raise Invalid([(each.field, each.text) for each in self.refusals])


def judge_submission(
    spec: Spec,
    project: Project,
    *,
    given_fields: Container[str] | None = None,
    in_force: PoliciesInForce | None = None,
) -> Judgement:
    """Judge a submission to a project, and so to its cluster.

    `given_fields` are the fields that the submission gives, where a missing one differs from its
    default (see `policing.complete_spec`). `in_force` are the project's policies where the caller
    has loaded them already.
    """
    in_force = in_force or policies.load_for_project(project)
    merged = in_force.merge(spec.architecture)
    completed = policing.complete_spec(spec, merged, given_fields)
    # Project defaults come after policies: they only fill what policies left open.
    completed = placement_rules.apply_project_defaults(completed, project)
    machine_problems: Sequence[Problem] = ()
    if completed.total_gpus is not None:
        pools = placement_rules.load_pools(project)
        worked_out = fit.work_out_machines(completed, project, pools)
        completed, machine_problems = worked_out.spec, worked_out.problems
    return Judgement(completed, project, project.cluster, in_force, merged, machine_problems)


def judge_stored(spec: Spec, project: Project, cluster: Cluster) -> Judgement:
    """Judge what was accepted earlier, as it is, by what holds and what the cluster can do now."""
    in_force = policies.load_for_project(project)
    merged = in_force.merge(spec.architecture)
    return Judgement(spec, project, cluster, in_force, merged, is_stored=True)

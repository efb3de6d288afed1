"""Whether a submission fits now, or can never fit, into its project's quota and on the nodes,
whether anybody schedules it, and whether its pods can share its volumes.

The answer rests on rows as last seen. It informs and refuses nothing. Nothing is counted pod by
pod: a submission may ask for any number of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from projects.models import Project
from workloads.fit.demand import WorkloadDemand
from workloads.fit.machines import work_out_machines
from workloads.fit.nodes import check_nodes, check_total_capacity
from workloads.fit.quota import check_quota, check_total_quota
from workloads.fit.scheduler import check_scheduler
from workloads.fit.verdict import FitCheck, Verdict
from workloads.fit.volumes import check_volumes
from workloads.manifests.placement import NodePools
from workloads.specs import Spec

__all__ = [
    "Fit",
    "FitCheck",
    "Verdict",
    "check_fit",
    "check_volumes",
    "list_impossibilities",
    "work_out_machines",
]


@dataclass(frozen=True, slots=True)
class Fit:
    """The checks of quota and nodes together, and what is found of scheduler and volumes."""

    quota: FitCheck
    nodes: FitCheck
    scheduler: FitCheck | None = None
    volumes: FitCheck | None = None

    @property
    def checks(self) -> Sequence[FitCheck]:
        possible_checks = (self.scheduler, self.quota, self.nodes, self.volumes)
        return [check for check in possible_checks if check is not None]

    @property
    def verdict(self) -> Verdict:
        verdicts = {check.verdict for check in self.checks}
        return next(each for each in Verdict if each in verdicts)

    @property
    def text(self) -> str:
        """The overall verdict as a sentence."""
        match self.verdict:
            case Verdict.NEVER:
                return (
                    "With what there is now it cannot start. Change what is named here: submitted "
                    "as it is, it waits until the cluster or the quota has more."
                )
            case Verdict.WARNS if Verdict.WARNS not in (self.quota.verdict, self.nodes.verdict):
                return "It may not start as it is. You can submit it all the same."
            case Verdict.WARNS:
                return (
                    "It may have to wait. You can submit it all the same; it starts when there is "
                    "room."
                )
            case Verdict.UNKNOWN:
                return "It cannot be said whether it fits now. You can submit it all the same."
            case Verdict.FITS:
                return "It fits now: quota and nodes have room."


def check_fit(spec: Spec, project: Project, pools: NodePools) -> Fit:
    """Check a valid spec against quota, and the nodes of these pools, as known now.

    At most six queries, and none for each pod or workload.
    """
    demand = WorkloadDemand.from_spec(spec)
    return Fit(
        check_quota(spec, demand, project),
        check_nodes(demand, project.cluster, pools),
        check_scheduler(project.cluster),
        check_volumes(spec, project.cluster),
    )


def list_impossibilities(spec: Spec, project: Project, pools: NodePools) -> Sequence[str]:
    """Return why a valid spec cannot start, as cluster and quota are now; () if it can.

    At most two queries.
    """
    demand = WorkloadDemand.from_spec(spec)
    checks = (
        check_scheduler(project.cluster),
        check_total_quota(spec, demand, project),
        check_total_capacity(demand, project.cluster, pools),
    )
    return [check.text for check in checks if check is not None]

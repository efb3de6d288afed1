"""Whether anybody schedules the pods of a submission."""

from clusters.models import Cluster
from workloads.fit.verdict import FitCheck, Verdict


def check_scheduler(cluster: Cluster) -> FitCheck | None:
    """Return that nobody schedules there; None where somebody does, or it is not known.

    Where the kinds of KAI are served all pods name it, whether it runs or not.
    """
    can = cluster.can
    if not can.has_kai or can.has_scheduler is not False:
        return None
    return FitCheck(
        Verdict.NEVER,
        f"Nobody schedules in cluster {cluster.name}: it serves the kinds of the KAI scheduler, "
        "which the pods name, and the scheduler itself was not at work when the cluster was last "
        "asked. It waits until that runs: ask the cluster's administrator, or use a project on "
        "another cluster.",
        cluster.probed_at,
    )

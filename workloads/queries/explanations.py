"""What is to be said of a workload's status, in sentences: its page and the REST API say the same.

For a list the number of queries, pods and logs that are read does not depend on its length.
"""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F

from clusters.models import Cluster
from projects.models import User
from workloads.diagnosis import Diagnosis, diagnose_failure
from workloads.kube_objects import DATA_WORKER
from workloads.models import Pod, Workload
from workloads.queries.waiting import (
    MOST_PODS,
    SAMPLED,
    WAITING_STATUSES,
    diagnose_waiting_workloads,
    limit_pods,
)
from workloads.queries.workload_diagnosis import diagnose_workload, map_ranks
from workloads.states import ACTIVE, ENDING, Status

NOT_LOOKED_INTO = (
    "Why is in its own answer, and on its page: a list looks into the pods of some workloads only."
)
"""Said of a workload that waits or failed, where a list says nothing else of it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a workload is in its status, and why a requested change is not done yet.

    All of it may hold words of a pod or of the cluster: text, bounded, hostile.
    """

    diagnosis: Diagnosis | None
    reason: str
    trouble: str
    cluster_message: str

    @property
    def text(self) -> str:
        """Everything as one text; "" where there is nothing to say."""
        why = self.diagnosis.sentence if self.diagnosis else self.reason
        trouble = f"Not done yet, and tried again: {self.trouble}" if self.trouble else ""
        return " ".join(filter(None, (why, trouble, self.cluster_message)))


def explain_workload(workload: Workload, user: User) -> Explanation:
    """Explain the status of a workload, which is loaded with its project and cluster.

    Other projects are named only to a user who may see them.
    """
    diagnosis = diagnose_workload(workload, user)
    return _build_explanation(workload, diagnosis.diagnosis if diagnosis else None)


def explain_workloads(workloads: Sequence[Workload], user: User) -> Mapping[uuid.UUID, Explanation]:
    """Explain the status of each workload of a list, by id.

    Where several pods of one failed, which of them was first is only in their logs, which are not
    read here: then the job's own reason stands.
    """
    waiting = diagnose_waiting_workloads(workloads, user)
    looked_into: dict[uuid.UUID, Diagnosis | None] = dict.fromkeys(
        each.pk for each in limit_pods([each for each in workloads if _is_waiting(each)])
    )
    looked_into |= {key: diagnosis for key, (diagnosis, _) in waiting.items()}
    looked_into |= diagnose_failed_workloads(workloads)
    explanations = {}
    for workload in workloads:
        diagnosis = looked_into.get(workload.pk)
        is_diagnosed = _is_waiting(workload) or workload.status == Status.FAILED
        if is_diagnosed and not workload.reason and workload.pk not in looked_into:
            diagnosis = Diagnosis(NOT_LOOKED_INTO)
        explanations[workload.pk] = _build_explanation(workload, diagnosis)
    return explanations


def diagnose_failed_workloads(
    workloads: Sequence[Workload],
) -> dict[uuid.UUID, Diagnosis | None]:
    """Return why workloads failed, of those where their pods alone say it. One query.

    One with many pods is left out: all of them are loaded, and no room would be left for others.
    """
    failed = limit_pods(
        [
            each
            for each in workloads
            if each.status == Status.FAILED and each.requested_pods <= SAMPLED
        ]
    )
    pods = _load_attempt_pods(failed)
    return {
        each.pk: diagnose_failure(
            each.job or {}, [pod.data for pod in pods[each.pk]], ranks=map_ranks(pods[each.pk])
        )
        for each in failed
        if each.pk in pods and _count_broken(pods[each.pk]) <= 1
    }


def describe_cluster(cluster: Cluster) -> str:
    """Describe why what is known of a cluster is not of now; "" where it is."""
    if not cluster.is_enabled:
        since = f" {cluster.disabled_at:%Y-%m-%d %H:%M} UTC" if cluster.disabled_at else ""
        return (
            f"The cluster {cluster.name} was disabled by an administrator{since}. Nothing is "
            "launched there, and what you see of it is as it was then."
        )
    if cluster.unreachable_since is None:
        return _describe_missing_follower(cluster)
    return (
        f"The cluster {cluster.name} has not answered since "
        f"{cluster.unreachable_since:%Y-%m-%d %H:%M} UTC. What you see of it is as it was then; "
        "what you ask for is done when it answers again."
    )


def _describe_missing_follower(cluster: Cluster) -> str:
    since = cluster.unfollowed_since
    if since is None:
        return ""
    return (
        f"What happens in the cluster {cluster.name} has not been written down since "
        f"{since:%Y-%m-%d %H:%M} UTC: no process follows it, or the database takes nothing new. "
        "What you see of it may have changed. An administrator finds why in the log of python -m "
        "console follow."
    )


def _build_explanation(workload: Workload, diagnosis: Diagnosis | None) -> Explanation:
    # What has ended is as it was, whether or not its cluster answers.
    is_on_cluster = workload.status in ACTIVE | ENDING
    cluster_message = describe_cluster(workload.cluster) if is_on_cluster else ""
    return Explanation(diagnosis, workload.reason, workload.trouble, cluster_message)


def _is_waiting(workload: Workload) -> bool:
    return workload.status in WAITING_STATUSES and workload.job is not None


def _count_broken(pods: Sequence[Pod]) -> int:
    return sum(pod.phase == "Failed" or pod.restarts > 0 for pod in pods)


def _load_attempt_pods(workloads: Sequence[Workload]) -> Mapping[uuid.UUID, Sequence[Pod]]:
    """Load the pods of each workload's attempt; a workload of which some are missing is left out.

    A batch Job may have more pods than it requests.
    """
    if not workloads:
        return {}
    rows = Pod.objects.filter(
        workload__in=[each.pk for each in workloads], attempt=F("workload__attempt")
    ).exclude(role=DATA_WORKER)
    rows = rows.order_by("workload_id", "rank", "id")
    loaded = list(rows[: MOST_PODS + 1])
    pods: dict[uuid.UUID, list[Pod]] = defaultdict(list)
    for pod in loaded:
        pods[pod.workload_id].append(pod)
    if len(loaded) <= MOST_PODS:
        return {each.pk: pods.get(each.pk, []) for each in workloads}
    del pods[loaded[-1].workload_id]
    return pods

"""Why a workload waits: for pods, for a place in its queue or on a node, or for containers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from workloads import quantities
from workloads.diagnosis import starting
from workloads.diagnosis.container_ends import describe_end
from workloads.diagnosis.kueue import diagnose_kueue, diagnose_on_other_cluster
from workloads.diagnosis.lost_nodes import diagnose_lost_nodes
from workloads.diagnosis.node_capacity import NodeCapacity, NodeHolders
from workloads.diagnosis.refused_pods import (
    INVALID_REASONS,
    REFUSAL_REASONS,
    diagnose_refused_pods,
)
from workloads.diagnosis.result import LOOK_INTO_LOG, Diagnosis, build_sentence
from workloads.diagnosis.unplaced import diagnose_unplaced
from workloads.kube_objects import Object, filter_own_pods, find_true_condition, nested_dict
from workloads.pod_views import build_pod_view, rank_pods
from workloads.status_rules import count_requested_pods, is_held_by_kueue


def diagnose_waiting(
    job: Object,
    pods: Iterable[Object],
    pod_group: Object | None = None,
    *,
    queue: Object | None = None,
    nodes: Sequence[NodeCapacity] = (),
    events: Sequence[Object] = (),
    holders: NodeHolders | None = None,
    counts: Mapping[str, int] | None = None,
    lost_pods: Mapping[str, int] | None = None,
) -> Diagnosis | None:
    """Return what keeps a job's pods from running; None when nothing does.

    Also None when the job has ended or is suspended, but by Kueue. `queue` is the project's Queue,
    `events` those of the job and its pods, `holders` the GPUs that other projects hold now on each
    node; those whose names the reader may not see are together under "". Where one pod stands for
    several that are alike, `counts` has how many, by its name. `lost_pods` has how many pods are on
    nodes that are not ready, by the node's name: those are named first. What is not given is not
    mentioned.
    """
    if find_true_condition(job, "Failed", "Succeeded", "Complete"):
        return None
    if dispatched := diagnose_on_other_cluster(events):
        return dispatched
    if is_held_by_kueue(job):
        return diagnose_kueue(job, events)
    if find_true_condition(job, "Suspended"):
        return None
    if loss := diagnose_lost_nodes(lost_pods or {}, nodes):
        is_lost = frozenset(lost_pods or {})
        pods = [pod for pod in pods if nested_dict(pod, "spec").get("nodeName") not in is_lost]
    remaining = [
        pod
        for pod in filter_own_pods(job, pods)
        if not nested_dict(pod, "metadata").get("deletionTimestamp")
    ]
    if loss and not remaining:
        return loss
    rest = _diagnose_remaining(
        job, remaining, pod_group, queue, nodes, events, holders or {}, counts or {}
    )
    if loss is None or rest is None:
        return loss or rest
    return replace(rest, sentence=f"{loss.sentence} {rest.sentence}", help=loss.help)


def _diagnose_remaining(
    job: Object,
    remaining: Sequence[Object],
    pod_group: Object | None,
    queue: Object | None,
    nodes: Sequence[NodeCapacity],
    events: Sequence[Object],
    holders: NodeHolders,
    counts: Mapping[str, int],
) -> Diagnosis | None:
    """Return what keeps the pods that are to stay from running."""
    live = [
        pod
        for pod in remaining
        if nested_dict(pod, "status").get("phase") not in ("Succeeded", "Failed")
    ]
    if not live:
        return _diagnose_without_pods(job, remaining, events, counts)
    existing = sum(_count_alike(pod, counts) for pod in remaining)
    if existing < count_requested_pods(job) and (
        refused := diagnose_refused_pods(job, events, REFUSAL_REASONS)
    ):
        return refused
    unplaced = [pod for pod in live if not nested_dict(pod, "spec").get("nodeName")]
    if unplaced:
        placed = sum(_count_alike(pod, counts) for pod in live) - sum(
            _count_alike(pod, counts) for pod in unplaced
        )
        return diagnose_unplaced(
            unplaced, counts, pod_group, queue, nodes, events, holders, existing, placed
        )
    return starting.diagnose_start(
        [each for _, each in rank_pods([build_pod_view(pod) for pod in live])], events, counts
    )


def _count_alike(pod: Object, counts: Mapping[str, int]) -> int:
    return counts.get(str(nested_dict(pod, "metadata").get("name")), 1)


def _diagnose_without_pods(
    job: Object, ended: Sequence[Object], events: Sequence[Object], counts: Mapping[str, int]
) -> Diagnosis | None:
    """Return why no pod is there that could run; `ended` are those that have ended."""
    if nested_dict(job, "status").get("succeeded") or nested_dict(job, "status").get(
        "completionTime"
    ):
        return None
    if refused := diagnose_refused_pods(job, events, (*REFUSAL_REASONS, *INVALID_REASONS)):
        return refused
    failed = [pod for pod in ended if nested_dict(pod, "status").get("phase") == "Failed"]
    if failed:
        return _diagnose_pause(failed, sum(_count_alike(pod, counts) for pod in failed))
    return Diagnosis(
        "Its pods have not been made yet.",
        (
            "If this lasts for more than a minute, the cluster's training operator may be "
            "missing or down: see the cluster's page."
        ),
    )


def _diagnose_pause(failed: Sequence[Object], count: int) -> Diagnosis:
    """Return how the newest of the pods that failed ended, and that there will be another one.

    A Job's controller waits for longer after each (`backoffLimit`, batch/v1).
    """
    newest = max(failed, key=lambda pod: str(nested_dict(pod, "metadata").get("creationTimestamp")))
    view = build_pod_view(newest)
    end = next((each for each in view.ends if each.exit_code), None)
    described = describe_end(view, newest, end)
    so_far = (
        f"{quantities.format_count(count, 'pod')} {'has' if count == 1 else 'have'} failed so far"
    )
    return Diagnosis(
        f"{build_sentence(f'{view.title} failed: {described.words}')} "
        f"{so_far}; the next one is made after a pause, which grows each time.",
        described.advice or LOOK_INTO_LOG,
        view.name,
        "" if end is None else end.container,
    )

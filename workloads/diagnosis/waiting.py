"""Why a workload waits: for pods, for a place in its queue or on a node, or for containers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from clusters.job_kinds import JOB_KINDS
from workloads.diagnosis import starting
from workloads.diagnosis.events import filter_events_about, filter_job_events, find_newest
from workloads.diagnosis.lost_nodes import diagnose_lost_nodes
from workloads.diagnosis.node_capacity import NodeCapacity, calculate_demand, sum_amounts
from workloads.diagnosis.node_shortage import diagnose_by_nodes
from workloads.diagnosis.queue_refusals import SchedulingRefusal, diagnose_by_queues, list_refusals
from workloads.diagnosis.result import STARTS_BY_ITSELF, Diagnosis, build_sentence
from workloads.kube_objects import (
    Object,
    PodView,
    build_pod_view,
    clean_text,
    filter_own_pods,
    find_true_condition,
    nested_dict,
    rank_pods,
)
from workloads.states import count_requested_pods

_KEPT_PLACE = re.compile(r"Waiting for .+ to leave ")
SCHEDULER_ADVICE = (
    "If this lasts for more than a minute, the cluster's scheduler may be missing or down: ask its "
    "administrator."
)
REFUSAL_REASONS = ("FailedCreatePod", "FailedCreate", "FailedCreateService")
"""Reasons of events about a job whose pods are refused."""
INVALID_REASONS = tuple(reason for kind in JOB_KINDS.values() for reason in kind.refusal_reasons)
"""Reasons of operators that create nothing for a job, and report it nowhere else."""


def diagnose_waiting(
    job: Object,
    pods: Iterable[Object],
    pod_group: Object | None = None,
    *,
    queue: Object | None = None,
    nodes: Sequence[NodeCapacity] = (),
    events: Sequence[Object] = (),
    holders: Mapping[str, Decimal] | None = None,
    counts: Mapping[str, int] | None = None,
    lost_pods: Mapping[str, int] | None = None,
) -> Diagnosis | None:
    """Return what keeps a job's pods from running; None when nothing does.

    Also None when the job has ended or is suspended. `queue` is the project's Queue, `events` those
    of the job and its pods, `holders` the GPUs that other projects hold now by project name; those
    whose names the reader may not see are together under "". Where one pod stands for several that
    are alike, `counts` has how many, by its name. `lost_pods` has how many pods are on nodes that
    are not ready, by the node's name: those are named first. What is not given is not mentioned.
    """
    if find_true_condition(job, "Failed", "Succeeded", "Complete", "Suspended"):
        return None
    if lost := diagnose_lost_nodes(lost_pods or {}, nodes):
        is_lost = frozenset(lost_pods or {})
        pods = [pod for pod in pods if nested_dict(pod, "spec").get("nodeName") not in is_lost]
    remaining = [
        pod
        for pod in filter_own_pods(job, pods)
        if not nested_dict(pod, "metadata").get("deletionTimestamp")
    ]
    if lost and not remaining:
        return lost
    rest = _diagnose_remaining(
        job, remaining, pod_group, queue, nodes, events, holders or {}, counts or {}
    )
    if lost is None or rest is None:
        return lost or rest
    return replace(rest, sentence=f"{lost.sentence} {rest.sentence}", help=lost.help)


def _diagnose_remaining(
    job: Object,
    remaining: Sequence[Object],
    pod_group: Object | None,
    queue: Object | None,
    nodes: Sequence[NodeCapacity],
    events: Sequence[Object],
    holders: Mapping[str, Decimal],
    counts: Mapping[str, int],
) -> Diagnosis | None:
    """Return what keeps the pods that are to stay from running."""
    live = [
        pod
        for pod in remaining
        if nested_dict(pod, "status").get("phase") not in ("Succeeded", "Failed")
    ]
    if not live:
        return _diagnose_without_pods(job, events)
    if sum(_count_alike(pod, counts) for pod in remaining) < count_requested_pods(job) and (
        refused := _diagnose_refused_pods(job, events, REFUSAL_REASONS)
    ):
        return refused
    unplaced = [pod for pod in live if not nested_dict(pod, "spec").get("nodeName")]
    if unplaced:
        return _diagnose_unplaced(unplaced, counts, pod_group, queue, nodes, events, holders)
    return starting.diagnose_start(
        [each for _, each in rank_pods([build_pod_view(pod) for pod in live])], events, counts
    )


def _count_alike(pod: Object, counts: Mapping[str, int]) -> int:
    return counts.get(str(nested_dict(pod, "metadata").get("name")), 1)


def _diagnose_without_pods(job: Object, events: Sequence[Object]) -> Diagnosis | None:
    if nested_dict(job, "status").get("succeeded") or nested_dict(job, "status").get(
        "completionTime"
    ):
        return None
    return _diagnose_refused_pods(job, events, (*REFUSAL_REASONS, *INVALID_REASONS)) or Diagnosis(
        "Its pods have not been made yet.",
        (
            "If this lasts for more than a minute, the cluster's training operator may be "
            "missing or down: see the cluster's page."
        ),
    )


def _diagnose_refused_pods(
    job: Object, events: Sequence[Object], reasons: Sequence[str]
) -> Diagnosis | None:
    """Return the refusal of the pods, by the events of the job or of its batch Jobs."""
    refused = find_newest(filter_job_events(events, job), *reasons)
    if refused is None:
        return None
    text = clean_text(refused.get("message") or refused.get("note"))
    if "exceeded quota" in text:
        advice = (
            "The namespace has a quota of its own: ask for less, or ask the administrator of the "
            "cluster for more."
        )
    elif "gpu" in text.lower() and ("shar" in text.lower() or "fraction" in text.lower()):
        advice = (
            "Ask for whole GPU devices, or ask the administrator of the cluster to turn GPU "
            "sharing on."
        )
    else:
        advice = (
            "Change what the message names and run it again, or ask the administrator of the "
            "cluster."
        )
    return Diagnosis(build_sentence(f"The cluster refuses to make its pods: {text}"), advice)


def _diagnose_unplaced(
    pods: Sequence[Object],
    counts: Mapping[str, int],
    pod_group: Object | None,
    queue: Object | None,
    nodes: Sequence[NodeCapacity],
    events: Sequence[Object],
    holders: Mapping[str, Decimal],
) -> Diagnosis:
    needs = [calculate_demand(pod) for pod in pods]
    total = sum_amounts(
        need.times(_count_alike(pod, counts)) for pod, need in zip(pods, needs, strict=True)
    )
    refusals = list_refusals(pod_group)
    own_queue = nested_dict(pod_group, "spec").get("queue")
    if diagnosis := diagnose_by_queues(refusals, own_queue, total, queue):
        return diagnosis
    first = next(each for _, each in rank_pods([build_pod_view(pod) for pod in pods]))
    grouping = find_newest(filter_events_about(events, first.name), "PodGrouperWarning")
    if grouping is not None:
        return Diagnosis(
            build_sentence(
                "The scheduler cannot make a group of its pods: "
                f"{clean_text(grouping.get('message'))}"
            )
        )
    if diagnosis := _diagnose_missing_claim(pods, refusals) or _diagnose_kept_place(first):
        return diagnosis
    # With requests for GPU memory the amounts do not show whether a pod fits; the scheduler's own
    # message does.
    counted = nodes and not any(build_pod_view(pod).gpu_memory for pod in pods)
    diagnosis = diagnose_by_nodes(pods[0], needs, total, nodes, holders) if counted else None
    return diagnosis or _diagnose_by_scheduler(refusals, first)


def _diagnose_missing_claim(
    pods: Sequence[Object], refusals: Sequence[SchedulingRefusal]
) -> Diagnosis | None:
    """Return a missing volume: until it exists, no scheduler looks for room."""
    messages = [(each.message, "") for each in refusals] + [
        (each.reason, each.name) for each in map(build_pod_view, pods)
    ]
    for message, name in messages:
        if "persistentvolumeclaim" in message.lower():
            advice = (
                "Check that the claim exists in the project's namespace, and that its storage "
                "class, or the default one, can make it."
            )
            return Diagnosis(build_sentence(f"It waits for a volume: {message}"), advice, pod=name)
    return None


def _diagnose_kept_place(pod: PodView) -> Diagnosis | None:
    """Return for whom a pod waits that has a place already, as the embedded scheduler says it."""
    if not _KEPT_PLACE.match(pod.reason):
        return None
    return Diagnosis(
        build_sentence(f"It has its place: w{pod.reason[1:]}"),
        "Nothing needs to be done: others are given time to end.",
        pod=pod.name,
    )


def _diagnose_by_scheduler(refusals: Sequence[SchedulingRefusal], pod: PodView) -> Diagnosis:
    text = next((each.message for each in refusals if each.message), "") or pod.reason
    if not text:
        return Diagnosis(
            "It is queued: the scheduler has not looked at its pods yet.", SCHEDULER_ADVICE
        )
    return Diagnosis(
        build_sentence(f"The scheduler found no place for it: {text}"),
        STARTS_BY_ITSELF,
        pod=pod.name,
    )

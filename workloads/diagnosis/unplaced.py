"""Why pods have no node: their queue, their gang, their volumes, the nodes, or the scheduler."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workloads.diagnosis.events import filter_events_about, find_newest, get_text, get_time
from workloads.diagnosis.group_refusals import (
    describe_incomplete_gang,
    diagnose_group_cause,
    diagnose_waiting_gang,
)
from workloads.diagnosis.hami_refusals import add_device_reasons
from workloads.diagnosis.node_capacity import (
    NodeCapacity,
    NodeHolders,
    ResourceAmounts,
    calculate_demand,
    sum_amounts,
)
from workloads.diagnosis.node_refusals import SchedulerAnswer, parse_scheduler_answer
from workloads.diagnosis.node_scaling import add_scaling
from workloads.diagnosis.node_shortage import diagnose_by_nodes
from workloads.diagnosis.queue_refusals import SchedulingRefusal, diagnose_by_queues, list_refusals
from workloads.diagnosis.refusal_forms import RefusalSort
from workloads.diagnosis.result import STARTS_BY_ITSELF, Diagnosis, build_sentence
from workloads.diagnosis.volumes import diagnose_claims, diagnose_first_consumer
from workloads.kube_objects import Object, int_or_zero, nested_dict, nested_list
from workloads.pod_views import PodView, build_pod_view, rank_pods

SCHEDULER_ADVICE = (
    "If this lasts for more than a minute, the cluster's scheduler may be missing or down: ask its "
    "administrator."
)
_KEPT_PLACE = re.compile(r"Waiting for .+ to leave ")
_VICTIMS_LEAVE = re.compile(r"preemption: .{0,40}terminating pod on the nominated node")
"""What Kubernetes' scheduler says while those whose place it gives to a pod end."""
_PIPELINED = re.compile(r"pipelined to node (?P<node>[a-z0-9.-]{1,253})")
_GATED = "SchedulingGated"
_FILTERING = "FilteringFailed"
"""The reason of HAMi's events about nodes that do not take a pod."""
_DEFAULT_SCHEDULER = "default-scheduler"
"""Kubernetes' own, which knows no groups of pods."""
_ANSWER_REASONS = ("Pipelined", "Unschedulable", "FailedScheduling")
"""Reasons of events in which a scheduler answers for a pod."""
_UNKNOWN_ADVICE = (
    "The scheduler tries again by itself: ask the administrator of the cluster what its words mean."
)
_NOTHING_TO_DO = "Nothing needs to be done: others are given time to end."


def diagnose_unplaced(
    pods: Sequence[Object],
    counts: Mapping[str, int],
    pod_group: Object | None,
    queue: Object | None,
    nodes: Sequence[NodeCapacity],
    events: Sequence[Object],
    holders: NodeHolders,
    existing: int,
    placed: int,
) -> Diagnosis:
    """Return why pods have no node.

    `existing` is how many pods of the gang there are, `placed` how many of them have a node.
    """
    gang = _list_gang_needs(pods, counts, _count_missing(pods[0], pod_group, placed))
    needs = [need for need, _ in gang]
    total = sum_amounts(need.times(count) for need, count in gang)
    refusals = list_refusals(pod_group)
    own_queue = nested_dict(pod_group, "spec").get("queue")
    if diagnosis := diagnose_by_queues(refusals, own_queue, total, queue):
        return replace(diagnosis, is_queued=_can_start(refusals, diagnosis))
    first = next(each for _, each in rank_pods([build_pod_view(pod) for pod in pods]))
    for candidate in (
        _diagnose_grouping(first, refusals, events),
        _diagnose_gates(pods, first),
        _diagnose_incomplete_gang(pod_group, existing, refusals, first),
        diagnose_claims(_list_messages(pods, refusals), events),
        _diagnose_kept_place(first, events),
    ):
        if candidate is not None:
            return candidate
    # With requests for GPU memory the amounts do not show whether a pod fits; the scheduler's own
    # message does.
    counted = nodes and not any(build_pod_view(pod).gpu_memory for pod in pods)
    message = next((each.message for each in refusals if each.message), "") or first.reason
    if cause := diagnose_group_cause(message, first):
        return add_scaling(cause, events, pods)
    answer = parse_scheduler_answer(add_device_reasons(message, _list_filterings(first, events)))
    if answer is not None and answer.knows_more:
        return add_scaling(_describe_answer(answer, first), events, pods)
    by_nodes = diagnose_by_nodes(pods[0], needs, total, nodes, holders) if counted else None
    if by_nodes is not None:
        is_queued = by_nodes.help.startswith(STARTS_BY_ITSELF)
        return add_scaling(replace(by_nodes, is_queued=is_queued), events, pods)
    consumer = None if message else diagnose_first_consumer(events, first.name)
    if consumer is not None:
        return consumer
    return add_scaling(_diagnose_by_scheduler(message, answer, first), events, pods)


def _count_missing(pod: Object, pod_group: Object | None, placed: int) -> int | None:
    """Return how many pods have to find a place together; None where that is not known.

    Pods beyond the minimum of a gang start one by one, as there is room.
    """
    if pod_group is not None:
        return max(1, int_or_zero(nested_dict(pod_group, "spec").get("minMember")) - placed)
    return 1 if nested_dict(pod, "spec").get("schedulerName") == _DEFAULT_SCHEDULER else None


def _list_gang_needs(
    pods: Sequence[Object], counts: Mapping[str, int], missing: int | None
) -> list[tuple[ResourceAmounts, int]]:
    """Return what the first `missing` pods need, and how many need it; of all where it is None."""
    needs = []
    for pod in pods:
        count = counts.get(str(nested_dict(pod, "metadata").get("name")), 1)
        if missing is not None:
            count = min(count, missing)
            missing -= count
        if count:
            needs.append((calculate_demand(pod), count))
    return needs


def _list_filterings(pod: PodView, events: Sequence[Object]) -> list[str]:
    """Return what HAMi's events of its last try for a pod say: one for each reason."""
    about = filter_events_about(events, pod.name)
    newest = find_newest(about, _FILTERING)
    if newest is None:
        return []
    return [
        get_text(each)
        for each in about
        if each.get("reason") == _FILTERING and get_time(each) == get_time(newest)
    ]


def _can_start(refusals: Sequence[SchedulingRefusal], diagnosis: Diagnosis) -> bool:
    """Return whether the queue may take it once others give back what they use."""
    has_queue = all(each.reason != "QueueDoesNotExist" for each in refusals)
    return has_queue and "never start" not in diagnosis.help


def _list_messages(
    pods: Sequence[Object], refusals: Sequence[SchedulingRefusal]
) -> list[tuple[str, str]]:
    return [(each.message, "") for each in refusals] + [
        (each.reason, each.name) for each in map(build_pod_view, pods)
    ]


def _diagnose_grouping(
    pod: PodView, refusals: Sequence[SchedulingRefusal], events: Sequence[Object]
) -> Diagnosis | None:
    """Return why its pods make no group; None where a scheduler has answered for them since."""
    if refusals or pod.reason:
        return None
    grouping = find_newest(
        filter_events_about(events, pod.name), "PodGrouperWarning", *_ANSWER_REASONS
    )
    if grouping is None or grouping.get("reason") != "PodGrouperWarning":
        return None
    return Diagnosis(
        build_sentence(f"The scheduler cannot make a group of its pods: {get_text(grouping)}"),
        "Change what it names and run it again: until then no scheduler looks at its pods.",
    )


def _diagnose_gates(pods: Sequence[Object], first: PodView) -> Diagnosis | None:
    gated = sum(_is_gated(pod) for pod in pods)
    if not gated:
        return None
    return Diagnosis(
        build_sentence(
            f"Scheduling gates hold back {gated} of its pods: until they are taken away no "
            "scheduler looks at them"
        ),
        "Whoever set the gates takes them away: a queue of Kueue, or another controller.",
        pod=first.name,
    )


def _is_gated(pod: Object) -> bool:
    return any(
        each.get("type") == "PodScheduled" and each.get("reason") == _GATED
        for each in nested_list(pod, "status", "conditions")
    )


def _diagnose_incomplete_gang(
    pod_group: Object | None,
    existing: int,
    refusals: Sequence[SchedulingRefusal],
    first: PodView,
) -> Diagnosis | None:
    """Return that a gang waits for pods which do not exist yet."""
    minimum = int_or_zero(nested_dict(pod_group, "spec").get("minMember"))
    if refusals or first.reason or not 0 < existing < minimum:
        return None
    return describe_incomplete_gang(minimum, existing, first)


def _diagnose_kept_place(pod: PodView, events: Sequence[Object]) -> Diagnosis | None:
    """Return for whom a pod waits that has a place already, as its scheduler says."""
    if _KEPT_PLACE.match(pod.reason):
        sentence = build_sentence(f"It has its place: w{pod.reason[1:]}")
        return Diagnosis(sentence, _NOTHING_TO_DO, pod=pod.name)
    if _VICTIMS_LEAVE.search(pod.reason):
        return Diagnosis(
            "It has its place: it waits for others to leave it.", _NOTHING_TO_DO, pod=pod.name
        )
    newest = find_newest(filter_events_about(events, pod.name), *_ANSWER_REASONS)
    if newest is None or newest.get("reason") != "Pipelined":
        return None
    match = _PIPELINED.search(get_text(newest))
    where = f" on node {match['node']}" if match else ""
    return Diagnosis(
        build_sentence(f"It has its place{where}: it waits for others to leave it"),
        _NOTHING_TO_DO,
        pod=pod.name,
    )


def _diagnose_by_scheduler(message: str, answer: SchedulerAnswer | None, pod: PodView) -> Diagnosis:
    if not message:
        return Diagnosis(
            "It is queued: the scheduler has not looked at its pods yet.", SCHEDULER_ADVICE
        )
    if answer is not None:
        return _describe_answer(answer, pod)
    return diagnose_waiting_gang(message, pod) or Diagnosis(
        build_sentence(f"The scheduler found no place for it: {message}"),
        _UNKNOWN_ADVICE,
        pod=pod.name,
    )


def _describe_answer(answer: SchedulerAnswer, pod: PodView) -> Diagnosis:
    return Diagnosis(
        build_sentence(answer.describe()),
        answer.advise(),
        pod=pod.name,
        is_queued=not answer.is_preemption_useless
        and any(each.sort is RefusalSort.ROOM for each in answer.refusals),
    )

"""Why a workload waits: for pods, for a place in its queue or on a node, or for containers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from workloads import quantities
from workloads.diagnosis import starting
from workloads.diagnosis.events import filter_events_about, filter_job_events, find_newest
from workloads.diagnosis.node_capacity import (
    NodeCapacity,
    ResourceAmounts,
    calculate_demand,
    filter_open_nodes,
    find_repelling_taint,
    has_wanted_labels,
    sum_amounts,
)
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.kube_objects import (
    Object,
    PodView,
    build_pod_view,
    clean_text,
    filter_own_pods,
    find_true_condition,
    nested_dict,
    nested_list,
    rank_pods,
)
from workloads.states import count_requested_pods

STARTS_BY_ITSELF = "It starts by itself as soon as there is room."
SCHEDULER_ADVICE = (
    "If this lasts for more than a minute, the cluster's scheduler may be missing or down: ask its "
    "administrator."
)
REFUSAL_REASONS = ("FailedCreatePod", "FailedCreate", "FailedCreateService")
"""Reasons of events about a job whose pods are refused."""
INVALID_REASONS = (
    "ValidationError",
    "MPIJobFailedValidation",
    "TrainJobResourcesCreationFailed",
    "ErrResourceExists",
)
"""Reasons of operators that create nothing for a job, and report it nowhere else."""

Formatter = Callable[[Decimal], str]


def diagnose_waiting(
    job: Object,
    pods: Iterable[Object],
    pod_group: Object | None = None,
    *,
    queue: Object | None = None,
    nodes: Sequence[NodeCapacity] = (),
    events: Sequence[Object] = (),
    holders: Mapping[str, Decimal] | None = None,
) -> Diagnosis | None:
    """Return what keeps a job's pods from running; None when nothing does.

    Also None when the job has ended or is suspended. `queue` is the project's Queue, `events` those
    of the job and its pods, `holders` the GPUs that other projects hold now by project name; those
    whose names the reader may not see are together under "". What is not given is not mentioned.
    """
    if find_true_condition(job, "Failed", "Succeeded", "Complete", "Suspended"):
        return None
    remaining = [
        pod
        for pod in filter_own_pods(job, pods)
        if not nested_dict(pod, "metadata").get("deletionTimestamp")
    ]
    live = [
        pod
        for pod in remaining
        if nested_dict(pod, "status").get("phase") not in ("Succeeded", "Failed")
    ]
    if not live:
        return _diagnose_without_pods(job, events)
    if len(remaining) < count_requested_pods(job) and (
        refused := _diagnose_refused_pods(job, events, REFUSAL_REASONS)
    ):
        return refused
    unplaced = [pod for pod in live if not nested_dict(pod, "spec").get("nodeName")]
    if unplaced:
        return _diagnose_unplaced(unplaced, pod_group, queue, nodes, events, holders or {})
    return starting.diagnose_start(
        [each for _, each in rank_pods([build_pod_view(pod) for pod in live])], events
    )


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
    pod_group: Object | None,
    queue: Object | None,
    nodes: Sequence[NodeCapacity],
    events: Sequence[Object],
    holders: Mapping[str, Decimal],
) -> Diagnosis:
    needs = [calculate_demand(pod) for pod in pods]
    total = sum_amounts(needs)
    refusals = _list_refusals(pod_group)
    own_queue = nested_dict(pod_group, "spec").get("queue")
    for refusal in refusals:
        above = own_queue and refusal.numbers.get("name") not in (None, "", own_queue)
        if (
            diagnosis := _diagnose_by_department(refusal, total)
            if above
            else _diagnose_by_queue(refusal.reason, refusal.message, total, queue)
        ):
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
    if diagnosis := _diagnose_missing_claim(pods, refusals):
        return diagnosis
    # With requests for GPU memory the amounts do not show whether a pod fits; the scheduler's own
    # message does.
    counted = nodes and not any(build_pod_view(pod).gpu_memory for pod in pods)
    diagnosis = _diagnose_by_nodes(pods[0], needs, total, nodes, holders) if counted else None
    return diagnosis or _diagnose_by_scheduler(refusals, first)


class _SchedulingRefusal(NamedTuple):
    """Why the scheduler places nothing.

    `numbers` are those of the full queue, where a queue is the reason.
    """

    reason: str
    message: str
    numbers: Object


def _diagnose_missing_claim(
    pods: Sequence[Object], refusals: Sequence[_SchedulingRefusal]
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


def _list_refusals(pod_group: Object | None) -> list[_SchedulingRefusal]:
    """Return the refusals in the PodGroup's scheduling conditions."""
    refusals = []
    for condition in nested_list(pod_group, "status", "schedulingConditions"):
        entries = nested_list(condition, "reasons") or [condition]
        refusals += [
            _SchedulingRefusal(
                str(entry.get("reason") or ""),
                clean_text(entry.get("message")),
                nested_dict(entry, "details", "queueDetails"),
            )
            for entry in entries
        ]
    return refusals


def _diagnose_by_queue(
    reason: str, message: str, total: ResourceAmounts, queue: Object | None
) -> Diagnosis | None:
    """Return a refusal by the project's queue, with GPU numbers if GPUs are short."""
    gpu = nested_dict(queue, "spec", "resources", "gpu")
    status = nested_dict(queue, "status")
    needs = quantities.format_count(total.gpus, "GPU")
    if reason == "QueueDoesNotExist":
        return Diagnosis(
            build_sentence(message or "Its project's queue does not exist"),
            "Ask an administrator to look at the project.",
        )
    if reason == "OverLimit":
        limit, used = quantities.parse_or_zero(gpu.get("limit")), _parse_gpus(status, "allocated")
        text = (
            f"Needs {needs}; the project may use at most {quantities.format_number(limit)} and "
            f"uses {quantities.format_number(used)}"
        )
        advice = (
            "Stop another workload of the project, ask for less, or ask an administrator for a "
            "higher limit."
        )
        if 0 < limit < total.gpus:
            advice = (
                "Ask for less, or ask an administrator for a higher limit: as it is, it can never "
                "start."
            )
        return Diagnosis(
            build_sentence(text if limit and total.gpus and used + total.gpus > limit else message),
            advice,
        )
    if reason == "NonPreemptibleOverQuota":
        quota, used = (
            quantities.parse_or_zero(gpu.get("quota")),
            _parse_gpus(status, "allocatedNonPreemptible"),
        )
        text = (
            f"It is not preemptible and so must fit into the project's quota: it needs {needs}; "
            f"the quota is {quantities.format_number(quota)}, of which "
            f"{quantities.format_number(used)} is in use"
        )
        advice = "Make it preemptible, ask for less, or ask an administrator for more quota."
        return Diagnosis(
            build_sentence(text if "quota" in gpu and used + total.gpus > quota else message),
            advice,
        )
    if reason == "PreemptionDelayNotElapsed":
        return Diagnosis(
            "It waits until it may take the place of other work.",
            "Nothing needs to be done: others are given time to end.",
        )
    return None


def _diagnose_by_department(
    refusal: _SchedulingRefusal, total: ResourceAmounts
) -> Diagnosis | None:
    """Return a refusal by a queue above the project's.

    With its GPU numbers if GPUs are short, else in the scheduler's words.
    """
    numbers = refusal.numbers
    if refusal.reason == "OverLimit":
        limit, used = (
            _parse_gpus(numbers, "queueResourceLimits"),
            _parse_gpus(numbers, "queueAllocatedResources"),
        )
        needed = _parse_gpus(numbers, "podGroupRequestedResources") or total.gpus
        needs = quantities.format_count(needed, "GPU")
        text = (
            f"Needs {needs}; the department may use at most {quantities.format_number(limit)} and "
            f"uses {quantities.format_number(used)}"
        )
        advice = (
            f"{STARTS_BY_ITSELF} To start sooner, stop another workload of the department, ask for "
            "less, or ask an administrator for a higher limit."
        )
        if 0 < limit < needed:
            advice = (
                "Ask for less, or ask an administrator for a higher limit of the department: as it "
                "is, it can never start."
            )
        is_short = (
            _has_gpu_bound(numbers, "queueResourceLimits") and needed and used + needed > limit
        )
        return Diagnosis(
            build_sentence(
                text
                if is_short
                else f"It would pass the limit of its department: {refusal.message}"
            ),
            advice,
        )
    if refusal.reason == "NonPreemptibleOverQuota":
        quota, used = (
            _parse_gpus(numbers, "queueDeservedResources"),
            _parse_gpus(numbers, "queueAllocatedNonPreemptibleResources"),
        )
        needed = _parse_gpus(numbers, "podGroupRequestedNonPreemptibleResources") or total.gpus
        text = "It is not preemptible and so must fit into the quota of its department, too"
        advice = (
            "Make it preemptible, ask for less, or ask an administrator for more quota for the "
            "department."
        )
        if _has_gpu_bound(numbers, "queueDeservedResources") and needed and used + needed > quota:
            needs = quantities.format_count(needed, "GPU")
            in_use = (
                f"the quota is {quantities.format_number(quota)}, of which "
                f"{quantities.format_number(used)} is in use"
            )
            return Diagnosis(build_sentence(f"{text}: it needs {needs}; {in_use}"), advice)
        return Diagnosis(build_sentence(f"{text}: {refusal.message}"), advice)
    return None


def _has_gpu_bound(numbers: Object, field: str) -> bool:
    """Return whether there is a bound of GPUs; -1 is none."""
    bound = str(nested_dict(numbers, field).get("nvidia.com/gpu", ""))
    return bool(bound) and not bound.startswith("-")


def _parse_gpus(status: Object, field: str) -> Decimal:
    return quantities.parse_or_zero(nested_dict(status, field).get("nvidia.com/gpu", "0"))


def _diagnose_by_nodes(
    pod: Object,
    needs: Sequence[ResourceAmounts],
    total: ResourceAmounts,
    nodes: Sequence[NodeCapacity],
    holders: Mapping[str, Decimal],
) -> Diagnosis | None:
    """Return what the nodes lack; None when by these numbers the pods would fit."""
    spec = nested_dict(pod, "spec")
    usable = filter_open_nodes(nodes, spec)
    if not usable:
        return _diagnose_no_usable_node(spec, [node for node in nodes if node.is_usable])
    offered, free = (
        sum_amounts(node.total for node in usable),
        sum_amounts(node.free for node in usable),
    )
    for attribute, show in _RESOURCE_FORMATTERS.items():
        need, total_amount, free_amount = (
            getattr(amounts, attribute) for amounts in (total, offered, free)
        )
        largest_need = max(needs, key=lambda each: getattr(each, attribute))
        largest = max(getattr(node.total, attribute) for node in usable)
        pod_need = getattr(largest_need, attribute)
        if not need:
            continue
        if need > total_amount:
            return _diagnose_shortage(spec, attribute, need, total_amount, nodes)
        if pod_need > largest:
            text = (
                f"A pod needs {show(pod_need)} on one node; the largest node has "
                f"{_format_amount(attribute, largest)}"
            )
            return Diagnosis(
                build_sentence(text),
                "Ask for less for each pod, and for more workers if the work can be spread.",
            )
        if need > free_amount:
            holders_text = (
                _describe_holders(holders, total_amount - free_amount)
                if attribute == "gpus"
                else ""
            )
            share = _describe_share(attribute, free_amount, total_amount)
            text = f"Needs {show(need)}; {share} free{holders_text}"
            return Diagnosis(
                build_sentence(text),
                f"{STARTS_BY_ITSELF} To start sooner, ask for less or stop another workload.",
            )
    if not any(need.fits_in(node.free) for need in needs for node in usable):
        text = (
            f"Needs {_describe_demand(needs[0])} on one node; as much is free, but not on one node"
        )
        return Diagnosis(
            build_sentence(text), f"{STARTS_BY_ITSELF} Smaller pods find a place sooner."
        )
    return None


def _diagnose_shortage(
    spec: Object, attribute: str, need: Decimal, permitted: Decimal, nodes: Sequence[NodeCapacity]
) -> Diagnosis:
    """Return why the permitted nodes together have too little.

    Either taints or closed nodes keep the pods from more, or the cluster has too little.
    """
    show = _RESOURCE_FORMATTERS[attribute]
    having = [
        node
        for node in nodes
        if has_wanted_labels(node, spec) and getattr(node.total, attribute) > 0
    ]
    tainted = [
        (node, taint)
        for node in having
        if node.is_usable and (taint := find_repelling_taint(node, spec))
    ]
    closed = [node for node in having if not node.is_usable]
    lead = (
        f"Needs {show(need)}; the nodes that would take it have "
        f"{_format_amount(attribute, permitted)}"
    )
    if tainted and permitted + sum(getattr(node.total, attribute) for node, _ in tainted) >= need:
        return Diagnosis(
            build_sentence(
                f"{lead}, and others keep it away by a taint that it does not tolerate: "
                f"{_describe_taints(tainted)}"
            ),
            _TOLERATION_ADVICE,
        )
    if closed and permitted + sum(getattr(node.total, attribute) for node in closed) >= need:
        closed_words = (
            "1 more has some, and is"
            if len(closed) == 1
            else f"{len(closed)} more have some, and are"
        )
        return Diagnosis(
            build_sentence(f"{lead}; {closed_words} not ready or closed to pods"),
            "Ask the administrator of the cluster, or ask for less.",
        )
    cluster_total = sum((getattr(node.total, attribute) for node in having), Decimal(0))
    return Diagnosis(
        build_sentence(
            f"Needs {show(need)}; the cluster has {_format_amount(attribute, cluster_total)}"
        ),
        "Ask for less: as it is, it can never start.",
    )


def _diagnose_no_usable_node(spec: Object, usable: Sequence[NodeCapacity]) -> Diagnosis:
    if not usable:
        return Diagnosis(
            "No node of the cluster is ready to take pods.", "Ask the administrator of the cluster."
        )
    matching = [node for node in usable if has_wanted_labels(node, spec)]
    if not matching:
        return Diagnosis(
            build_sentence(f"No node that can take pods has {_describe_wanted_labels(spec)}"),
            "Choose another node type or other node pools, or none.",
        )
    tainted = [(node, taint) for node in matching if (taint := find_repelling_taint(node, spec))]
    return Diagnosis(
        build_sentence(
            "Every node where it could be keeps it away by a taint that it does not tolerate: "
            f"{_describe_taints(tainted)}"
        ),
        _TOLERATION_ADVICE,
    )


def _describe_wanted_labels(spec: Object) -> str:
    """Describe the labels that a pod requires."""
    labels = [f"{key}={value}" for key, value in nested_dict(spec, "nodeSelector").items()]
    required = nested_dict(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for expression in (
        each
        for term in nested_list(required, "nodeSelectorTerms")
        for each in nested_list(term, "matchExpressions")
    ):
        values = expression.get("values")
        labels.append(
            (
                f"{expression.get('key')} {expression.get('operator')} "
                f"{', '.join(map(str, values or ()))}"
            ).strip()
        )
    return clean_text(f"the label {', '.join(labels)}", 200)


def _describe_taints(tainted: Sequence[tuple[NodeCapacity, Object]]) -> str:
    return clean_text("; ".join(dict.fromkeys(_describe_taint(taint) for _, taint in tainted)), 200)


def _describe_taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


_TOLERATION_ADVICE = (
    "Add a toleration for it, or ask the administrator of the cluster whether those nodes are "
    "meant for you."
)
_RESOURCE_FORMATTERS: Mapping[str, Formatter] = {
    "gpus": lambda amount: quantities.format_count(amount, "GPU"),
    "cpu": lambda amount: quantities.format_count(amount, "CPU core"),
    "memory": lambda amount: f"{quantities.format_memory(amount)} of memory",
}


def _format_amount(attribute: str, amount: Decimal) -> str:
    return (
        quantities.format_memory(amount)
        if attribute == "memory"
        else quantities.format_number(amount)
    )


def _describe_share(attribute: str, free: Decimal, total_amount: Decimal) -> str:
    """Describe what is free of a total: "1 of 4 is", "none of 4 is", "2 of 4 are"."""
    if not free:
        return f"none of {_format_amount(attribute, total_amount)} is"
    return (
        f"{_format_amount(attribute, free)} of {_format_amount(attribute, total_amount)} "
        f"{'is' if free <= 1 or attribute == 'memory' else 'are'}"
    )


def _describe_holders(holders: Mapping[str, Decimal], used: Decimal) -> str:
    """Describe who holds the GPUs that are not free.

    Projects by name, then the other projects together, then this project.
    """
    parts = [
        f"{clean_text(name, 80)} holds {quantities.format_number(gpus)}"
        for name, gpus in sorted(holders.items())
        if name and gpus
    ]
    hidden = holders.get("", Decimal(0))
    if hidden:
        parts.append(
            f"{'further' if parts else 'other'} projects hold {quantities.format_number(hidden)}"
        )
    rest = used - sum(holders.values(), Decimal(0))
    if holders and rest > 0:
        parts.append(f"this project holds {quantities.format_number(rest)}")
    return "".join(f"; {each}" for each in parts)


def _describe_demand(need: ResourceAmounts) -> str:
    texts = [
        show(getattr(need, attribute))
        for attribute, show in _RESOURCE_FORMATTERS.items()
        if getattr(need, attribute)
    ]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _diagnose_by_scheduler(refusals: Sequence[_SchedulingRefusal], pod: PodView) -> Diagnosis:
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

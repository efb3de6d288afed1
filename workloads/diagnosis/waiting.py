"""Why is it waiting: for pods, for a place in its queue or on a node, or for its containers to
start.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from workloads import quantities
from workloads.diagnosis import starting
from workloads.diagnosis.events import about, about_job, newest
from workloads.diagnosis.result import Diagnosis, sentence
from workloads.diagnosis.room import Amounts, NodeRoom, demand, matches, open_to, repels, total_of
from workloads.observed import Object, PodView, holds, listed, own, part, plain, ranked, view
from workloads.states import requested_pods

AGAIN = "It starts by itself as soon as there is room."
NOBODY_LOOKS = (
    "If this lasts for more than a minute, the cluster's scheduler may be missing or down: ask its "
    "administrator."
)
REFUSALS = ("FailedCreatePod", "FailedCreate", "FailedCreateService")
"""Reasons of events about a job whose pods are refused."""
INVALID = (
    "ValidationError",
    "MPIJobFailedValidation",
    "TrainJobResourcesCreationFailed",
    "ErrResourceExists",
)
"""Those of operators that make nothing of a job, and tell it nowhere else."""

Words = Callable[[Decimal], str]


def why_waiting(
    job: Object,
    pods: Iterable[Object],
    pod_group: Object | None = None,
    *,
    queue: Object | None = None,
    nodes: Sequence[NodeRoom] = (),
    events: Sequence[Object] = (),
    holders: Mapping[str, Decimal] | None = None,
) -> Diagnosis | None:
    """What keeps a job's pods from running; None when nothing does, or the job has ended or is
    held.

    `queue` is the project's Queue, `events` those of the job and its pods, `holders` the GPUs that
    other projects hold now, by name, those whose names the reader may not see together under "".
    What is not given is not spoken of.
    """
    if holds(job, "Failed", "Succeeded", "Complete", "Suspended"):
        return None
    there = [pod for pod in own(job, pods) if not part(pod, "metadata").get("deletionTimestamp")]
    live = [pod for pod in there if part(pod, "status").get("phase") not in ("Succeeded", "Failed")]
    if not live:
        return _without_pods(job, events)
    if len(there) < requested_pods(job) and (refused := _refused(job, events, REFUSALS)):
        return refused
    unplaced = [pod for pod in live if not part(pod, "spec").get("nodeName")]
    if unplaced:
        return _unplaced(unplaced, pod_group, queue, nodes, events, holders or {})
    return starting.why_not_started(
        [each for _, each in ranked([view(pod) for pod in live])], events
    )


def _without_pods(job: Object, events: Sequence[Object]) -> Diagnosis | None:
    if part(job, "status").get("succeeded") or part(job, "status").get("completionTime"):
        return None
    return _refused(job, events, (*REFUSALS, *INVALID)) or Diagnosis(
        "Its pods have not been made yet.",
        (
            "If this lasts for more than a minute, the cluster's training operator may be "
            "missing or down: see the cluster's page."
        ),
    )


def _refused(job: Object, events: Sequence[Object], reasons: Sequence[str]) -> Diagnosis | None:
    """What the cluster has against the pods, by the events of the job, or of a batch Job that its
    operator made.
    """
    refused = newest(about_job(events, job), *reasons)
    if refused is None:
        return None
    text = plain(refused.get("message") or refused.get("note"))
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
    return Diagnosis(sentence(f"The cluster refuses to make its pods: {text}"), advice)


def _unplaced(
    pods: Sequence[Object],
    pod_group: Object | None,
    queue: Object | None,
    nodes: Sequence[NodeRoom],
    events: Sequence[Object],
    holders: Mapping[str, Decimal],
) -> Diagnosis:
    needs = [demand(pod) for pod in pods]
    total = total_of(needs)
    refusals = _refusals(pod_group)
    own_queue = part(pod_group, "spec").get("queue")
    for refusal in refusals:
        above = own_queue and refusal.numbers.get("name") not in (None, "", own_queue)
        if (
            told := _by_department(refusal, total)
            if above
            else _by_queue(refusal.reason, refusal.message, total, queue)
        ):
            return told
    first = next(each for _, each in ranked([view(pod) for pod in pods]))
    grouping = newest(about(events, first.name), "PodGrouperWarning")
    if grouping is not None:
        return Diagnosis(
            sentence(
                f"The scheduler cannot make a group of its pods: {plain(grouping.get('message'))}"
            )
        )
    if told := _by_claim(pods, refusals):
        return told
    # Where a pod asks for GPU memory the numbers do not tell whether it fits: the scheduler's own
    # words do.
    counted = nodes and not any(view(pod).gpu_memory for pod in pods)
    told = _by_nodes(pods[0], needs, total, nodes, holders) if counted else None
    return told or _by_scheduler(refusals, first)


class _Refusal(NamedTuple):
    """Why the scheduler places nothing; `numbers` are those of the queue that is full, where it is
    that.
    """

    reason: str
    message: str
    numbers: Object


def _by_claim(pods: Sequence[Object], refusals: Sequence[_Refusal]) -> Diagnosis | None:
    """A volume that is not there: before it is, no scheduler looks for room."""
    told = [(each.message, "") for each in refusals] + [
        (each.reason, each.name) for each in map(view, pods)
    ]
    for message, name in told:
        if "persistentvolumeclaim" in message.lower():
            advice = (
                "Check that the claim exists in the project's namespace, and that its storage "
                "class, or the default one, can make it."
            )
            return Diagnosis(sentence(f"It waits for a volume: {message}"), advice, pod=name)
    return None


def _refusals(pod_group: Object | None) -> list[_Refusal]:
    """Those of the PodGroup's scheduling conditions."""
    found = []
    for condition in listed(pod_group, "status", "schedulingConditions"):
        entries = listed(condition, "reasons") or [condition]
        found += [
            _Refusal(
                str(entry.get("reason") or ""),
                plain(entry.get("message")),
                part(entry, "details", "queueDetails"),
            )
            for entry in entries
        ]
    return found


def _by_queue(reason: str, message: str, total: Amounts, queue: Object | None) -> Diagnosis | None:
    """A refusal by the project's queue, with the GPU numbers if GPUs are what is short."""
    gpu = part(queue, "spec", "resources", "gpu")
    status = part(queue, "status")
    needs = quantities.counted(total.gpus, "GPU")
    if reason == "QueueDoesNotExist":
        return Diagnosis(
            sentence(message or "Its project's queue does not exist"),
            "Ask an administrator to look at the project.",
        )
    if reason == "OverLimit":
        limit, used = quantities.read(gpu.get("limit")), _gpus_in(status, "allocated")
        told = (
            f"Needs {needs}; the project may use at most {quantities.plain(limit)} and uses "
            f"{quantities.plain(used)}"
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
            sentence(told if limit and total.gpus and used + total.gpus > limit else message),
            advice,
        )
    if reason == "NonPreemptibleOverQuota":
        quota, used = quantities.read(gpu.get("quota")), _gpus_in(status, "allocatedNonPreemptible")
        told = (
            f"It is not preemptible and so must fit into the project's quota: it needs {needs}; "
            f"the quota is {quantities.plain(quota)}, of which {quantities.plain(used)} is in use"
        )
        advice = "Make it preemptible, ask for less, or ask an administrator for more quota."
        return Diagnosis(
            sentence(told if "quota" in gpu and used + total.gpus > quota else message), advice
        )
    if reason == "PreemptionDelayNotElapsed":
        return Diagnosis(
            "It waits until it may take the place of other work.",
            "Nothing needs to be done: others are given time to end.",
        )
    return None


def _by_department(refusal: _Refusal, total: Amounts) -> Diagnosis | None:
    """A refusal by a queue above the project's, with its GPU numbers if GPUs are what is short, or
    in the scheduler's words.
    """
    numbers = refusal.numbers
    if refusal.reason == "OverLimit":
        limit, used = (
            _gpus_in(numbers, "queueResourceLimits"),
            _gpus_in(numbers, "queueAllocatedResources"),
        )
        needed = _gpus_in(numbers, "podGroupRequestedResources") or total.gpus
        needs = quantities.counted(needed, "GPU")
        told = (
            f"Needs {needs}; the department may use at most {quantities.plain(limit)} and uses "
            f"{quantities.plain(used)}"
        )
        advice = (
            f"{AGAIN} To start sooner, stop another workload of the department, ask for less, or "
            "ask an administrator for a higher limit."
        )
        if 0 < limit < needed:
            advice = (
                "Ask for less, or ask an administrator for a higher limit of the department: as it "
                "is, it can never start."
            )
        is_short = _names_gpus(numbers, "queueResourceLimits") and needed and used + needed > limit
        return Diagnosis(
            sentence(
                told
                if is_short
                else f"It would pass the limit of its department: {refusal.message}"
            ),
            advice,
        )
    if refusal.reason == "NonPreemptibleOverQuota":
        quota, used = (
            _gpus_in(numbers, "queueDeservedResources"),
            _gpus_in(numbers, "queueAllocatedNonPreemptibleResources"),
        )
        needed = _gpus_in(numbers, "podGroupRequestedNonPreemptibleResources") or total.gpus
        told = "It is not preemptible and so must fit into the quota of its department, too"
        advice = (
            "Make it preemptible, ask for less, or ask an administrator for more quota for the "
            "department."
        )
        if _names_gpus(numbers, "queueDeservedResources") and needed and used + needed > quota:
            needs = quantities.counted(needed, "GPU")
            in_use = (
                f"the quota is {quantities.plain(quota)}, of which {quantities.plain(used)} is in "
                "use"
            )
            return Diagnosis(sentence(f"{told}: it needs {needs}; {in_use}"), advice)
        return Diagnosis(sentence(f"{told}: {refusal.message}"), advice)
    return None


def _names_gpus(numbers: Object, field: str) -> bool:
    """Whether there is a bound of GPUs; -1 is none."""
    said = str(part(numbers, field).get("nvidia.com/gpu", ""))
    return bool(said) and not said.startswith("-")


def _gpus_in(status: Object, field: str) -> Decimal:
    return quantities.read(part(status, field).get("nvidia.com/gpu", "0"))


def _by_nodes(
    pod: Object,
    needs: Sequence[Amounts],
    total: Amounts,
    nodes: Sequence[NodeRoom],
    holders: Mapping[str, Decimal],
) -> Diagnosis | None:
    """What the nodes lack; None when by these numbers the pods would fit."""
    spec = part(pod, "spec")
    usable = open_to(nodes, spec)
    if not usable:
        return _without_nodes(spec, [node for node in nodes if node.usable])
    offered, free = total_of(node.total for node in usable), total_of(node.free for node in usable)
    for attribute, show in _RESOURCES.items():
        need, has, left = (getattr(amounts, attribute) for amounts in (total, offered, free))
        most = max(needs, key=lambda each: getattr(each, attribute))
        largest = max(getattr(node.total, attribute) for node in usable)
        one = getattr(most, attribute)
        if not need:
            continue
        if need > has:
            return _too_little(spec, attribute, need, has, nodes)
        if one > largest:
            told = (
                f"A pod needs {show(one)} on one node; the largest node has "
                f"{_bare(attribute, largest)}"
            )
            return Diagnosis(
                sentence(told),
                "Ask for less for each pod, and for more workers if the work can be spread.",
            )
        if need > left:
            held = _held(holders, has - left) if attribute == "gpus" else ""
            told = f"Needs {show(need)}; {_of(attribute, left, has)} free{held}"
            return Diagnosis(
                sentence(told), f"{AGAIN} To start sooner, ask for less or stop another workload."
            )
    if not any(need.fits(node.free) for need in needs for node in usable):
        told = f"Needs {_together(needs[0])} on one node; as much is free, but not on one node"
        return Diagnosis(sentence(told), f"{AGAIN} Smaller pods find a place sooner.")
    return None


def _too_little(
    spec: Object, attribute: str, need: Decimal, has: Decimal, nodes: Sequence[NodeRoom]
) -> Diagnosis:
    """More than the nodes that it may be on have together: for nodes that would have it keep it
    away, or because it is too much.
    """
    show = _RESOURCES[attribute]
    having = [node for node in nodes if matches(node, spec) and getattr(node.total, attribute) > 0]
    tainted = [(node, taint) for node in having if node.usable and (taint := repels(node, spec))]
    closed = [node for node in having if not node.usable]
    here = f"Needs {show(need)}; the nodes that would take it have {_bare(attribute, has)}"
    if tainted and has + sum(getattr(node.total, attribute) for node, _ in tainted) >= need:
        return Diagnosis(
            sentence(
                f"{here}, and others keep it away by a taint that it does not tolerate: "
                f"{_taints(tainted)}"
            ),
            _TOLERATE,
        )
    if closed and has + sum(getattr(node.total, attribute) for node in closed) >= need:
        more = (
            "1 more has some, and is"
            if len(closed) == 1
            else f"{len(closed)} more have some, and are"
        )
        return Diagnosis(
            sentence(f"{here}; {more} not ready or closed to pods"),
            "Ask the administrator of the cluster, or ask for less.",
        )
    whole = sum((getattr(node.total, attribute) for node in having), Decimal(0))
    return Diagnosis(
        sentence(f"Needs {show(need)}; the cluster has {_bare(attribute, whole)}"),
        "Ask for less: as it is, it can never start.",
    )


def _without_nodes(spec: Object, usable: Sequence[NodeRoom]) -> Diagnosis:
    if not usable:
        return Diagnosis(
            "No node of the cluster is ready to take pods.", "Ask the administrator of the cluster."
        )
    matching = [node for node in usable if matches(node, spec)]
    if not matching:
        return Diagnosis(
            sentence(f"No node that can take pods has {_asked(spec)}"),
            "Choose another node type or other node pools, or none.",
        )
    tainted = [(node, taint) for node in matching if (taint := repels(node, spec))]
    return Diagnosis(
        sentence(
            "Every node where it could be keeps it away by a taint that it does not tolerate: "
            f"{_taints(tainted)}"
        ),
        _TOLERATE,
    )


def _asked(spec: Object) -> str:
    """The labels that a pod asks for, in words."""
    wanted = [f"{key}={value}" for key, value in part(spec, "nodeSelector").items()]
    required = part(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for expression in (
        each
        for term in listed(required, "nodeSelectorTerms")
        for each in listed(term, "matchExpressions")
    ):
        values = expression.get("values")
        wanted.append(
            (
                f"{expression.get('key')} {expression.get('operator')} "
                f"{', '.join(map(str, values or ()))}"
            ).strip()
        )
    return plain(f"the label {', '.join(wanted)}", 200)


def _taints(tainted: Sequence[tuple[NodeRoom, Object]]) -> str:
    return plain("; ".join(dict.fromkeys(_taint(taint) for _, taint in tainted)), 200)


def _taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


_TOLERATE = (
    "Add a toleration for it, or ask the administrator of the cluster whether those nodes are "
    "meant for you."
)
_RESOURCES: Mapping[str, Words] = {
    "gpus": lambda amount: quantities.counted(amount, "GPU"),
    "cpu": lambda amount: quantities.counted(amount, "CPU core"),
    "memory": lambda amount: f"{quantities.memory(amount)} of memory",
}


def _bare(attribute: str, amount: Decimal) -> str:
    return quantities.memory(amount) if attribute == "memory" else quantities.plain(amount)


def _of(attribute: str, left: Decimal, has: Decimal) -> str:
    """ "1 of 4 is", "none of 4 is", "2 of 4 are"."""
    if not left:
        return f"none of {_bare(attribute, has)} is"
    return (
        f"{_bare(attribute, left)} of {_bare(attribute, has)} "
        f"{'is' if left <= 1 or attribute == 'memory' else 'are'}"
    )


def _held(holders: Mapping[str, Decimal], used: Decimal) -> str:
    """Who holds the GPUs that are not free: projects by name, then the rest of the others, then the
    own project.
    """
    parts = [
        f"{plain(name, 80)} holds {quantities.plain(gpus)}"
        for name, gpus in sorted(holders.items())
        if name and gpus
    ]
    hidden = holders.get("", Decimal(0))
    if hidden:
        parts.append(f"{'further' if parts else 'other'} projects hold {quantities.plain(hidden)}")
    rest = used - sum(holders.values(), Decimal(0))
    if holders and rest > 0:
        parts.append(f"this project holds {quantities.plain(rest)}")
    return "".join(f"; {each}" for each in parts)


def _together(need: Amounts) -> str:
    shown = [
        show(getattr(need, attribute))
        for attribute, show in _RESOURCES.items()
        if getattr(need, attribute)
    ]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _by_scheduler(refusals: Sequence[_Refusal], pod: PodView) -> Diagnosis:
    text = next((each.message for each in refusals if each.message), "") or pod.reason
    if not text:
        return Diagnosis(
            "It is queued: the scheduler has not looked at its pods yet.", NOBODY_LOOKS
        )
    return Diagnosis(sentence(f"The scheduler found no place for it: {text}"), AGAIN, pod=pod.name)

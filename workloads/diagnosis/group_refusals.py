"""What schedulers say of a pod or its group as a whole, beside the nodes. Pure."""

import re
from collections.abc import Sequence

from workloads.diagnosis.result import STARTS_BY_ITSELF, Diagnosis, build_sentence
from workloads.diagnosis.word_forms import LONGEST_DETAIL, WordForm
from workloads.kube_objects import clean_text
from workloads.pod_views import PodView

_OPERATOR_MAKES_PODS = (
    "The training operator makes the others. If this lasts for more than a minute, look into the "
    "event history for what keeps it from that."
)
_TRIED_AGAIN = "Nothing needs to be done: the scheduler tries again by itself."
_VOLUME_ADVICE = (
    "The scheduler tries again by itself. If it lasts, ask the administrator whether the "
    "storage's driver works, or use another storage class."
)
_GANG_COUNTS = (
    re.compile(
        r"sibling pods, current pods number: (?P<existing>\d{1,7}), minMember of group: "
        r"(?P<minimum>\d{1,7})"
    ),
    re.compile(r"\d+/(?P<existing>\d{1,7}) tasks in gang .*?(?P<minimum>\d{1,7}) minAvailable"),
    re.compile(r"tasks for gang-scheduling, valid: (?P<existing>\d{1,7}), min: (?P<minimum>\d+)"),
)
"""How many pods of a gang there are, and how many it needs: scheduler-plugins and Volcano."""


_CAUSES: Sequence[WordForm] = (
    WordForm(
        re.compile(
            r"insufficient quotas(?: \[.{0,200}?\])?, quotaName: (?P<name>[^,\s]{1,253})", re.I
        ),
        "the scheduler's quota {name} has too little left for it",
        "It starts by itself as soon as others of that quota give some back; or ask the "
        "administrator of the cluster for more.",
        is_queued=True,
    ),
    WordForm(
        re.compile(
            r"queue resource quota insufficient(?P<what>: insufficient [\w./-]{1,253}\w"
            r"(?:, insufficient [\w./-]{1,253}\w){0,9})?"
        ),
        "its scheduler's queue has too little left for it{what}",
        "It starts by itself as soon as others of that queue give some back; or ask the "
        "administrator of the cluster for more.",
        is_queued=True,
    ),
    WordForm(
        re.compile(
            r"Max (?P<what>\S{1,253}) resources available in a single node in the "
            r"(?P<pool>\S{1,253}) node-pool is topped at (?P<most>[\d.]{1,20}(?: \w{1,10})?)"
        ),
        "it asks for more {what} than a node of the node pool {pool} has: the most is {most}",
        "Ask for less for each pod, or for another node pool: as it is, it can never start.",
    ),
    WordForm(
        re.compile(
            r"No node in the (?P<pool>\S{1,253}) node-pool has (?P<what>\S{1,253}) resources"
        ),
        "no node of the node pool {pool} has any {what}",
        "Ask for none of it, or for another node pool: as it is, it can never start.",
    ),
    WordForm(
        re.compile(r"Requested topology (?P<name>\S{1,253}) does not exist"),
        "the topology {name} that it asks for does not exist",
        "Correct its name, or ask the administrator of the cluster to create it.",
    ),
    WordForm(
        re.compile(
            r"topology (?P<name>\S{1,253}), requirement (?P<level>\S{1,253}) couldn't be satisfied"
        ),
        "its pods have to be together within one {level} of the topology {name}, and none has "
        "room for them",
        "It starts by itself as soon as one has; or ask for the topology as a preference.",
        is_queued=True,
    ),
    WordForm(
        re.compile(r"waiting for minCount pods from a gang"),
        "its pods start together, and some of them do not exist yet",
        _OPERATOR_MAKES_PODS,
    ),
    WordForm(
        re.compile(r"waiting for pods?'s? (?:workload|pod ?group) \"(?P<name>[^\"]{1,253})\""),
        "the group of its pods, {name}, does not exist yet",
        "Whoever makes its pods makes their group, too. If this lasts for more than a minute, "
        "look into the event history.",
    ),
    WordForm(
        re.compile(
            r"queue (?:<|\")?(?P<name>[\w./-]{1,253}?)?(?:>|\")? ?is overused"
            r"(?P<what>: (?:overused|insufficient) [\w./-]{1,253}\w"
            r"(?:, (?:overused|insufficient) [\w./-]{1,253}\w){0,9})?",
            re.I,
        ),
        "its scheduler's queue {name} uses as much as it may, or more{what}",
        "It starts by itself as soon as others of that queue give some back; or ask the "
        "administrator of the cluster for more.",
        is_queued=True,
    ),
    WordForm(
        re.compile(
            r"resource in cluster is overused(?P<what>: overused [\w./-]{1,253}\w"
            r"(?:, overused [\w./-]{1,253}\w){0,9})?",
            re.I,
        ),
        "the cluster has too little left for it and what stands before it in its queues{what}",
        f"{STARTS_BY_ITSELF} Or ask for less.",
        is_queued=True,
    ),
    WordForm(
        re.compile(r"running \w{1,20} plugin \"\w{1,60}\": .{0,400}object has been modified"),
        "the scheduler and somebody else wrote to the same object, and it has to try again",
        _TRIED_AGAIN,
    ),
    WordForm(
        re.compile(r"plugin \"VolumeBinding\": .{0,200}(?:timed out waiting|deadline exceeded)"),
        "its storage did not make or bind its volume in the time that the scheduler waits",
        _VOLUME_ADVICE,
    ),
    WordForm(
        re.compile(
            r"plugin \"VolumeBinding\": .{0,200}pv \"(?P<name>[^\"]{1,253})\" node affinity "
            r"doesn't match"
        ),
        "its volume {name} cannot be reached from the nodes that have room for it",
        "Choose nodes in the volume's zone, or a claim whose volume can be reached from these.",
    ),
    WordForm(
        re.compile(
            r"plugin \"VolumeBinding\": .{0,200}provisioning failed for PVC "
            r"\"(?P<name>[^\"]{1,253})\""
        ),
        "the volume of its claim {name} could not be made",
        "Choose another storage class or size, or ask the administrator of the cluster.",
    ),
    WordForm(
        re.compile(r"running \w{1,20} plugin \"VolumeBinding\": (?P<why>.{1,400})"),
        "its volume cannot be bound where there is room for it: {why}",
        _VOLUME_ADVICE,
    ),
    WordForm(
        re.compile(r"running \w{1,20} plugin \"DynamicResources\": (?P<why>.{1,400})"),
        "its devices cannot be given to it where there is room for it: {why}",
        "The scheduler tries again by itself. If it lasts, ask the administrator whether the "
        "devices' driver works.",
    ),
    WordForm(
        re.compile(r"node (?P<node>[a-z0-9.-]{1,253}) has been locked within"),
        "its scheduler is still giving GPUs of {node} to another pod",
        "Nothing needs to be done: it tries again by itself, and such a lock lasts for five "
        "minutes at most.",
    ),
    WordForm(
        re.compile(r"running (?:Pre)?Bind plugin \"\w{1,60}\": (?P<why>.{1,400})"),
        "the scheduler has a node for it and could not give it the pod: {why}",
        "The scheduler tries again by itself. If it lasts, ask the administrator of the cluster.",
    ),
    WordForm(
        re.compile(r"no nodes available to schedule pods"),
        "the cluster has no nodes",
        "Ask the administrator of the cluster.",
    ),
)
_GANGS: Sequence[WordForm] = (
    WordForm(
        re.compile(
            r"tasks in gang unschedulable|pod group is not ready|gets rejected due to|"
            r"rejected due to timeout after waiting"
        ),
        "its pods start together, and there is no place yet for all of them at once",
        f"{STARTS_BY_ITSELF} Fewer or smaller pods find a place sooner.",
        is_queued=True,
    ),
    WordForm(
        re.compile(r"can possibly be assigned to (?P<node>[a-z0-9.-]{1,253})"),
        "its pods start together: there may be a place on {node}, and not yet for all of them",
        f"{STARTS_BY_ITSELF} Fewer or smaller pods find a place sooner.",
        is_queued=True,
    ),
)
"""What holds for each gang that waits: the nodes or their rows may say more."""


def diagnose_group_cause(message: str, pod: PodView) -> Diagnosis | None:
    """Return the cause outside of the nodes that a scheduler gives; None where it gives none."""
    for pattern in _GANG_COUNTS:
        match = pattern.search(message)
        if match is not None and int(match["existing"]) < int(match["minimum"]):
            return describe_incomplete_gang(int(match["minimum"]), int(match["existing"]), pod)
    return _match_form(_CAUSES, message, pod)


def diagnose_waiting_gang(message: str, pod: PodView) -> Diagnosis | None:
    """Return that a gang waits for room, which says less than the nodes do; None without one."""
    return _match_form(_GANGS, message, pod)


def describe_incomplete_gang(minimum: int, existing: int, pod: PodView) -> Diagnosis:
    """Return that a gang waits for pods which do not exist yet."""
    return Diagnosis(
        build_sentence(
            f"Its pods start together, and {minimum} ha{'s' if minimum == 1 else 've'} to exist "
            f"before any starts: {existing} of them exist{'s' * (existing == 1)}"
        ),
        _OPERATOR_MAKES_PODS,
        pod=pod.name,
    )


def _match_form(forms: Sequence[WordForm], message: str, pod: PodView) -> Diagnosis | None:
    for form in forms:
        if match := form.pattern.search(message):
            groups = {
                name: clean_text(value, LONGEST_DETAIL) for name, value in match.groupdict().items()
            }
            words = build_sentence(form.describe(match, **groups))
            return Diagnosis(words, form.help, pod=pod.name, is_queued=form.is_queued)
    return None

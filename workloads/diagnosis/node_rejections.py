"""Why the kubelet of a node rejects a pod that a scheduler gave to it. Pure.

The reasons are those of `pkg/kubelet`: `lifecycle/predicate.go`, `lifecycle/handlers.go`,
`cm/topologymanager`, `cm/devicemanager`, `eviction` and `nodeshutdown`. Most such pods never ran;
a kubelet that starts again judges running ones, too.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from workloads import quantities
from workloads.diagnosis.word_forms import LONGEST_DETAIL, WordForm
from workloads.kube_objects import clean_text

BAD_NODE = "Run it again; if this repeats, tell the administrator of the cluster about the node."
_LEADS = ("Pod was rejected: ", "Pod was rejected as ")
"""How kubelets begin what they say of a pod that they reject."""
_TAKEN = (
    "Run it again: others took the room between the scheduler's choice and the start. If this "
    "repeats, ask the administrator of the cluster what else starts pods on the node, such as a "
    "second scheduler."
)
_PLUGIN = (
    "Run it again: after a start the node's plugin for such devices needs a while. If this "
    "repeats, tell the administrator of the cluster about the node."
)
_SIDE_BY_SIDE = (
    "Run it again: another node may have them side by side. Or ask for less for each pod; the "
    "scheduler does not know how a node's devices are laid out unless the cluster tells it."
)
_NOT_SUCH = "Change what its node does not take, or choose other nodes."
_AMOUNTS = re.compile(
    r"enough resource: (?P<what>[\w./-]{1,253})(?:, requested: (?P<requested>\d{1,19}), used: "
    r"(?P<used>\d{1,19}), capacity: (?P<capacity>\d{1,19}))?"
)
_RESOURCE_WORDS: Mapping[str, str] = {
    "cpu": "few CPU cores",
    "ephemeral-storage": "little disk space",
    "memory": "little memory",
    "nvidia.com/gpu": "few GPUs",
    "pods": "few places for pods",
}
_PRESSURES: Mapping[str, str] = {
    "DiskPressure": "disk space",
    "MemoryPressure": "memory",
    "PIDPressure": "process IDs",
}


def _build_form(pattern: str, words: str, help: str) -> WordForm:
    return WordForm(re.compile(pattern), words, help)


_FORMS: Sequence[WordForm] = (
    _build_form(r"^OutOf", "the node had too {what} left{numbers}", _TAKEN),
    _build_form(
        r"requested number of devices unavailable for (?P<device>[\w./-]{1,253}?)\. Requested: "
        r"(?P<requested>\d{1,9}), Available: (?P<available>\d{1,9})",
        "the node had {available} of {device} free, and the pod asks for {requested}",
        _PLUGIN,
    ),
    _build_form(
        r"no healthy devices present(?:; cannot allocate unhealthy devices"
        r"(?P<device> [\w./-]{1,253}\w))?|no longer healthy",
        "the devices{device} of the node are not healthy",
        "Run it again without that node, and tell the administrator of the cluster: its devices "
        "are faulty, or what watches them is.",
    ),
    _build_form(
        r"unregistered device (?P<device>[\w./-]{1,253}\w)|plugin for (?P<other>[\w./-]{1,253}\w)",
        "nothing on the node gives out the devices {device}{other}",
        _PLUGIN,
    ),
    _build_form(
        r"not enough cpus available|NUMA nodes? with enough|\[(?:cpu|memory)manager\]",
        "the node could not give it cores or memory for itself alone",
        _SIDE_BY_SIDE,
    ),
    _build_form(
        r"^UnexpectedAdmissionError\n.{0,80}rpc error",
        "what gives out the devices of the node failed: {message}",
        _PLUGIN,
    ),
    _build_form(
        r"^(?:NodeAffinity|MatchNodeSelector)\n",
        "the node does not have the labels that its node selector or node affinity asks for",
        "Run it again: the node no longer fits what the pod asks for, so its labels have changed.",
    ),
    _build_form(
        r"^(?:NodePorts|PodFitsHostPorts|HostPorts?(?:Conflict|NotAvailable))\n",
        "the node has the host port in use that it asks for",
        "Run it again. If this repeats, ask for no host port, or not for the host's network: there "
        "each pod takes a port of a node for itself.",
    ),
    _build_form(
        r"^(?:NodeName|HostName)\n",
        "it is meant for another node than the one that it was given to",
        "Take the name of a node out of its definition, or correct it.",
    ),
    _build_form(
        r"^(?:TaintToleration\n|node\(s\) had taints)",
        "the node has got a taint that it does not tolerate",
        "Run it again, so that it gets another node; or add a toleration for the taint.",
    ),
    _build_form(
        r"^TopologyAffinityError\n",
        "the node could not give it its cores, memory and devices side by side (from one NUMA "
        "node)",
        _SIDE_BY_SIDE,
    ),
    _build_form(
        r"^SMTAlignmentError\n",
        "it asks for CPU cores that do not make whole cores of the node: {message}",
        "Ask for a number of CPU cores that is divisible by the threads of a core, such as an even "
        "one.",
    ),
    _build_form(
        r"^Evicted\n.{0,40}had condition: \[(?P<pressure>\w{1,40})",
        "the node was short of {pressure}",
        "Run it again: a node that is short takes no pods until it has room again. If this "
        "repeats, tell the administrator of the cluster about the node.",
    ),
    _build_form(
        r"^(?:NodeShutdown|Shutdown)\n",
        "the node was shutting down",
        "Run it again: the node was shut down before it began.",
    ),
    _build_form(
        r"^VolumeAttachmentLimitExceeded\n",
        "the node has as many volumes as can be attached to it",
        "Run it again, so that it gets another node; or use fewer claims.",
    ),
    _build_form(
        r"^InvalidNodeInfo\n", "the node does not reach the API server of its cluster", BAD_NODE
    ),
    _build_form(
        r"^(?:AppArmor|PodOSNotSupported|PodOSSelectorNodeLabelDoesNotMatch|SysctlForbidden"
        r"|SupplementalGroupsPolicyNotSupported|InitContainerRestartPolicyForbidden"
        r"|PodLevelResources\w{1,20}|PodFeatureUnsupported)\n",
        "the node does not take such pods: {message}",
        _NOT_SUCH,
    ),
    _build_form(
        r"^(?:UnexpectedAdmissionError|UnknownReason|UnexpectedPredicateFailureType)\n",
        "{message}",
        BAD_NODE,
    ),
)


def describe_rejection(reason: str, message: str) -> tuple[str, str] | None:
    """Return why a node rejected a pod, and what would help; None where its reason is no such one.

    `reason` and `message` are those of the pod's status, bounded.
    """
    text = f"{reason}\n{message}"
    for form in _FORMS:
        if match := form.pattern.search(text):
            what, numbers = _describe_amounts(reason, message)
            pressure = match.groupdict().get("pressure") or ""
            words = form.describe(
                match,
                what=what,
                numbers=numbers,
                pressure=_PRESSURES.get(pressure, pressure),
                message=_strip_lead(message),
            )
            return words, form.help
    return None


def _strip_lead(message: str) -> str:
    return next(
        (message.removeprefix(lead) for lead in _LEADS if message.startswith(lead)), message
    )


def _describe_amounts(reason: str, message: str) -> tuple[str, str]:
    """Return what a node had too little of, and its numbers; "" without any."""
    amounts = _AMOUNTS.search(message)
    name = amounts["what"] if amounts else reason.removeprefix("OutOf")
    what = _RESOURCE_WORDS.get(name, f"little {clean_text(name, LONGEST_DETAIL)}")
    if amounts is None or not amounts["requested"]:
        return what, ""
    requested, used, capacity = (
        _format_amount(name, Decimal(amounts[each])) for each in ("requested", "used", "capacity")
    )
    return what, f"; the pod asks for {requested}, and {used} of {capacity} were in use"


def _format_amount(name: str, amount: Decimal) -> str:
    """Return an amount as a kubelet counts it: thousandths of cores, bytes, or devices."""
    if name == "cpu":
        return quantities.format_number(amount / 1000)
    if name in ("memory", "ephemeral-storage"):
        return quantities.format_memory(amount)
    return quantities.format_number(amount)

"""What schedulers say of nodes that do not take a pod: Kubernetes' and KAI's vocabulary. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workloads.diagnosis.hami_refusals import HAMI_FORMS
from workloads.diagnosis.refusal_forms import RefusalForm, RefusalSort, build_refusal_form
from workloads.kube_objects import clean_text

LONGEST_DETAIL = 160
"""Characters of a taint's, a resource's or the scheduler's own words."""
MOST_NAMED = 4
"""Reasons that a sentence names."""
_NODES = re.compile(
    r"\b(?:\d+/(?P<total>\d+)|all) nodes are (?:un)?available: ?(?P<reasons>.*)$", re.DOTALL
)
"""Volcano says "unavailable", and before it how many pods of the gang wait."""
_KAI = re.compile(r"no nodes with enough resources were found: ?(.*)$", re.DOTALL)
_PREEMPTION = re.compile(r"(?:^|[\s.])preemption: (.*)$", re.DOTALL)
_COUNTED = re.compile(r"^(\d+) (.+)$", re.DOTALL)
_OLD_TAINT = re.compile(r", that the pod didn't tolerate")


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why some of the nodes do not take a pod; `count` is None where that is not said.

    `words` follow "the node" or "2 nodes", and `words_of_many` where there are several.
    """

    count: int | None
    words: str
    words_of_many: str
    help: str
    sort: RefusalSort


@dataclass(frozen=True, slots=True)
class SchedulerAnswer:
    """A scheduler's answer for a pod, node by node; `total` is None where KAI gives no number."""

    total: int | None
    refusals: Sequence[NodeRefusal]
    is_preemption_useless: bool = False

    @property
    def knows_more(self) -> bool:
        """Whether a refusal is of a sort that the rows of nodes do not tell."""
        return any(each.sort in (RefusalSort.DEVICE, RefusalSort.OTHER) for each in self.refusals)

    def describe(self) -> str:
        """Return the refusals as a sentence without its full stop."""
        parts = [_describe_refusal(each, self.total) for each in self.refusals[:MOST_NAMED]]
        if left_out := len(self.refusals) - len(parts):
            parts.append(f"{left_out} more reason{'s' * (left_out > 1)}")
        match self.total:
            case None:
                lead = "No node takes it"
            case 1:
                lead = "The only node does not take it"
            case _:
                lead = f"None of {self.total} nodes takes it"
        return f"{lead}: {'; '.join(parts)}"

    def advise(self) -> str:
        """Return what would help, of the first refusals that only somebody can change."""
        ordered = sorted(self.refusals, key=lambda each: each.sort is RefusalSort.ROOM)
        helps = list(dict.fromkeys(self._choose_help(each) for each in ordered if each.help))[:2]
        has_devices = any(each.sort is RefusalSort.DEVICE for each in self.refusals)
        if self.is_preemption_useless and not has_devices:
            helps.append("Ending other work would not help.")
        return " ".join(helps)

    def _choose_help(self, refusal: NodeRefusal) -> str:
        """Return what helps; preemption is of no use where a node is too small even if empty."""
        is_too_small = self.is_preemption_useless and refusal.help == _ROOM_HELP
        return _TOO_SMALL_HELP if is_too_small else refusal.help


_ROOM_HELP = "It starts by itself as soon as there is room; smaller pods find some sooner."
_TOO_SMALL_HELP = "Ask for less for each pod: those nodes are too small for it even if empty."
_TAINT_HELP = (
    "Add a toleration for it, or ask the administrator of the cluster whether those nodes are "
    "meant for you."
)
_SPREAD_HELP = (
    "It starts when its other pods leave or more nodes come; or loosen the rule that spreads its "
    "pods."
)
_FORMS: Sequence[RefusalForm] = (
    # Tolerated, they would lead its pods to nodes that do not answer.
    build_refusal_form(
        r"had (?:untolerated )?taints?(?:\(s\))? ?\{(?P<detail>node\.kubernetes\.io/"
        r"(?:not-ready|unreachable|network-unavailable|(?:memory|disk|pid)-pressure))\b[^}]*\}",
        "has the taint {}, which it keeps while it is not well",
        "have the taint {}, which they keep while they are not well",
        "Those nodes take pods again when they are well: ask the administrator of the cluster.",
        RefusalSort.RULE,
    ),
    build_refusal_form(
        r"had (?:untolerated )?taints?(?:\(s\))? ?\{(?P<detail>(?:ToBeDeletedByClusterAutoscaler|"
        r"karpenter\.sh/(?:disrupted|unregistered)|node\.cloudprovider\.kubernetes\.io/"
        r"(?:uninitialized|shutdown)|[a-z0-9./-]{1,253}/agent-not-ready))\b[^}]*\}",
        "has the taint {}: it is being set up or removed",
        "have the taint {}: they are being set up or removed",
        "Those nodes take no pods until they are set up: nothing needs to be done.",
        RefusalSort.RULE,
    ),
    build_refusal_form(
        r"had (?:untolerated )?taints?(?:\(s\))? ?\{(?P<detail>[^}]*)\}|untolerated taint|"
        r"had taints that the pod didn't tolerate",
        "has the taint {}, which it does not tolerate",
        "have the taint {}, which it does not tolerate",
        _TAINT_HELP,
        RefusalSort.RULE,
    ),
    build_refusal_form(
        r"match (?:pod's )?node affinity|match node selector|didn't match scheduler-enforced",
        "does not have the labels that its node selector or node affinity asks for",
        "do not have the labels that its node selector or node affinity asks for",
        "Choose another node type, node selector or node pools, or none.",
        RefusalSort.RULE,
    ),
    # Before 1.20 one reason stands for both rules.
    build_refusal_form(
        r"match pod affinity/anti-affinity",
        "breaks a rule of what pods it has to be beside or away from (its pod affinity or "
        "anti-affinity)",
        "break a rule of what pods it has to be beside or away from (its pod affinity or "
        "anti-affinity)",
        "It starts when the pods of those rules come or leave; or ask for them as preferences.",
    ),
    build_refusal_form(
        r"existing pods'? anti-affinity",
        "runs pods that keep others away (their anti-affinity)",
        "run pods that keep others away (their anti-affinity)",
        "It starts when those pods leave, or when more nodes come.",
    ),
    build_refusal_form(
        r"pod anti-affinity",
        "runs pods that it has to keep away from (its pod anti-affinity)",
        "run pods that it has to keep away from (its pod anti-affinity)",
        "It starts when those pods leave or more nodes come; or ask for the rule as a preference.",
    ),
    build_refusal_form(
        r"pod affinity",
        "does not run the pods that it has to be beside (its pod affinity)",
        "do not run the pods that it has to be beside (its pod affinity)",
        "Start the pods that it has to be beside, or ask for the rule as a preference.",
    ),
    build_refusal_form(
        r"topology spread constraints \(missing required label\)",
        "lacks the label by which its pods are to be spread",
        "lack the label by which its pods are to be spread",
        "Spread by a label that the nodes have, or ask the administrator to label them.",
    ),
    build_refusal_form(
        r"topology spread",
        "would have too many of its pods beside the others (its topology spread)",
        "would have too many of its pods beside the others (its topology spread)",
        _SPREAD_HELP,
    ),
    build_refusal_form(
        r"node-?group\(s\) didn't have enough (?:resources?|of mig profile): "
        r"(?P<detail>[A-Za-z0-9./_-]+(?: cores)?)",
        "is in a group of its topology with too {} free",
        "are in groups of their topology with too {} free",
        "Ask for the topology as a preference, or for less: all of it has to fit into one group.",
    ),
    build_refusal_form(
        r"(?:was|were) unschedulable",
        "is closed to new pods",
        "are closed to new pods",
        "Ask the administrator of the cluster when they open again.",
        RefusalSort.RULE,
    ),
    build_refusal_form(
        r"volume node affinity conflict|match persistentvolume's node affinity|"
        r"no available volume zone",
        "cannot reach its volume, which is bound to another node or zone",
        "cannot reach its volume, which is bound to another node or zone",
        "Choose nodes in the volume's zone, or a claim whose volume can be reached from these.",
    ),
    build_refusal_form(
        r"non-existent pv",
        "cannot have its volume, which is not there although its claim is bound to it",
        "cannot have its volume, which is not there although its claim is bound to it",
        "Use another claim, or ask the administrator of the cluster for the volume.",
    ),
    build_refusal_form(
        r"max volume count",
        "has as many volumes as can be attached to it",
        "have as many volumes as can be attached to them",
        "It starts when other pods with volumes leave; or use fewer claims.",
    ),
    build_refusal_form(
        r"available persistent volumes to bind|enough free storage",
        "has no volume for its claim",
        "have no volume for its claim",
        "Ask the administrator for storage in that zone, or use another storage class.",
    ),
    build_refusal_form(
        r"free ports.{1,200}this can never fit",
        "has the host port once, and several of its pods ask for it",
        "have the host port once each, and more of its pods ask for it",
        "Use fewer workers, or not the host's network: on it each pod takes a port of a node for "
        "itself.",
    ),
    build_refusal_form(
        r"free ports",
        "has the host port in use that it asks for",
        "have the host port in use that it asks for",
        "It starts when the pod with that port leaves; or ask for no host port. Where another of "
        "its own pods has it, do not use the host's network: each pod needs a node for itself "
        "there.",
    ),
    build_refusal_form(
        r"too many pods|pod number exceeded",
        "runs as many pods as it may",
        "run as many pods as they may",
        "It starts when other pods leave; or ask the administrator to allow more pods on a node.",
    ),
    build_refusal_form(
        r"device class (?P<detail>[A-Za-z0-9./_-]+) does not exist",
        "lacks its devices: there is no device class {}",
        "lack its devices: there is no device class {}",
        "Correct the device class of its resource claim, or ask the administrator to create it.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"resource ?claim (?:[^\s/]{1,253}/)?(?P<detail>[^\s/]{1,253}) is in the process of being "
        r"allocated",
        "lacks its devices: those of its resource claim {} are being chosen",
        "lack its devices: those of its resource claim {} are being chosen",
        "The scheduler tries again by itself. If it lasts, ask the administrator of the cluster, "
        "or use a resource claim for each pod.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"waiting for resource driver",
        "lacks its devices: their driver has not given them out yet",
        "lack its devices: their driver has not given them out yet",
        "If this lasts, ask the administrator of the cluster whether the devices' driver works.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"CEL runtime error: (?P<detail>.{1,160})",
        "lacks its devices: a selector of its resource claim or device class fails ({})",
        "lack its devices: a selector of its resource claim or device class fails ({})",
        "Correct the selector: it names what the devices do not have.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r'resourceclaims?(?:\.resource\.k8s\.io)? "(?P<detail>[^"]{1,253})"(?: not found|$)',
        "lacks its devices: there is no resource claim {}",
        "lack its devices: there is no resource claim {}",
        "Create the claim in the project's namespace; one of a template Kubernetes makes itself.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"resourceclaim in use",
        "lacks its devices: others use its resource claim",
        "lack its devices: others use its resource claim",
        "It starts when those pods end; or use another resource claim.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"cannot allocate all claims|resourceclaim",
        "does not have the devices that its resource claim asks for",
        "do not have the devices that its resource claim asks for",
        "It starts when others give such devices back; check the resource claim against the device "
        "classes of the cluster, too.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"cannot align (?:pod|container)",
        "cannot give it its cores, memory and devices side by side (from one NUMA node)",
        "cannot give it their cores, memory and devices side by side (from one NUMA node)",
        "It starts when work on those nodes ends; or ask for less for each pod.",
    ),
    # KAI compares this with the memory of a whole GPU, not with what of it is free.
    build_refusal_form(
        r"have enough resources: GPU memory",
        "has no GPU with as much memory as it asks for",
        "have no GPU with as much memory as it asks for",
        "Ask for less GPU memory, or for other nodes: on these it can never start.",
    ),
    build_refusal_form(
        r"resource fit failed",
        "has too little free of something that it asks for",
        "have too little free of something that it asks for",
        _ROOM_HELP,
        RefusalSort.ROOM,
    ),
    build_refusal_form(
        r"(?:insufficient|have enough resources:|enough of mig profile:) "
        r"(?P<detail>[A-Za-z0-9./_-]+(?: cores| memory)?)(?P<numbers> \(.+\))?",
        "has too {} free",
        "have too {} free",
        _ROOM_HELP,
        RefusalSort.ROOM,
    ),
    *HAMI_FORMS,
)
_RESOURCE_WORDS = {
    "nvidia.com/gpu": "few GPUs",
    "GPUs": "few GPUs",
    "cpu": "few CPU cores",
    "CPU cores": "few CPU cores",
    "ephemeral-storage": "little disk space",
}
_IN_ROWS = frozenset({"nvidia.com/gpu", "GPUs", "cpu", "CPU cores", "memory"})
"""Amounts that the rows of nodes have, too."""
_NO_REASONS = re.compile(
    r"still not schedulable|no new claims to deallocate|preemption is not helpful|"
    r"no preemption victims",
    re.IGNORECASE,
)
"""What schedulers add to their reasons, of which it is none."""


def parse_scheduler_answer(message: str) -> SchedulerAnswer | None:
    """Parse what a scheduler says of the nodes; None where nothing in it is known."""
    text = _OLD_TAINT.sub("", message)
    useless = False
    if preemption := _PREEMPTION.search(text):
        useless = "not helpful" in preemption[1] and "No preemption victims" not in preemption[1]
        text = text[: preemption.start()]
    total: int | None = None
    is_by_node = True
    if nodes := _NODES.search(text):
        total, text = int(nodes["total"]) if nodes["total"] else None, nodes["reasons"]
    elif kai := _KAI.search(text):
        text = kai[1]
    else:
        is_by_node = False
    parts = _split_reasons(text)
    refusals = [
        each
        for part in parts
        if (each := _parse_reason(part) or (_keep_reason(part) if is_by_node else None)) is not None
    ]
    if not refusals and total is not None:
        refusals = _keep_all(parts)
    return SchedulerAnswer(total, refusals, useless) if refusals else None


def advise_about_taint(key: str) -> str:
    """Return what helps against a taint of a node, by the taint's key."""
    refusal = _parse_reason(f"had untolerated taint {{{key}: }}")
    return refusal.help if refusal is not None else _TAINT_HELP


def _split_reasons(text: str) -> list[str]:
    """Split at commas and full stops that are in no bracket."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth = max(0, depth - 1)
        elif depth == 0 and (char == "," or (char == "." and text[index + 1 : index + 2] in " \n")):
            parts.append(text[start:index])
            start = index + 1
    return [part.strip(" .\n") for part in (*parts, text[start:]) if part.strip(" .\n")]


def _parse_reason(part: str) -> NodeRefusal | None:
    counted = _COUNTED.match(part)
    count, text = (int(counted[1]), counted[2]) if counted else (None, part)
    for form in _FORMS:
        match = form.pattern.search(text)
        if match is None:
            continue
        raw = (match.groupdict().get("detail") or "").strip()
        numbers = match.groupdict().get("numbers") or ""
        is_amount = "too {}" in form.words
        if is_amount:
            detail = _RESOURCE_WORDS.get(raw, f"little {raw}")
        else:
            detail = _describe_taint(raw) if "the taint {}" in form.words else raw
        detail = clean_text(detail, LONGEST_DETAIL)
        is_other = form.sort is RefusalSort.ROOM and raw != "" and raw not in _IN_ROWS
        return NodeRefusal(
            count,
            _fill_words(form.words, detail) + numbers,
            _fill_words(form.words_of_many, detail) + numbers,
            "Ask for less: it can never fit." if "never fit" in numbers else form.help,
            RefusalSort.OTHER if is_other else form.sort,
        )
    return None


def _keep_reason(part: str) -> NodeRefusal | None:
    """Return a reason of no known form in the scheduler's own words; None if it has no count.

    Without it a sentence would name the other reasons as if they were all.
    """
    counted = _COUNTED.match(part)
    if counted is None or _NO_REASONS.search(part):
        return None
    return _quote_reason(int(counted[1]), counted[2])


def _keep_all(parts: Sequence[str]) -> list[NodeRefusal]:
    """Return what rules out all nodes at once, for which Kubernetes gives no counts."""
    words = ", ".join(part for part in parts if not _NO_REASONS.search(part))
    return [_quote_reason(None, words)] if words else []


def _quote_reason(count: int | None, words: str) -> NodeRefusal:
    own_words = clean_text(words, LONGEST_DETAIL)
    return NodeRefusal(
        count,
        f"is ruled out by the scheduler: {own_words}",
        f"are ruled out by the scheduler: {own_words}",
        "Ask the administrator of the cluster what the scheduler's words mean.",
        RefusalSort.OTHER,
    )


def _describe_taint(raw: str) -> str:
    key, separator, value = raw.partition(":")
    return f"{key.strip()}={value.strip()}" if separator and value.strip() else key.strip()


def _fill_words(words: str, detail: str) -> str:
    return words.replace("{}", detail) if detail else words.replace(" the taint {}", " a taint")


def _describe_refusal(refusal: NodeRefusal, total: int | None) -> str:
    if total == 1:
        return f"it {refusal.words}"
    if refusal.count is None:
        # Kubernetes gives no count to what rules out all nodes, KAI none to some of its reasons.
        return f"{'some' if total is None else 'all'} {refusal.words_of_many}"
    return f"{refusal.count} {refusal.words if refusal.count == 1 else refusal.words_of_many}"

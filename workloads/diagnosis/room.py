"""What a node offers and how much of it is free: the numbers behind "will it fit?" and "why does it
wait?".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from workloads import quantities
from workloads.observed import GPU, Object, gpus_of, holds, listed, part, requested

NONE = Decimal(0)


@dataclass(frozen=True, slots=True)
class Amounts:
    """GPUs in devices, CPU in cores, memory in bytes."""

    gpus: Decimal = NONE
    cpu: Decimal = NONE
    memory: Decimal = NONE

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.gpus + other.gpus, self.cpu + other.cpu, self.memory + other.memory)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            max(NONE, self.gpus - other.gpus),
            max(NONE, self.cpu - other.cpu),
            max(NONE, self.memory - other.memory),
        )

    def fits(self, room: "Amounts") -> bool:
        return self.gpus <= room.gpus and self.cpu <= room.cpu and self.memory <= room.memory


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """One node as last seen. `usable` is whether new pods may come: it is ready and not cordoned.
    `taints` are as the API has them.
    """

    name: str
    total: Amounts
    free: Amounts
    usable: bool = True
    labels: Mapping[str, str] | None = None
    taints: Sequence[Object] = ()

    @classmethod
    def of(cls, node: Object, pods: Iterable[Object]) -> "NodeRoom":
        """From a Node and all unfinished pods on it, whoever's they are."""
        offered = part(node, "status", "allocatable") or part(node, "status", "capacity")
        total = Amounts(
            *(quantities.read(offered.get(name, "0")) for name in (GPU, "cpu", "memory"))
        )
        usable = holds(node, "Ready") is not None and not part(node, "spec").get("unschedulable")
        labels = {str(key): str(value) for key, value in part(node, "metadata", "labels").items()}
        name, taints = str(part(node, "metadata").get("name") or ""), listed(node, "spec", "taints")
        return cls(name, total, total - total_of(map(demand, pods)), usable, labels, taints)


def demand(pod: Object) -> Amounts:
    """What one pod asks for; GPU memory of shared devices is not counted, for the part of a device
    it makes is not known.
    """
    return Amounts(gpus_of(pod)[0] or NONE, requested(pod, "cpu"), requested(pod, "memory"))


def total_of(amounts: Iterable[Amounts]) -> Amounts:
    return sum(amounts, Amounts())


def matches(node: NodeRoom, pod_spec: Object) -> bool:
    """Whether a node has the labels that a pod asks for: by its nodeSelector, and by one of the
    terms of its required node affinity.
    """
    labels = node.labels or {}
    if any(labels.get(key) != value for key, value in part(pod_spec, "nodeSelector").items()):
        return False
    required = part(
        pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = listed(required, "nodeSelectorTerms")
    return not terms or any(
        all(_holds(labels, each) for each in listed(term, "matchExpressions")) for term in terms
    )


def repels(node: NodeRoom, pod_spec: Object) -> Object | None:
    """The first taint of a node that keeps a pod away, for it does not tolerate it; None where
    there is none.
    """
    tolerations = listed(pod_spec, "tolerations")
    hard = (taint for taint in node.taints if taint.get("effect") in ("NoSchedule", "NoExecute"))
    return next(
        (taint for taint in hard if not any(_tolerates(each, taint) for each in tolerations)), None
    )


def open_to(nodes: Sequence[NodeRoom], pod_spec: Object) -> Sequence[NodeRoom]:
    """The usable nodes where a pod may be, as far as labels and taints go."""
    return [
        node
        for node in nodes
        if node.usable and matches(node, pod_spec) and repels(node, pod_spec) is None
    ]


def _holds(labels: Mapping[str, str], expression: Object) -> bool:
    key, values = str(expression.get("key")), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    # Comparisons of numbers: nothing of ours asks for them.
    return True


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return (toleration.get("key"), toleration.get("value") or "") == (
        taint.get("key"),
        taint.get("value") or "",
    )

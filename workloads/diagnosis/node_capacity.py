"""What a node has in total and free: the numbers behind "will it fit?" and "why does it wait?"."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from workloads import quantities
from workloads.kube_objects import (
    GPU,
    Object,
    find_true_condition,
    nested_dict,
    nested_list,
    parse_gpu_request,
    sum_container_requests,
)

NONE = Decimal(0)

NodeHolders = Mapping[str, Mapping[str, Decimal]]
"""The GPUs that other projects hold, by the names of node and project.

Those of projects that may not be named are together under "".
"""


@dataclass(frozen=True, slots=True)
class ResourceAmounts:
    """GPUs in devices, CPU in cores, memory in bytes."""

    gpus: Decimal = NONE
    cpu: Decimal = NONE
    memory: Decimal = NONE

    def __add__(self, other: "ResourceAmounts") -> "ResourceAmounts":
        return ResourceAmounts(
            self.gpus + other.gpus, self.cpu + other.cpu, self.memory + other.memory
        )

    def __sub__(self, other: "ResourceAmounts") -> "ResourceAmounts":
        return ResourceAmounts(
            max(NONE, self.gpus - other.gpus),
            max(NONE, self.cpu - other.cpu),
            max(NONE, self.memory - other.memory),
        )

    def times(self, count: int) -> "ResourceAmounts":
        return ResourceAmounts(self.gpus * count, self.cpu * count, self.memory * count)

    def fits_in(self, free: "ResourceAmounts") -> bool:
        return self.gpus <= free.gpus and self.cpu <= free.cpu and self.memory <= free.memory


@dataclass(frozen=True, slots=True)
class NodeLoss:
    """Since when a node is not ready, as far as that is known; `is_silent` where it says nothing.

    A node that is not ready by its own word is not silent.
    """

    since: datetime | None
    is_silent: bool


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """One node as last seen.

    `is_usable` is whether new pods may come: it is ready and not cordoned. `taints` are as the API
    has them. `loss` is there where it is not ready.
    """

    name: str
    total: ResourceAmounts
    free: ResourceAmounts
    is_usable: bool = True
    labels: Mapping[str, str] | None = None
    taints: Sequence[Object] = ()
    loss: NodeLoss | None = None

    @classmethod
    def from_node(cls, node: Object, pods: Iterable[Object]) -> "NodeCapacity":
        """Build it from a Node and all unfinished pods on it, whoever's they are."""
        offered = nested_dict(node, "status", "allocatable") or nested_dict(
            node, "status", "capacity"
        )
        total = ResourceAmounts(
            *(quantities.parse_or_zero(offered.get(name, "0")) for name in (GPU, "cpu", "memory"))
        )
        usable = find_true_condition(node, "Ready") is not None and not nested_dict(
            node, "spec"
        ).get("unschedulable")
        labels = {
            str(key): str(value) for key, value in nested_dict(node, "metadata", "labels").items()
        }
        name, taints = (
            str(nested_dict(node, "metadata").get("name") or ""),
            nested_list(node, "spec", "taints"),
        )
        return cls(
            name, total, total - sum_amounts(map(calculate_demand, pods)), usable, labels, taints
        )


def calculate_demand(pod: Object) -> ResourceAmounts:
    """Return what one pod requests.

    GPU memory of shared devices is not counted: what part of a device it is, is unknown.
    """
    return ResourceAmounts(
        parse_gpu_request(pod)[0] or NONE,
        sum_container_requests(pod, "cpu"),
        sum_container_requests(pod, "memory"),
    )


def sum_amounts(amounts: Iterable[ResourceAmounts]) -> ResourceAmounts:
    return sum(amounts, ResourceAmounts())


def has_wanted_labels(node: NodeCapacity, pod_spec: Object) -> bool:
    """Return whether a node has the labels that a pod requires.

    By its nodeSelector, and by one of the terms of its required node affinity.
    """
    labels = node.labels or {}
    if any(
        labels.get(key) != value for key, value in nested_dict(pod_spec, "nodeSelector").items()
    ):
        return False
    required = nested_dict(
        pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = nested_list(required, "nodeSelectorTerms")
    return not terms or any(
        all(_matches_expression(labels, each) for each in nested_list(term, "matchExpressions"))
        for term in terms
    )


def find_repelling_taint(node: NodeCapacity, pod_spec: Object) -> Object | None:
    """Return the first taint of a node that the pod does not tolerate; None without one."""
    tolerations = nested_list(pod_spec, "tolerations")
    hard = (taint for taint in node.taints if taint.get("effect") in ("NoSchedule", "NoExecute"))
    return next(
        (taint for taint in hard if not any(_is_tolerated(each, taint) for each in tolerations)),
        None,
    )


def filter_open_nodes(nodes: Sequence[NodeCapacity], pod_spec: Object) -> Sequence[NodeCapacity]:
    """Return the usable nodes where a pod may run, by labels and taints."""
    return [
        node
        for node in nodes
        if node.is_usable
        and has_wanted_labels(node, pod_spec)
        and find_repelling_taint(node, pod_spec) is None
    ]


def _matches_expression(labels: Mapping[str, str], expression: Object) -> bool:
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
    # Gt and Lt compare numbers; none of our objects uses them.
    return True


def _is_tolerated(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return (toleration.get("key"), toleration.get("value") or "") == (
        taint.get("key"),
        taint.get("value") or "",
    )

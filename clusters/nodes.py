"""What a cluster's nodes offer and what pods of others use there, read from two lists with decoders
of few fields.
"""

import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import limit_text
from clusters.kube.frames import Page
from clusters.kube.resources import NODES, PODS
from console.texts import is_dns_subdomain

GPU = "nvidia.com/gpu"
GPU_TYPE_LABEL = "nvidia.com/gpu.product"
GPU_MEMORY_LABEL = "nvidia.com/gpu.memory"
"""The label that says how many MiB one of the node's devices has."""
RESERVATION_NAMESPACE = "kai-resource-reservation"
"""The namespace in which KAI reserves whole devices for pods that share them. The sharing pods are
counted, and not these.
"""

FOREIGN_SELECTOR = "app.kubernetes.io/managed-by!=muster"
PLACED_SELECTOR = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
"""The prefix of the labels that name a node's roles."""

MAX_ENTRIES = 50
"""Conditions and taints of one node that are kept."""
MAX_LABELS = 64
CHOOSING_LABELS = ("kubernetes.io/hostname", "kai.scheduler/", "nvidia.com/")
"""How the keys of labels begin by which pods choose nodes: they are kept before others."""
MAX_LABEL = 317
"""Characters of a label's key: a prefix of 253, a slash, a name of 63."""

_QUANTITY = re.compile(
    r"\+?([0-9]{1,20}\.?[0-9]{0,12}|\.[0-9]{1,12})(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?",
    re.ASCII,
)
_DECIMAL_EXPONENTS = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MAX_QUANTITY = Decimal(2**62)

Quantities = dict[str, Any]


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    lastTransitionTime: str | None = None  # noqa: N815 - the API's spelling


class _Taint(msgspec.Struct):
    key: str = ""
    value: str = ""
    effect: str = ""


class _NodeSpec(msgspec.Struct):
    unschedulable: bool = False
    taints: list[_Taint] | None = None


class _Address(msgspec.Struct):
    type: str = ""
    address: str = ""


class _NodeInfo(msgspec.Struct):
    kubeletVersion: str = ""  # noqa: N815 - the API's spelling
    osImage: str = ""  # noqa: N815
    kernelVersion: str = ""  # noqa: N815
    containerRuntimeVersion: str = ""  # noqa: N815
    architecture: str = ""


class _NodeStatus(msgspec.Struct):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[_Condition] | None = None
    addresses: list[_Address] | None = None
    nodeInfo: _NodeInfo = msgspec.field(default_factory=_NodeInfo)  # noqa: N815


class _Node(msgspec.Struct):
    metadata: _Meta
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _Resources(msgspec.Struct):
    requests: Quantities | None = None
    limits: Quantities | None = None


class _Container(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _PodSpec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 - the API's spelling
    containers: list[_Container] = []


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec


_node_decoder = msgspec.json.Decoder(_Node)
_pod_decoder = msgspec.json.Decoder(_Pod)


@dataclass(slots=True)
class NodeResources:
    """GPUs in devices, CPU in cores and memory in bytes, and the number of pods."""

    gpus: Decimal = Decimal(0)
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)
    pods: int = 0


@dataclass(slots=True)
class ObservedNode:
    """One node as the cluster reports it; texts and labels are limited. `trouble` is why it is not
    well, "" when it is.
    """

    name: str
    is_ready: bool
    is_schedulable: bool
    trouble: str
    gpu_type: str
    allocatable: NodeResources
    labels: dict[str, str]
    device_memory: Decimal
    """MiB of one of its devices; 0 where it is unknown."""
    gpus_unhealthy: Decimal = Decimal(0)
    pod_capacity: int = 0
    """How many pods it takes."""
    conditions: list[dict[str, str]] = field(default_factory=list)
    taints: list[dict[str, str]] = field(default_factory=list)
    roles: str = ""
    address: str = ""
    system_info: dict[str, str] = field(default_factory=dict)
    foreign_use: NodeResources = field(default_factory=NodeResources)


@dataclass(frozen=True, slots=True)
class NodeSurvey:
    """All nodes there are; of those in `unreadable` only the names are known."""

    nodes: list[ObservedNode]
    unreadable: frozenset[str]


def fetch_survey(client: Client, pool_keys: Collection[str] = ()) -> NodeSurvey:
    """Return the nodes, with what pods that Muster did not make use on them. Raises KubeError.

    Of a node with too many labels those with `pool_keys` are kept before others.
    """
    nodes: dict[str, ObservedNode] = {}
    unreadable: set[str] = set()
    for page in calls.list_all(client, NODES, decoder=_node_decoder):
        if page.first:
            nodes, unreadable = {}, set()
        # Names are checked: a server that is not Kubernetes may answer anything.
        nodes |= {
            node.metadata.name: _build_observed_node(node, pool_keys)
            for node in page.items
            if is_dns_subdomain(node.metadata.name)
        }
        unreadable |= {each.name for each in page.unreadable}
    for name, use in _fetch_foreign_use(client, nodes).items():
        nodes[name].foreign_use = use
    return NodeSurvey(list(nodes.values()), frozenset(unreadable))


def fetch_gpu_presence(client: Client, deadline: float) -> list[bool]:
    """Return of each node whether it offers GPUs. Raises KubeError.

    No page is fetched after `deadline`, a moment of the monotonic clock.
    """
    presence: list[bool] = []
    for page in calls.list_all(client, NODES, decoder=_node_decoder):
        presence = ([] if page.first else presence) + [
            parse_quantity((node.status.allocatable or {}).get(GPU, 0)) > 0 for node in page.items
        ]
        if time.monotonic() > deadline:
            break
    return presence


def parse_quantity(value: object) -> Decimal:
    """Parse a Kubernetes quantity into its base unit; 0 for a text that is none."""
    match = _QUANTITY.fullmatch(str(value)[:40])
    if match is None:
        return Decimal(0)
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY_SUFFIXES:
        amount = number * Decimal(1024 ** (_BINARY_SUFFIXES.index(suffix) + 1))
    else:
        amount = number.scaleb(
            _DECIMAL_EXPONENTS[suffix] if suffix in _DECIMAL_EXPONENTS else int(suffix[1:])
        )
    return min(amount, _MAX_QUANTITY)


def _build_observed_node(node: _Node, pool_keys: Collection[str]) -> ObservedNode:
    labels = node.metadata.labels or {}
    allocatable = node.status.allocatable or {}
    conditions = {each.type: each for each in node.status.conditions or ()}
    ready = conditions.pop("Ready", None)
    is_ready = ready is not None and ready.status == "True"
    troubles = [] if is_ready or ready is None else [ready]
    # All of a node's other conditions are troubles when they hold.
    troubles += [each for each in conditions.values() if each.status == "True"]
    first_labels = sorted(
        labels.items(),
        key=lambda label: (
            label[0] not in pool_keys,
            not label[0].startswith(CHOOSING_LABELS),
            label,
        ),
    )[:MAX_LABELS]
    gpus = parse_quantity(allocatable.get(GPU, 0))
    return ObservedNode(
        name=node.metadata.name,
        is_ready=is_ready,
        is_schedulable=not node.spec.unschedulable,
        trouble=limit_text(
            "; ".join(
                f"{each.type}: {each.message or each.reason or each.status}" for each in troubles
            )
        ),
        gpu_type=limit_text(labels.get(GPU_TYPE_LABEL, ""))[:128],
        allocatable=NodeResources(
            gpus,
            parse_quantity(allocatable.get("cpu", 0)),
            parse_quantity(allocatable.get("memory", 0)),
        ),
        labels={limit_text(key)[:MAX_LABEL]: limit_text(value)[:63] for key, value in first_labels},
        device_memory=parse_quantity(labels.get(GPU_MEMORY_LABEL, 0)),
        gpus_unhealthy=max(
            Decimal(0), parse_quantity((node.status.capacity or {}).get(GPU, 0)) - gpus
        ),
        pod_capacity=int(min(parse_quantity(allocatable.get("pods", 0)), Decimal(10**6))),
        conditions=[
            _serialize_condition(each) for each in (node.status.conditions or ())[:MAX_ENTRIES]
        ],
        taints=[
            {
                "key": limit_text(each.key)[:MAX_LABEL],
                "value": limit_text(each.value)[:63],
                "effect": limit_text(each.effect)[:32],
            }
            for each in (node.spec.taints or ())[:MAX_ENTRIES]
        ],
        roles=limit_text(
            ", ".join(
                sorted(
                    key.removeprefix(ROLE_LABEL_PREFIX)
                    for key in labels
                    if key.startswith(ROLE_LABEL_PREFIX)
                )
            )
        )[:200],
        address=limit_text(
            next(
                (each.address for each in node.status.addresses or () if each.type == "InternalIP"),
                "",
            )
        )[:64],
        system_info={
            name: limit_text(value)[:120]
            for name, value in _describe_system(node.status.nodeInfo)
            if value
        },
    )


def _serialize_condition(condition: _Condition) -> dict[str, str]:
    return {
        "type": limit_text(condition.type)[:64],
        "status": limit_text(condition.status)[:16],
        "reason": limit_text(condition.reason)[:128],
        "message": limit_text(condition.message),
        "since": limit_text(condition.lastTransitionTime or "")[:40],
    }


def _describe_system(info: _NodeInfo) -> list[tuple[str, str]]:
    return [
        ("Kubelet", info.kubeletVersion),
        ("Operating system", info.osImage),
        ("Kernel", info.kernelVersion),
        ("Container runtime", info.containerRuntimeVersion),
        ("Architecture", info.architecture),
    ]


def _fetch_foreign_use(client: Client, nodes: dict[str, ObservedNode]) -> dict[str, NodeResources]:
    """Return what pods of others use on each node: their requests, and the parts of GPUs that they
    share.
    """
    use_by_node: dict[str, NodeResources] = {}
    for page in calls.list_all(
        client,
        PODS,
        labels=FOREIGN_SELECTOR,
        fields=PLACED_SELECTOR,
        decoder=_pod_decoder,
        expired="go on",
    ):
        if page.first:
            use_by_node = {}
        for pod in _without_reservations(page):
            node = nodes.get(pod.spec.nodeName)
            if node is None:
                continue
            use = use_by_node.setdefault(pod.spec.nodeName, NodeResources())
            # An annotation may name any number, and a node gives no more than it has.
            devices = _count_gpus(pod, node.device_memory)
            use.gpus += min(devices, node.allocatable.gpus + node.gpus_unhealthy)
            use.cpu += _sum_requests(pod, "cpu")
            use.memory += _sum_requests(pod, "memory")
            use.pods += 1
    return use_by_node


def _without_reservations(page: Page[_Pod]) -> Iterator[_Pod]:
    return (pod for pod in page.items if pod.metadata.namespace != RESERVATION_NAMESPACE)


def _count_gpus(pod: _Pod, device_memory: Decimal) -> Decimal:
    """Return the devices that a pod uses, in parts where it shares them by KAI's annotations.

    `device_memory` is in MiB, 0 where it is unknown.
    """
    annotations = pod.metadata.annotations or {}
    devices = parse_quantity(annotations.get("gpu-fraction-num-devices", 1))
    if "gpu-fraction" in annotations:
        return parse_quantity(annotations["gpu-fraction"]) * devices
    if "gpu-memory" in annotations and device_memory:
        return min(Decimal(1), parse_quantity(annotations["gpu-memory"]) / device_memory) * devices
    return _sum_requests(pod, GPU)


def _sum_requests(pod: _Pod, resource: str) -> Decimal:
    """Return what a pod's containers request together; a limit without a request is a request."""
    total = Decimal(0)
    for container in pod.spec.containers:
        limit = (container.resources.limits or {}).get(resource, 0)
        total += parse_quantity((container.resources.requests or {}).get(resource, limit))
    return total

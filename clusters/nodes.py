"""What a cluster's nodes offer and what pods that are not ours hold there, read from two lists with
decoders of few fields.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import bounded
from clusters.kube.frames import Page
from clusters.kube.resources import NODES, PODS

GPU = "nvidia.com/gpu"
GPU_TYPE = "nvidia.com/gpu.product"
GPU_MEMORY = "nvidia.com/gpu.memory"
"""The label that says how many MiB one of the node's devices has."""
RESERVATIONS = "kai-resource-reservation"
"""The namespace in which KAI holds whole devices for those who share them: the sharers are counted,
not these.
"""

FOREIGN = "app.kubernetes.io/managed-by!=muster"
PLACED = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

ROLE = "node-role.kubernetes.io/"
"""How the labels begin that say what a node is for."""

MOST = 50
"""Conditions and taints of one node that are kept."""
MAX_LABELS = 64
MAX_LABEL = 317
"""Characters of a label's key: a prefix of 253, a slash, a name of 63."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_QUANTITY = re.compile(
    r"\+?([0-9]{1,20}\.?[0-9]{0,12}|\.[0-9]{1,12})(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MOST = Decimal(2**62)

Amounts = dict[str, Any]


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
    capacity: Amounts | None = None
    allocatable: Amounts | None = None
    conditions: list[_Condition] | None = None
    addresses: list[_Address] | None = None
    nodeInfo: _NodeInfo = msgspec.field(default_factory=_NodeInfo)  # noqa: N815


class _Node(msgspec.Struct):
    metadata: _Meta
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _Resources(msgspec.Struct):
    requests: Amounts | None = None
    limits: Amounts | None = None


class _Container(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _PodSpec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 - the API's spelling
    containers: list[_Container] = []


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec


_nodes = msgspec.json.Decoder(_Node)
_pods = msgspec.json.Decoder(_Pod)


@dataclass(slots=True)
class Held:
    """Devices, cores and bytes, and by how many pods."""

    gpus: Decimal = Decimal(0)
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)
    pods: int = 0


@dataclass(slots=True)
class Seen:
    """One node as the cluster shows it; texts and labels are bounded. `trouble` is why it is not
    well, "" when it is.
    """

    name: str
    is_ready: bool
    is_schedulable: bool
    trouble: str
    gpu_type: str
    offers: Held
    labels: dict[str, str]
    device_memory: Decimal
    """MiB of one of its devices; 0 where it does not say."""
    gpus_unhealthy: Decimal = Decimal(0)
    pods: int = 0
    """How many it takes."""
    conditions: list[dict[str, str]] = field(default_factory=list)
    taints: list[dict[str, str]] = field(default_factory=list)
    roles: str = ""
    address: str = ""
    about: dict[str, str] = field(default_factory=dict)
    used: Held = field(default_factory=Held)


@dataclass(frozen=True, slots=True)
class Survey:
    """All nodes there are; of those in `unreadable` only the names are known."""

    nodes: list[Seen]
    unreadable: frozenset[str]


def survey(client: Client) -> Survey:
    """The nodes, with what pods that Muster did not make hold on them. Raises KubeError."""
    found: dict[str, Seen] = {}
    unreadable: set[str] = set()
    for page in calls.list_all(client, NODES, decoder=_nodes):
        if page.first:
            found, unreadable = {}, set()
        # By any other name it is no node: a server that is none of Kubernetes' may say anything.
        found |= {
            node.metadata.name: _seen(node)
            for node in page.items
            if _NAME.fullmatch(node.metadata.name)
        }
        unreadable |= {each.name for each in page.unreadable}
    for name, used in _foreign(client, found).items():
        found[name].used = used
    return Survey(list(found.values()), frozenset(unreadable))


def offering(client: Client, until: float) -> list[bool]:
    """Of each node whether it offers GPUs. After the moment `until` of the monotonic clock no page
    is asked for. Raises KubeError.
    """
    found: list[bool] = []
    for page in calls.list_all(client, NODES, decoder=_nodes):
        found = ([] if page.first else found) + [
            quantity((node.status.allocatable or {}).get(GPU, 0)) > 0 for node in page.items
        ]
        if time.monotonic() > until:
            break
    return found


def quantity(value: object) -> Decimal:
    """A Kubernetes quantity in its base unit; 0 for what is none."""
    match = _QUANTITY.fullmatch(str(value)[:40])
    if match is None:
        return Decimal(0)
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        amount = number * Decimal(1024 ** (_BINARY.index(suffix) + 1))
    else:
        amount = number.scaleb(_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))
    return min(amount, _MOST)


def _seen(node: _Node) -> Seen:
    labels = node.metadata.labels or {}
    offers = node.status.allocatable or {}
    conditions = {each.type: each for each in node.status.conditions or ()}
    ready = conditions.pop("Ready", None)
    is_ready = ready is not None and ready.status == "True"
    told = [] if is_ready or ready is None else [ready]
    # All of a node's other conditions are troubles when they hold.
    told += [each for each in conditions.values() if each.status == "True"]
    kept = sorted(labels.items())[:MAX_LABELS]
    gpus = quantity(offers.get(GPU, 0))
    return Seen(
        name=node.metadata.name,
        is_ready=is_ready,
        is_schedulable=not node.spec.unschedulable,
        trouble=bounded(
            "; ".join(f"{each.type}: {each.message or each.reason or each.status}" for each in told)
        ),
        gpu_type=bounded(labels.get(GPU_TYPE, ""))[:128],
        offers=Held(gpus, quantity(offers.get("cpu", 0)), quantity(offers.get("memory", 0))),
        labels={bounded(key)[:MAX_LABEL]: bounded(value)[:63] for key, value in kept},
        device_memory=quantity(labels.get(GPU_MEMORY, 0)),
        gpus_unhealthy=max(Decimal(0), quantity((node.status.capacity or {}).get(GPU, 0)) - gpus),
        pods=int(min(quantity(offers.get("pods", 0)), Decimal(10**6))),
        conditions=[_told(each) for each in (node.status.conditions or ())[:MOST]],
        taints=[
            {
                "key": bounded(each.key)[:MAX_LABEL],
                "value": bounded(each.value)[:63],
                "effect": bounded(each.effect)[:32],
            }
            for each in (node.spec.taints or ())[:MOST]
        ],
        roles=bounded(
            ", ".join(sorted(key.removeprefix(ROLE) for key in labels if key.startswith(ROLE)))
        )[:200],
        address=bounded(
            next(
                (each.address for each in node.status.addresses or () if each.type == "InternalIP"),
                "",
            )
        )[:64],
        about={name: bounded(value)[:120] for name, value in _about(node.status.nodeInfo) if value},
    )


def _told(condition: _Condition) -> dict[str, str]:
    return {
        "type": bounded(condition.type)[:64],
        "status": bounded(condition.status)[:16],
        "reason": bounded(condition.reason)[:128],
        "message": bounded(condition.message),
        "since": bounded(condition.lastTransitionTime or "")[:40],
    }


def _about(info: _NodeInfo) -> list[tuple[str, str]]:
    return [
        ("Kubelet", info.kubeletVersion),
        ("Operating system", info.osImage),
        ("Kernel", info.kernelVersion),
        ("Container runtime", info.containerRuntimeVersion),
        ("Architecture", info.architecture),
    ]


def _foreign(client: Client, nodes: dict[str, Seen]) -> dict[str, Held]:
    """What pods of others hold on each node: their requests, and of GPUs what they share."""
    held: dict[str, Held] = {}
    for page in calls.list_all(
        client, PODS, labels=FOREIGN, fields=PLACED, decoder=_pods, expired="go on"
    ):
        if page.first:
            held = {}
        for pod in _counted(page):
            node = nodes.get(pod.spec.nodeName)
            if node is None:
                continue
            sum_ = held.setdefault(pod.spec.nodeName, Held())
            sum_.gpus += _gpus(pod, node.device_memory)
            sum_.cpu += _requested(pod, "cpu")
            sum_.memory += _requested(pod, "memory")
            sum_.pods += 1
    return held


def _counted(page: Page[_Pod]) -> Iterator[_Pod]:
    return (pod for pod in page.items if pod.metadata.namespace != RESERVATIONS)


def _gpus(pod: _Pod, device_memory: Decimal) -> Decimal:
    """Devices that a pod holds, in parts where it shares them by KAI's annotations. `device_memory`
    is MiB, 0 where it is not known.
    """
    asked = pod.metadata.annotations or {}
    devices = quantity(asked.get("gpu-fraction-num-devices", 1))
    if "gpu-fraction" in asked:
        return quantity(asked["gpu-fraction"]) * devices
    if "gpu-memory" in asked and device_memory:
        return min(Decimal(1), quantity(asked["gpu-memory"]) / device_memory) * devices
    return _requested(pod, GPU)


def _requested(pod: _Pod, resource: str) -> Decimal:
    """What a pod's containers ask for together; a limit without a request is a request."""
    total = Decimal(0)
    for container in pod.spec.containers:
        limit = (container.resources.limits or {}).get(resource, 0)
        total += quantity((container.resources.requests or {}).get(resource, limit))
    return total

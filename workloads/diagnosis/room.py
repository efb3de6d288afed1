"""What a node offers and how much of it is free: the numbers behind "will it fit?" and "why does it wait?"."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from workloads import quantities
from workloads.observed import GPU, Object, gpus_of, holds, part, requested

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
        return Amounts(max(NONE, self.gpus - other.gpus), max(NONE, self.cpu - other.cpu), max(NONE, self.memory - other.memory))

    def fits(self, room: "Amounts") -> bool:
        return self.gpus <= room.gpus and self.cpu <= room.cpu and self.memory <= room.memory


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """One node as last seen. `usable` is whether new pods may come: it is ready and not cordoned."""

    name: str
    total: Amounts
    free: Amounts
    usable: bool = True
    labels: Mapping[str, str] | None = None

    @classmethod
    def of(cls, node: Object, pods: Iterable[Object]) -> "NodeRoom":
        """From a Node and all unfinished pods on it, whoever's they are."""
        offered = part(node, "status", "allocatable") or part(node, "status", "capacity")
        total = Amounts(*(quantities.read(offered.get(name, "0")) for name in (GPU, "cpu", "memory")))
        usable = holds(node, "Ready") is not None and not part(node, "spec").get("unschedulable")
        labels = {str(key): str(value) for key, value in part(node, "metadata", "labels").items()}
        return cls(str(part(node, "metadata").get("name") or ""), total, total - total_of(map(demand, pods)), usable, labels)


def demand(pod: Object) -> Amounts:
    """What one pod asks for; GPU memory of shared devices is not counted, for the part of a device it makes is not known."""
    return Amounts(gpus_of(pod)[0] or NONE, requested(pod, "cpu"), requested(pod, "memory"))


def total_of(amounts: Iterable[Amounts]) -> Amounts:
    return sum(amounts, Amounts())


def selected(nodes: Sequence[NodeRoom], selector: Mapping[str, object]) -> Sequence[NodeRoom]:
    """The usable nodes with all these labels."""
    return [node for node in nodes if node.usable and all((node.labels or {}).get(key) == value for key, value in selector.items())]

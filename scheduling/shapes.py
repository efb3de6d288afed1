"""Shapes of pods made ready for a decision: what is checked on a node and charged to queues."""

from collections.abc import Iterable, Mapping

from scheduling.devices import WHOLE_DEVICE
from scheduling.state import CPU, GPU, MEMORY, Amounts, Node, Number, Pod, PodShape

ShapeCounts = Mapping[PodShape, int]
"""How many pods there are of each shape."""


class Demand:
    """What pods of one shape take on a node and in a queue."""

    __slots__ = (
        "_parts",
        "_whole_device",
        "charge",
        "mismatches",
        "plain",
        "preferences",
        "shape",
        "share",
        "size",
        "whole",
    )

    def __init__(
        self, shape: PodShape, device_memory: int | None, whole_device: int = WHOLE_DEVICE
    ) -> None:
        self.shape = shape
        self._whole_device = whole_device
        self.whole = int(shape.amounts.get(GPU, 0))
        """The number of whole devices."""
        self.share = shape.share
        self.plain = tuple((name, amount) for name, amount in shape.amounts.items() if name != GPU)
        """The amounts other than devices."""
        self.mismatches = dict(shape.mismatches)
        self.preferences = dict(shape.preferences)
        self._parts: dict[int | None, Number | None] = {}
        part = self.find_part(device_memory) if self.share else None
        self.charge = compute_charge(shape, device_memory)
        """What queues are charged for one pod."""
        if GPU in self.charge:
            devices = whole_device * self.whole
            charged = self.share.devices * (part or 0) if self.share else devices
            self.charge = {**self.charge, GPU: charged}
        self.size: tuple[int, Number] = (self.whole, part or 0)
        """Larger demands are placed first."""

    def find_part(self, device_memory: int | None) -> Number | None:
        """Return how much of each of its devices a pod takes; None when that is not known."""
        if self.share is None:
            return self._whole_device
        if device_memory not in self._parts:
            self._parts[device_memory] = self._count_part(self.share.device_fraction(device_memory))
        return self._parts[device_memory]

    def _count_part(self, fraction: Number | None) -> Number | None:
        if fraction is None or self._whole_device == WHOLE_DEVICE:
            return fraction
        # The smallest share takes something, too.
        return max(int(fraction * self._whole_device), 1)


class ShapeTable:
    """The demands of all shapes that a decision meets.

    `device_memory` is the memory by which shares in MiB are charged to queues. `whole_device` is
    what one device counts for on nodes and in queues: with 1 parts of a device are fractions; with
    more they are whole numbers, rounded down, but never to nothing.
    """

    def __init__(self, device_memory: int | None, whole_device: int = WHOLE_DEVICE) -> None:
        self.whole_device = whole_device
        self._device_memory = device_memory
        self._demands: dict[PodShape, Demand] = {}
        self._charges: dict[tuple[PodShape, int], Amounts] = {}
        """What so many pods of one shape are charged: most that is asked is of one shape."""

    def get_demand(self, shape: PodShape) -> Demand:
        demand = self._demands.get(shape)
        if demand is None:
            demand = self._demands[shape] = Demand(shape, self._device_memory, self.whole_device)
        return demand

    def sum_charges(self, counts: ShapeCounts) -> Amounts:
        """Return what queues are charged for pods together."""
        if len(counts) == 1:
            (key,) = counts.items()
            charges = self._charges.get(key)
            if charges is None:
                charges = self._charges[key] = self._sum_charges(counts)
            return charges
        return self._sum_charges(counts)

    def _sum_charges(self, counts: ShapeCounts) -> Amounts:
        total: dict[str, Number] = {}
        for shape, count in counts.items():
            for name, amount in self.get_demand(shape).charge.items():
                total[name] = total.get(name, 0) + amount * count
        return total

    def sum_demands(self, counts: ShapeCounts) -> dict[str, Number]:
        """Return what pods take on nodes together, parts of devices as fractions of one."""
        total: dict[str, Number] = {}
        for shape, count in counts.items():
            demand = self.get_demand(shape)
            for name, amount in demand.plain:
                total[name] = total.get(name, 0) + amount * count
            total[GPU] = total.get(GPU, 0) + demand.charge.get(GPU, 0) * count
        return total

    def count_devices(self, counts: ShapeCounts) -> int:
        """Return how many whole devices pods take together."""
        devices = 0
        for shape, count in counts.items():
            devices += self.get_demand(shape).whole * count
        return devices


class ShapeNames:
    """Finds one shape for all that are equal."""

    def __init__(self) -> None:
        self._known: dict[PodShape, PodShape] = {}
        self._by_value: dict[object, PodShape] = {}

    def unify(self, shape: PodShape) -> PodShape:
        """Return the first shape that was equal to this one."""
        first_shape = self._known.get(shape)
        if first_shape is None:
            value = (
                frozenset(shape.amounts.items()),
                shape.share,
                frozenset(shape.mismatches.items()),
                frozenset(shape.preferences.items()),
            )
            first_shape = self._known[shape] = self._by_value.setdefault(value, shape)
        return first_shape


def compute_charge(shape: PodShape, device_memory: int | None) -> Amounts:
    """Return what a queue is charged for a pod: cores, bytes and devices.

    A share counts as its fraction of each device.
    """
    charged = {name: shape.amounts[name] for name in (CPU, MEMORY, GPU) if name in shape.amounts}
    if shape.share is not None:
        charged[GPU] = shape.share.devices * (shape.share.device_fraction(device_memory) or 0)
    return charged


def find_device_memory(nodes: Iterable[Node]) -> int | None:
    """Return the least memory of a device among nodes, by which shares are charged (as KAI does).

    None when no node says it.
    """
    return min((node.device_memory for node in nodes if node.device_memory), default=None)


def count_shapes(pods: Iterable[Pod]) -> dict[PodShape, int]:
    counts: dict[PodShape, int] = {}
    for pod in pods:
        counts[pod.shape] = counts.get(pod.shape, 0) + 1
    return counts

"""What is free on one node: now, and as soon as leaving pods have left it."""

from collections.abc import Sequence

from scheduling.devices import WHOLE_DEVICE, Devices
from scheduling.host_ports import FreeAmounts
from scheduling.shapes import Demand
from scheduling.state import GPU, Node, Number

MANY = 10**9
"""More pods than any node takes."""


class Space:
    """What is free on a node at one moment."""

    __slots__ = ("amounts", "devices", "pods")

    def __init__(self, node: Node, whole_device: int) -> None:
        self.amounts = FreeAmounts(node.allocatable)
        self.amounts.pop(GPU, None)
        self.devices = Devices(int(node.allocatable.get(GPU, 0)), whole_device)
        self.pods = node.max_pods

    def copy(self) -> "Space":
        copy = Space.__new__(Space)
        copy.amounts, copy.devices, copy.pods = (
            FreeAmounts(self.amounts),
            self.devices.copy(),
            self.pods,
        )
        return copy

    def has_amounts(self, demand: Demand) -> bool:
        """Return whether there is room for a pod, devices aside."""
        if self.pods is not None and self.pods < 1:
            return False
        amounts = self.amounts
        for name, amount in demand.plain:  # noqa: SIM110 - asked most often of all
            if amounts[name] < amount:
                return False
        return True

    def occupy(self, demand: Demand, devices: Sequence[int], part: Number, sign: int) -> None:
        amounts = self.amounts
        for name, amount in demand.plain:
            amounts[name] -= amount * sign
        if devices:
            self.devices.use_devices(devices, part, sign)
        if self.pods is not None:
            self.pods -= sign


class NodeRoom:
    """The room of a node: `now`, and `later` when those that leave have left.

    Later there is also less of it, by what is kept for pods that wait for it. The two are one
    object until they differ.
    """

    __slots__ = ("later", "node", "now")

    def __init__(self, node: Node, whole_device: int = WHOLE_DEVICE) -> None:
        self.node = node
        self.now = self.later = Space(node, whole_device)

    def copy(self) -> "NodeRoom":
        copy = NodeRoom.__new__(NodeRoom)
        copy.node, copy.now = self.node, self.now.copy()
        copy.later = copy.now if self.later is self.now else self.later.copy()
        return copy

    @property
    def device_count(self) -> int:
        return len(self.now.devices.free)

    def part_of(self, demand: Demand) -> Number | None:
        """Return how much of each of its devices a pod would take; None when that is not known."""
        return demand.find_part(self.node.device_memory)

    def get_idle_count(self, *, at_once: bool) -> int:
        """Return how many devices are free whole, now and later or later alone."""
        later = self.later.devices.idle_count
        return min(self.now.devices.idle_count, later) if at_once else later

    def find_devices(self, demand: Demand, *, at_once: bool) -> tuple[int, ...] | None:
        """Return the devices for a pod, () for one that needs none, None without room for it.

        A pod that starts at once needs its room later too: some is kept for others.
        """
        space = self.now if at_once else self.later
        beside = self.later if at_once and self.later is not self.now else None
        if not space.has_amounts(demand) or (beside and not beside.has_amounts(demand)):
            return None
        count = demand.whole if demand.share is None else demand.share.devices
        part = self.part_of(demand)
        if part is None or part > space.devices.whole:
            return None
        if not count:
            return ()
        return space.devices.choose_devices(count, part, beside.devices if beside else None)

    def count_most(self, demand: Demand, *, at_once: bool) -> int:
        """Return a number of equal pods of which no more find room here together.

        It is 0 where `find_devices` finds no room for one.
        """
        if (
            at_once
            and self.later is not self.now
            and self.find_devices(demand, at_once=at_once) is None
        ):
            return 0
        space = self.now if at_once else self.later
        most: Number = MANY if space.pods is None else space.pods
        amounts = space.amounts
        for name, amount in demand.plain:
            fitting = amounts[name] // amount
            if fitting < most:
                most = fitting
        if demand.share is not None:
            most = min(most, self._count_sharing(space.devices, demand))
        elif demand.whole:
            most = min(most, space.devices.idle_count // demand.whole)
        return max(int(most), 0)

    def _count_sharing(self, devices: Devices, demand: Demand) -> int:
        """Return a number of pods with parts of devices of which no more find room on them."""
        part = self.part_of(demand)
        if demand.share is None or part is None or part > devices.whole:
            return 0
        counts = [free // part for free in devices.free if free >= part]
        # Each pod has its parts on different devices.
        return sum(counts) // demand.share.devices if len(counts) >= demand.share.devices else 0

    def occupy(self, demand: Demand, devices: Sequence[int], sign: int = 1) -> None:
        """Count a pod that runs here or starts now; with `sign` -1 take that back."""
        part = self.part_of(demand) or self.now.devices.whole
        self.now.occupy(demand, devices, part, sign)
        if self.later is not self.now:
            self.later.occupy(demand, devices, part, sign)

    def occupy_later(self, demand: Demand, devices: Sequence[int], sign: int = 1) -> None:
        """Keep room for a pod from when there is some; with `sign` -1 one that runs is to leave."""
        if self.later is self.now:
            self.later = self.now.copy()
        part = self.part_of(demand) or self.later.devices.whole
        self.later.occupy(demand, devices, part, sign)

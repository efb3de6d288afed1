"""Why pods found no room in a cluster of one node, with that node's numbers."""

from collections.abc import Callable, Sequence

from scheduling.amounts import format_amount
from scheduling.decision import Refusal
from scheduling.devices import WHOLE_DEVICE
from scheduling.host_ports import describe_port_shortage, is_host_port, select_named
from scheduling.node_room import NodeRoom
from scheduling.refusals import NO_ROOM
from scheduling.shapes import Demand, ShapeCounts, ShapeTable
from scheduling.state import GPU, GpuShare, Node, Number

PODS = "pods"

CountPlaced = Callable[[], int]
"""Returns how many of some pods find room."""


def build_node_refusal(
    room: NodeRoom, shapes: ShapeTable, counts: ShapeCounts, placed: CountPlaced
) -> Refusal:
    """Build the refusal of pods that start together; `placed` tells how many find room."""
    shortages = _NodeShortages(
        room, [(shapes.get_demand(shape), count) for shape, count in counts.items()], placed
    )
    parts = shortages.describe_shortages()
    subject = " ".join(sorted(shortages.resource_names))
    return Refusal(NO_ROOM, subject, f"0/1 nodes are available: {', '.join(parts)}.")


class _NodeShortages:
    """The parts of the message: for each short resource, what is needed and what there is."""

    def __init__(
        self, room: NodeRoom, demands: Sequence[tuple[Demand, int]], placed: CountPlaced
    ) -> None:
        self.room = room
        self.demands = demands
        self.size = sum(count for _, count in demands)
        self.placed = placed
        self.resource_names: set[str] = set()
        self.gang_suffix = f" for a gang of {self.size} pods" if self.size > 1 else ""

    @property
    def node(self) -> Node:
        return self.room.node

    def describe_shortages(self) -> Sequence[str]:
        wanted: dict[str, Number] = {}
        for demand, count in self.demands:
            for name, amount in demand.plain:
                wanted[name] = wanted.get(name, 0) + amount * count
        whole_devices = sum(demand.whole * count for demand, count in self.demands)
        short = select_named(
            [
                (name, text)
                for name, amount in sorted(wanted.items())
                if (text := self._describe_resource(name, amount))
            ]
        )
        parts = [text for _, text in short]
        self.resource_names.update(name for name, _ in short)
        parts += [
            text
            for text in (
                self._describe_devices(whole_devices),
                self._describe_shares(),
                self._describe_pods(),
            )
            if text
        ]
        # When each resource is sufficient in sum and yet a pod found no place, the free parts of
        # devices are too small.
        return (
            sorted(parts)
            if parts
            else [self._describe_fragments(whole_devices + self._sum_shared())]
        )

    def _describe_resource(self, name: str, wanted: Number) -> str:
        free = min(self.room.now.amounts[name], self.room.later.amounts[name])
        if is_host_port(name):
            if wanted <= free:
                return ""
            return f"1 {describe_port_shortage(name, wanted, 1, self.gang_suffix)}"
        capacity = self.node.allocatable.get(name, 0)
        return self._describe_shortage(name, wanted, max(free, 0), capacity)

    def _describe_devices(self, wanted: int) -> str:
        if not wanted:
            return ""
        return self._describe_shortage(
            GPU, wanted, self.room.get_idle_count(at_once=True), self.room.device_count
        )

    def _describe_shares(self) -> str:
        sharing = [(demand, demand.share) for demand, _ in self.demands if demand.share]
        if not sharing:
            return ""
        if any(self.room.part_of(demand) is None for demand, _ in sharing):
            self.resource_names.add(GPU)
            return (
                f"1 Insufficient {GPU} (the node does not say how much memory a device "
                "has, so gpu-memory cannot be met)"
            )
        if self.size > 1:
            free = sum(max(device, 0) for device in self.room.later.devices.free)
            return self._describe_shortage(GPU, self._sum_shared(), free, self.room.device_count)
        return self._describe_share(*sharing[0])

    def _describe_share(self, demand: Demand, share: GpuShare) -> str:
        part, count = self.room.part_of(demand) or 0, self.room.device_count
        having = self.room.later.devices.count_with_room(part)
        if having >= share.devices:
            return ""
        self.resource_names.add(GPU)
        wanted = (
            f"needs {format_amount(GPU, part)} of "
            f"{'one device' if share.devices == 1 else f'each of {share.devices} devices'}"
        )
        if part > WHOLE_DEVICE or share.devices > count:
            return f"1 Insufficient {GPU} ({wanted}, the node has {count}: this can never fit)"
        return f"1 Insufficient {GPU} ({wanted}, {having} of {count} have as much free)"

    def _describe_pods(self) -> str:
        most = self.node.max_pods
        if most is None or self.room.now.pods is None or self.room.later.pods is None:
            return ""
        free = min(self.room.now.pods, self.room.later.pods)
        if free >= self.size:
            return ""
        self.resource_names.add(PODS)
        never = ": this can never fit" if self.size > most else ""
        return (
            f"1 Too many pods (needs {self.size}{self.gang_suffix}, {max(free, 0)} of {most} "
            f"free{never})"
        )

    def _describe_fragments(self, wanted: Number) -> str:
        self.resource_names.add(GPU)
        never = "" if self._fits_when_empty() else ": this can never fit"
        return (
            f"1 Insufficient {GPU} (needs {format_amount(GPU, wanted)}{self.gang_suffix}, room "
            f"for {self.placed()} of them{never})"
        )

    def _fits_when_empty(self) -> bool:
        empty = NodeRoom(self.node)
        for demand, count in sorted(self.demands, key=lambda one: one[0].size, reverse=True):
            for _ in range(count):
                devices = empty.find_devices(demand, at_once=True)
                if devices is None:
                    return False
                empty.occupy(demand, devices)
        return True

    def _describe_shortage(self, name: str, wanted: Number, free: Number, capacity: Number) -> str:
        if wanted <= free:
            return ""
        self.resource_names.add(name)
        needs = f"needs {format_amount(name, wanted)}{self.gang_suffix}"
        if wanted > capacity:
            return (
                f"1 Insufficient {name} ({needs}, the node has {format_amount(name, capacity)}: "
                "this can never fit)"
            )
        return (
            f"1 Insufficient {name} ({needs}, {format_amount(name, free)} of "
            f"{format_amount(name, capacity)} free)"
        )

    def _sum_shared(self) -> Number:
        total: Number = 0
        for demand, count in self.demands:
            if demand.share:
                total += demand.share.devices * (self.room.part_of(demand) or 0) * count
        return total

"""What is free on the node during a pass, whether a gang fits, and the message when it does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from localkube.resources.gpu_sharing import GPU_RESOURCE
from localkube.scheduler.demand import add_amounts
from localkube.scheduler.devices import WHOLE_DEVICE, Devices
from localkube.scheduler.node import PODS, Node, describe_mismatch
from localkube.scheduler.refusal import NO_ROOM, Refusal, format_amount
from localkube.scheduler.task import Task, count_shapes, sum_demands

ZERO = Fraction(0)

Assignment = Mapping[str, tuple[int, ...]]
"""The devices of each pod, by its uid."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The result of a try: `assignment` covers as many pods, in the order tried, as there was room
    for.
    """

    assignment: Assignment
    room: "NodeRoom"


class NodeRoom:
    """What is free on a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.free = {
            name: amount
            for name, amount in node.allocatable.items()
            if name not in (GPU_RESOURCE, PODS)
        }
        self.devices = Devices(node.device_count)
        self.pods = node.max_pods

    def copy(self) -> "NodeRoom":
        copy = NodeRoom.__new__(NodeRoom)
        copy.node, copy.free, copy.devices, copy.pods = (
            self.node,
            dict(self.free),
            self.devices.copy(),
            self.pods,
        )
        return copy

    def occupy(self, task: Task, devices: Sequence[int]) -> None:
        """Count a pod that runs here, or is about to, whether or not it fits."""
        for name, amount in task.demand.amounts.items():
            if name != GPU_RESOURCE:
                self.free[name] = self.free.get(name, ZERO) - amount
        self.devices.use_devices(devices, self._device_fraction(task) or WHOLE_DEVICE)
        if self.pods is not None:
            self.pods -= 1

    def fit_tasks(self, tasks: Sequence[Task]) -> Fit:
        """Try pods one after the other in a copy of this room, until one finds no place.

        Larger device shares come first.
        """
        room, assignment = self.copy(), {}
        if self.pods is not None and self.pods < len(tasks):
            # Ten thousand pods on a node for some hundred: trying them would tell nothing more.
            return Fit({}, room)
        for task in sorted(
            tasks,
            key=lambda task: (task.demand.whole_devices, self._device_fraction(task) or ZERO),
            reverse=True,
        ):
            devices = room._choose_devices(task)
            if devices is None:
                break
            room.occupy(task, devices)
            assignment[task.uid] = devices
        return Fit(assignment, room)

    def _choose_devices(self, task: Task) -> tuple[int, ...] | None:
        if self.pods is not None and self.pods < 1:
            return None
        if any(
            self.free.get(name, ZERO) < amount
            for name, amount in task.demand.amounts.items()
            if name != GPU_RESOURCE
        ):
            return None
        share = task.demand.share
        if share is None:
            return self.devices.choose_devices(task.demand.whole_devices)
        part = self._device_fraction(task)
        return (
            None
            if part is None or part > WHOLE_DEVICE
            else self.devices.choose_devices(share.devices, part)
        )

    def _device_fraction(self, task: Task) -> Fraction | None:
        share = task.demand.share
        return None if share is None else share.device_fraction(self.node.device_memory)


def build_shortage_refusal(
    room: NodeRoom | None, tasks: Sequence[Task], fit: Fit | None
) -> Refusal:
    """Build the refusal of pods that must start together; `fit` is the failed try, if there was
    one.
    """
    if room is None or fit is None:
        return Refusal(NO_ROOM, "no node", "no nodes available to schedule pods")
    shortages = _Shortages(room, tasks, len(fit.assignment))
    parts = shortages.describe_shortages()
    subject = " ".join(sorted(shortages.resource_names))
    return Refusal(NO_ROOM, subject, f"0/1 nodes are available: {', '.join(parts)}.")


def find_mismatch_refusal(node: Node, tasks: Sequence[Task]) -> Refusal | None:
    """Return why the node does not accept these pods, whatever room it has, or None."""
    for task, _ in count_shapes(tasks):
        mismatch = describe_mismatch(node, task.placement_rules)
        if mismatch is not None:
            return Refusal(NO_ROOM, mismatch, f"0/1 nodes are available: 1 {mismatch}.")
    return None


class _Shortages:
    """The parts of the message: for each short resource, what is needed and what there is."""

    def __init__(self, room: NodeRoom, tasks: Sequence[Task], placed: int) -> None:
        self.room = room
        self.tasks = tasks
        self.placed = placed
        self.resource_names: set[str] = set()
        self.gang_suffix = f" for a gang of {len(tasks)} pods" if len(tasks) > 1 else ""
        self.empty_room = NodeRoom(room.node)

    def describe_shortages(self) -> Sequence[str]:
        wanted = sum_demands(self.tasks)
        parts = [
            text
            for name, amount in sorted(wanted.items())
            if name != GPU_RESOURCE and (text := self._describe_resource(name, amount))
        ]
        parts += [
            text
            for text in (
                self._describe_devices(wanted.get(GPU_RESOURCE, ZERO)),
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
            else [
                self._describe_fragments(
                    add_amounts(wanted, {GPU_RESOURCE: self._sum_shared()})[GPU_RESOURCE]
                )
            ]
        )

    def _describe_resource(self, name: str, wanted: Fraction) -> str:
        free, capacity = (
            self.room.free.get(name, ZERO),
            self.room.node.allocatable.get(name, ZERO),
        )
        return self._describe_shortage(name, wanted, max(free, ZERO), capacity)

    def _describe_devices(self, wanted: Fraction) -> str:
        return (
            self._describe_shortage(
                GPU_RESOURCE,
                wanted,
                Fraction(self.room.devices.idle_count),
                Fraction(self.room.node.device_count),
            )
            if wanted
            else ""
        )

    def _describe_shares(self) -> str:
        sharing = [task.demand.share for task in self.tasks if task.demand.share]
        if not sharing:
            return ""
        parts = [share.device_fraction(self.room.node.device_memory) for share in sharing]
        if None in parts:
            self.resource_names.add(GPU_RESOURCE)
            return (
                f"1 Insufficient {GPU_RESOURCE} (the node does not say how much memory a device "
                "has, so gpu-memory cannot be met)"
            )
        if len(self.tasks) > 1:
            free = sum((max(device, ZERO) for device in self.room.devices.free), ZERO)
            return self._describe_shortage(
                GPU_RESOURCE, self._sum_shared(), free, Fraction(self.room.node.device_count)
            )
        share, part = sharing[0], parts[0]
        assert part is not None
        count, having = self.room.node.device_count, self.room.devices.count_with_room(part)
        if having >= share.devices:
            return ""
        self.resource_names.add(GPU_RESOURCE)
        wanted = (
            f"needs {format_amount(GPU_RESOURCE, part)} of "
            f"{'one device' if share.devices == 1 else f'each of {share.devices} devices'}"
        )
        if part > WHOLE_DEVICE or share.devices > count:
            return (
                f"1 Insufficient {GPU_RESOURCE} ({wanted}, the node has {count}: this can never "
                "fit)"
            )
        return f"1 Insufficient {GPU_RESOURCE} ({wanted}, {having} of {count} have as much free)"

    def _describe_pods(self) -> str:
        most = self.room.node.max_pods
        if most is None or self.room.pods is None or self.room.pods >= len(self.tasks):
            return ""
        self.resource_names.add(PODS)
        never = ": this can never fit" if len(self.tasks) > most else ""
        return (
            f"1 Too many pods (needs {len(self.tasks)}{self.gang_suffix}, {max(self.room.pods, 0)} "
            f"of {most} free{never})"
        )

    def _describe_fragments(self, wanted: Fraction) -> str:
        self.resource_names.add(GPU_RESOURCE)
        never = (
            ": this can never fit"
            if len(self.empty_room.fit_tasks(self.tasks).assignment) < len(self.tasks)
            else ""
        )
        return (
            f"1 Insufficient {GPU_RESOURCE} (needs "
            f"{format_amount(GPU_RESOURCE, wanted)}{self.gang_suffix}, room for {self.placed} of "
            f"them{never})"
        )

    def _describe_shortage(
        self, name: str, wanted: Fraction, free: Fraction, capacity: Fraction
    ) -> str:
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

    def _sum_shared(self) -> Fraction:
        return sum(
            (
                task.compute_charge(self.room.node.device_memory).get(GPU_RESOURCE, ZERO)
                for task in self.tasks
                if task.demand.share
            ),
            ZERO,
        )

"""What is free on the node during a pass, whether a gang fits into it, and the sentence that says
why it does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from localkube.resources.gpu_sharing import GPU
from localkube.scheduler.demand import add, total
from localkube.scheduler.devices import ALL, Devices
from localkube.scheduler.node import PODS, Node, repels
from localkube.scheduler.refusal import NO_ROOM, Refusal, plain
from localkube.scheduler.task import Task

NOTHING = Fraction(0)

Assignment = Mapping[str, tuple[int, ...]]
"""The devices of each pod, by its uid."""


@dataclass(frozen=True, slots=True)
class Fit:
    """`assignment` covers as many of the pods, in the order they were tried, as there was room
    for.
    """

    assignment: Assignment
    room: "Room"


class Room:
    """What is left of a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.free = {
            name: amount for name, amount in node.allocatable.items() if name not in (GPU, PODS)
        }
        self.devices = Devices(node.devices)
        self.pods = node.pods

    def copy(self) -> "Room":
        twin = Room.__new__(Room)
        twin.node, twin.free, twin.devices, twin.pods = (
            self.node,
            dict(self.free),
            self.devices.copy(),
            self.pods,
        )
        return twin

    def occupy(self, task: Task, devices: Sequence[int]) -> None:
        """Count a pod that runs here, or is about to, whether or not it should have been let in."""
        for name, amount in task.demand.amounts.items():
            if name != GPU:
                self.free[name] = self.free.get(name, NOTHING) - amount
        self.devices.take(devices, self._part(task) or ALL)
        if self.pods is not None:
            self.pods -= 1

    def fit(self, tasks: Sequence[Task]) -> Fit:
        """Try pods one after the other in a copy of this room, the larger device shares first,
        until one finds no place.
        """
        room, assignment = self.copy(), {}
        for task in sorted(
            tasks, key=lambda task: (task.demand.devices, self._part(task) or NOTHING), reverse=True
        ):
            devices = room._choose(task)
            if devices is None:
                break
            room.occupy(task, devices)
            assignment[task.uid] = devices
        return Fit(assignment, room)

    def _choose(self, task: Task) -> tuple[int, ...] | None:
        if self.pods is not None and self.pods < 1:
            return None
        if any(
            self.free.get(name, NOTHING) < amount
            for name, amount in task.demand.amounts.items()
            if name != GPU
        ):
            return None
        share = task.demand.share
        if share is None:
            return self.devices.choose(task.demand.devices)
        part = self._part(task)
        return None if part is None or part > ALL else self.devices.choose(share.devices, part)

    def _part(self, task: Task) -> Fraction | None:
        share = task.demand.share
        return None if share is None else share.part(self.node.device_memory)


def refuses(room: Room | None, tasks: Sequence[Task], fit: Fit | None) -> Refusal:
    """Why these pods, which must start together, were not placed. `fit` is the failed try, if it
    came to one.
    """
    if room is None or fit is None:
        return Refusal(NO_ROOM, "no node", "no nodes available to schedule pods")
    shortages = _Shortages(room, tasks, len(fit.assignment))
    parts = shortages.parts()
    subject = " ".join(sorted(shortages.names))
    return Refusal(NO_ROOM, subject, f"0/1 nodes are available: {', '.join(parts)}.")


def repelled(node: Node, tasks: Sequence[Task]) -> Refusal | None:
    """Why the node does not take these pods, whatever room it has; None when it takes them all."""
    for task in tasks:
        why = repels(node, task.placing)
        if why is not None:
            return Refusal(NO_ROOM, why, f"0/1 nodes are available: 1 {why}.")
    return None


class _Shortages:
    """The parts of the sentence: one for each resource that is short, with what is needed and what
    there is.
    """

    def __init__(self, room: Room, tasks: Sequence[Task], placed: int) -> None:
        self.room = room
        self.tasks = tasks
        self.placed = placed
        self.names: set[str] = set()
        self.whose = f" for a gang of {len(tasks)} pods" if len(tasks) > 1 else ""
        self.empty = Room(room.node)

    def parts(self) -> Sequence[str]:
        wanted = total(task.demand.amounts for task in self.tasks)
        parts = [
            text
            for name, amount in sorted(wanted.items())
            if name != GPU and (text := self._amount(name, amount))
        ]
        parts += [
            text
            for text in (self._devices(wanted.get(GPU, NOTHING)), self._shares(), self._pods())
            if text
        ]
        # Each resource would do by itself, and yet one pod found no place: what is free lies in
        # pieces too small.
        return sorted(parts) if parts else [self._pieces(add(wanted, {GPU: self._shared()})[GPU])]

    def _amount(self, name: str, wanted: Fraction) -> str:
        free, capacity = (
            self.room.free.get(name, NOTHING),
            self.room.node.allocatable.get(name, NOTHING),
        )
        return self._short(name, wanted, max(free, NOTHING), capacity)

    def _devices(self, wanted: Fraction) -> str:
        return (
            self._short(
                GPU, wanted, Fraction(self.room.devices.idle), Fraction(self.room.node.devices)
            )
            if wanted
            else ""
        )

    def _shares(self) -> str:
        sharing = [task.demand.share for task in self.tasks if task.demand.share]
        if not sharing:
            return ""
        parts = [share.part(self.room.node.device_memory) for share in sharing]
        if None in parts:
            self.names.add(GPU)
            return (
                f"1 Insufficient {GPU} (the node does not say how much memory a device has, so "
                "gpu-memory cannot be met)"
            )
        if len(self.tasks) > 1:
            free = sum((max(device, NOTHING) for device in self.room.devices.free), NOTHING)
            return self._short(GPU, self._shared(), free, Fraction(self.room.node.devices))
        share, part = sharing[0], parts[0]
        assert part is not None
        count, having = self.room.node.devices, self.room.devices.with_room(part)
        if having >= share.devices:
            return ""
        self.names.add(GPU)
        wanted = (
            f"needs {plain(GPU, part)} of "
            f"{'one device' if share.devices == 1 else f'each of {share.devices} devices'}"
        )
        if part > ALL or share.devices > count:
            return f"1 Insufficient {GPU} ({wanted}, the node has {count}: this can never fit)"
        return f"1 Insufficient {GPU} ({wanted}, {having} of {count} have as much free)"

    def _pods(self) -> str:
        most = self.room.node.pods
        if most is None or self.room.pods is None or self.room.pods >= len(self.tasks):
            return ""
        self.names.add(PODS)
        never = ": this can never fit" if len(self.tasks) > most else ""
        return (
            f"1 Too many pods (needs {len(self.tasks)}{self.whose}, {max(self.room.pods, 0)} of "
            f"{most} free{never})"
        )

    def _pieces(self, wanted: Fraction) -> str:
        self.names.add(GPU)
        never = (
            ": this can never fit"
            if len(self.empty.fit(self.tasks).assignment) < len(self.tasks)
            else ""
        )
        return (
            f"1 Insufficient {GPU} (needs {plain(GPU, wanted)}{self.whose}, room for {self.placed} "
            f"of them{never})"
        )

    def _short(self, name: str, wanted: Fraction, free: Fraction, capacity: Fraction) -> str:
        if wanted <= free:
            return ""
        self.names.add(name)
        needs = f"needs {plain(name, wanted)}{self.whose}"
        if wanted > capacity:
            return (
                f"1 Insufficient {name} ({needs}, the node has {plain(name, capacity)}: this can "
                "never fit)"
            )
        return (
            f"1 Insufficient {name} ({needs}, {plain(name, free)} of {plain(name, capacity)} free)"
        )

    def _shared(self) -> Fraction:
        return sum(
            (
                task.charge(self.room.node.device_memory).get(GPU, NOTHING)
                for task in self.tasks
                if task.demand.share
            ),
            NOTHING,
        )

"""Who may give way: the running gangs of each queue, and in which order their pods go.

A gang's surplus goes first, the highest rank before the others, and only then the gang whole. In a
queue the lower priority goes first, at one priority surplus before minimums, then the younger.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduling.gangs import GangBook
from scheduling.shapes import ShapeTable, count_shapes
from scheduling.state import Amounts, Pod, Preemptibility


class RunningGang:
    """A gang with the pods that it would keep if nothing more were taken from it."""

    __slots__ = ("gang", "minimum", "pods")

    def __init__(self, gang: GangBook) -> None:
        self.gang = gang
        self.pods = list(gang.list_active())
        """By rank: the last of them go first."""
        self.minimum = gang.min_member
        is_guaranteed = gang.preemptibility is not Preemptibility.PREEMPTIBLE
        if len(self.pods) <= self.minimum and not is_guaranteed:
            self.minimum = max(self.minimum - gang.count_succeeded(), 0)

    @property
    def surplus(self) -> int:
        return max(len(self.pods) - self.minimum, 0)

    def take_pods(self, count: int) -> Sequence[Pod]:
        taken = self.pods[-count:]
        del self.pods[-count:]
        return taken

    def return_pods(self, pods: Sequence[Pod]) -> None:
        self.pods.extend(pods)


@dataclass(frozen=True, slots=True, eq=False)
class VictimUnit:
    """Pods of a gang that can only go together: one of its surplus, or all that are left.

    Compared by identity, which costs nothing among a thousand of them.
    """

    running: RunningGang
    pods: Sequence[Pod]
    amounts: Amounts
    """What they count for in their queue."""
    is_core: bool
    """Whether they count as non-preemptible; always False for what may be taken."""

    @property
    def gang(self) -> GangBook:
        return self.running.gang


class VictimEntry(NamedTuple):
    """A gang's surplus, or its minimum, in the order in which they go."""

    running: RunningGang
    is_minimum: bool

    @property
    def order(self) -> tuple[int, bool, float, int, str]:
        gang = self.running.gang
        return (gang.priority, self.is_minimum, -gang.created_at, -gang.arrival, gang.key)


class VictimQueues:
    """The gangs that may give way, by leaf queue."""

    def __init__(self, gangs: Iterable[GangBook], shapes: ShapeTable) -> None:
        self._shapes = shapes
        self._gangs: dict[str, list[GangBook]] = {}
        self._entries: dict[str, Sequence[VictimEntry]] = {}
        self._devices: dict[tuple[str, float], Mapping[str, int]] = {}
        for gang in gangs:
            if gang.active_count and not gang.is_exempt:
                self._gangs.setdefault(gang.queue, []).append(gang)

    def list_queues(self) -> Iterable[str]:
        return self._gangs

    def list_entries(self, queue: str) -> Sequence[VictimEntry]:
        """Return the entries of a queue in the order in which they go."""
        entries = self._entries.get(queue)
        if entries is None:
            entries = self._entries[queue] = sorted(
                self._build_entries(queue), key=lambda entry: entry.order
            )
        return entries

    def count_devices_below(self, queue: str, priority: float) -> Mapping[str, int]:
        """Return how many devices what is below a priority has, by node; {} without any such.

        Shared ones count as if nobody else had a part of them.
        """
        key = queue, priority
        if key not in self._devices:
            gangs = {
                entry.running.gang.key: entry.running.gang
                for entry in self.list_entries(queue)
                if entry.running.gang.priority < priority
            }
            devices: dict[str, int] = {}
            for pod in (pod for gang in gangs.values() for pod in gang.placed.values()):
                devices[pod.node] = devices.get(pod.node, 0) + len(pod.devices)
            self._devices[key] = devices
        return self._devices[key]

    def build_unit(self, entry: VictimEntry) -> VictimUnit | None:
        """Take the next pods of an entry out of their gang; None when there are no more."""
        running = entry.running
        if entry.is_minimum:
            if not running.pods or running.surplus:
                return None
            pods = running.take_pods(len(running.pods))
        else:
            if not running.surplus:
                return None
            pods = running.take_pods(1)
        amounts = self._shapes.sum_charges(count_shapes(pods))
        return VictimUnit(running, pods, amounts, is_core=False)

    def _build_entries(self, queue: str) -> Iterator[VictimEntry]:
        for gang in self._gangs.get(queue, ()):
            if gang.preemptibility is Preemptibility.NON_PREEMPTIBLE:
                continue
            running = RunningGang(gang)
            if running.surplus:
                yield VictimEntry(running, is_minimum=False)
            if gang.preemptibility is Preemptibility.PREEMPTIBLE:
                yield VictimEntry(running, is_minimum=True)

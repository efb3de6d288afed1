"""Evictions during a pass: what they change, and taking them back."""

from collections.abc import Sequence

from scheduling.decision import Action, Eviction
from scheduling.gangs import GangBook
from scheduling.scheduling_pass import PassState
from scheduling.state import Pod
from scheduling.victims import VictimUnit


class EvictionPlan:
    """Units that are evicted for one gang, until it is certain that they are."""

    def __init__(self, state: PassState) -> None:
        self._state = state
        self.units: list[VictimUnit] = []

    @property
    def pod_count(self) -> int:
        return sum(len(unit.pods) for unit in self.units)

    def add_unit(self, unit: VictimUnit, index: int | None = None) -> None:
        """Count the pods of a unit as leaving; they were taken out of their gang before.

        One that was let off in vain goes back to the index that it had: the places of those who are
        moved depend on their order.
        """
        for pod in unit.pods:
            self._state.room.evict_pod(pod)
        self._book(unit, 1)
        self.units.insert(len(self.units) if index is None else index, unit)

    def remove_unit(self, unit: VictimUnit) -> None:
        """Let a unit off: it goes on as if nothing had been."""
        self.units.remove(unit)
        unit.running.return_pods(unit.pods)
        self._book(unit, -1)
        for pod in unit.pods:
            self._state.room.restore_pod(pod)

    def discard(self) -> None:
        """Let all units off, the last one first."""
        for unit in reversed(list(self.units)):
            self.remove_unit(unit)

    def list_removable(self) -> Sequence[VictimUnit]:
        """Return the units that might be let off: the last one of each gang, the latest first."""
        last_units: dict[str, VictimUnit] = {}
        for unit in self.units:
            last_units[unit.gang.key] = unit
        return [unit for unit in reversed(self.units) if last_units[unit.gang.key] is unit]

    def list_pods(self) -> Sequence[Pod]:
        return [pod for unit in self.units for pod in unit.pods]

    def build_evictions(self, action: Action, taker: GangBook) -> Sequence[Eviction]:
        return [
            Eviction(pod.uid, unit.gang.key, action, taker.key)
            for unit in self.units
            for pod in unit.pods
        ]

    def _book(self, unit: VictimUnit, sign: int) -> None:
        self._state.queues.count_leaving(unit.gang.queue, unit.amounts, sign)

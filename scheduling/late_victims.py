"""The gangs that start in a decision, as those who may have to give way in the next one."""

import math
from collections.abc import Iterable, Mapping

from scheduling.scheduling_pass import StartedGang
from scheduling.state import Preemptibility
from scheduling.victims import VictimQueues


class LateVictims:
    """What would be free if these left, and all those who ran before and may give way."""

    def __init__(self, started: Iterable[StartedGang], victims: VictimQueues) -> None:
        self._victims = victims
        self._started: dict[str, list[StartedGang]] = {}
        """By leaf queue."""
        for each in started:
            is_firm = each.gang.preemptibility is Preemptibility.NON_PREEMPTIBLE
            if not each.gang.is_exempt and not is_firm:
                self._started.setdefault(each.gang.queue, []).append(each)
        self._devices: dict[tuple[str, int], Mapping[str, int]] = {}
        self._all_devices: Mapping[str, int] | None = None

    def list_queues(self) -> Iterable[str]:
        """Return the queues in which something starts."""
        return self._started

    def count_devices_below(self, queue: str, priority: int) -> Mapping[str, int]:
        """Return how many devices what is below a priority has, by node; {} if none of it starts.

        Shared ones count as if nobody else had a part of them.
        """
        key = queue, priority
        if key not in self._devices:
            below = [each for each in self._started.get(queue, ()) if each.gang.priority < priority]
            devices = dict(self._victims.count_devices_below(queue, priority)) if below else {}
            _add_devices(devices, below)
            self._devices[key] = devices
        return self._devices[key]

    def count_devices(self) -> Mapping[str, int]:
        """Return how many devices all have in whatever queue, by node."""
        if self._all_devices is None:
            devices: dict[str, int] = {}
            for queue in self._victims.list_queues():
                for node, count in self._victims.count_devices_below(queue, math.inf).items():
                    devices[node] = devices.get(node, 0) + count
            for started in self._started.values():
                _add_devices(devices, started)
            self._all_devices = devices
        return self._all_devices


def _add_devices(devices: dict[str, int], started: Iterable[StartedGang]) -> None:
    for place in (place for each in started for place in each.places):
        devices[place.node] = devices.get(place.node, 0) + len(place.devices)

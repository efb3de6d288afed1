"""What is free on all nodes during a decision: where pods fit, and what trying them changes."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.node_room import NodeRoom
from scheduling.shapes import Demand, ShapeCounts, ShapeTable
from scheduling.state import Node, Pod, PodShape


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod finds room."""

    pod: Pod
    node: str
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """The places of pods that were tried together; as many as there was room for."""

    places: Sequence[Place]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """What all nodes have together.

    `pods` is how many more they take; None when a node sets no bound.
    """

    idle: int
    pods: int | None


class ClusterRoom:
    """The room of all nodes.

    Changes are undone by their opposites; amounts are exact, so nothing is lost by that.
    """

    def __init__(self, nodes: Sequence[Node], shapes: ShapeTable) -> None:
        self.rooms = [NodeRoom(node) for node in nodes]
        self.version = 0
        """The number of this state of the room; what is undone gets its old number back."""
        self.has_leaving = False
        """Whether there is more room later than now somewhere."""
        self._shapes = shapes
        self._rooms_by_name = {room.node.name: room for room in self.rooms}
        self._versions = itertools.count(1)
        self._totals: dict[bool, tuple[int, Totals]] = {}
        self._full_shapes: dict[tuple[PodShape, bool], int] = {}
        """By shape, and whether at once: the last version in which no node took one such pod."""

    def find_room(self, node: str) -> NodeRoom | None:
        return self._rooms_by_name.get(node)

    def add_pod(self, pod: Pod) -> None:
        """Count a pod that has a node, whether or not it fits there."""
        room = self._rooms_by_name.get(pod.node)
        if room is None:
            return
        demand = self._shapes.get_demand(pod.shape)
        room.occupy(demand, pod.devices)
        if pod.is_leaving:
            room.occupy_later(demand, pod.devices, -1)
            self.has_leaving = True
        self.version = next(self._versions)

    def evict_pod(self, pod: Pod) -> None:
        """Count a running pod as leaving."""
        self._change_later(pod, -1)
        self.has_leaving = True

    def restore_pod(self, pod: Pod) -> None:
        """Take back an eviction."""
        self._change_later(pod, 1)

    def undo_fit(self, fit: Fit, *, at_once: bool) -> None:
        """Give back the places that `fit_pods` gave."""
        for place in reversed(fit.places):
            self._take_place(place, at_once=at_once, sign=-1)
        self.version = next(self._versions)

    def fit_pods(self, pods: Sequence[Pod], *, at_once: bool) -> Fit:
        """Give places to pods, larger demands first, until one finds none.

        Places that are not for all are given back at once.
        """
        version = self.version
        demands = [(self._shapes.get_demand(pod.shape), pod) for pod in pods]
        if len(pods) > 1:
            demands.sort(key=lambda entry: entry[0].size, reverse=True)
        places: list[Place] = []
        last: tuple[Demand, NodeRoom] | None = None
        for demand, pod in demands:
            room = last[1] if last is not None and last[0] is demand else None
            found = self._find_place(demand, room, at_once=at_once)
            if found is None:
                fit = Fit(places, is_complete=False)
                self.undo_fit(fit, at_once=at_once)
                self.version = version
                if not places:
                    self._full_shapes[demand.shape, at_once] = version
                return fit
            room, devices = found
            places.append(Place(pod, room.node.name, devices))
            self._take_place(places[-1], at_once=at_once, sign=1)
            last = demand, room
        self.version = next(self._versions)
        return Fit(places, is_complete=True)

    def is_too_small(self, counts: ShapeCounts, *, at_once: bool) -> bool:
        """Return whether it is plain without a try that such pods do not fit together."""
        if any(self._full_shapes.get((shape, at_once)) == self.version for shape in counts):
            return True
        totals = self.sum_free(at_once=at_once)
        if totals.pods is not None and totals.pods < sum(counts.values()):
            return True
        whole = sum(self._shapes.get_demand(shape).whole * n for shape, n in counts.items())
        return totals.idle < whole

    def sum_free(self, *, at_once: bool) -> "Totals":
        """Return the idle devices and places for pods of all nodes together."""
        known = self._totals.get(at_once)
        if known is not None and known[0] == self.version:
            return known[1]
        idle, pods = 0, 0
        is_bounded = True
        for room in self.rooms:
            idle += room.get_idle_count(at_once=at_once)
            free = (room.now if at_once else room.later).pods
            if free is None:
                is_bounded = False
            else:
                pods += max(free, 0)
        totals = Totals(idle, pods if is_bounded else None)
        self._totals[at_once] = self.version, totals
        return totals

    def _take_place(self, place: Place, *, at_once: bool, sign: int) -> None:
        room = self._rooms_by_name[place.node]
        demand = self._shapes.get_demand(place.pod.shape)
        if at_once:
            room.occupy(demand, place.devices, sign)
        else:
            room.occupy_later(demand, place.devices, sign)

    def _change_later(self, pod: Pod, sign: int) -> None:
        room = self._rooms_by_name.get(pod.node)
        if room is not None:
            room.occupy_later(self._shapes.get_demand(pod.shape), pod.devices, sign)
            self.version = next(self._versions)

    def _find_place(
        self, demand: Demand, last: NodeRoom | None, *, at_once: bool
    ) -> tuple[NodeRoom, tuple[int, ...]] | None:
        """Return the node and devices for a pod: the fullest node that still takes it (bin packing,
        KAI's default), the first of equals.

        `last` took the pod before, and takes an equal one next if it can.
        """
        if last is not None and last.node.name not in demand.mismatches:
            devices = last.find_devices(demand, at_once=at_once)
            if devices is not None:
                return last, devices
        best: tuple[NodeRoom, tuple[int, ...]] | None = None
        best_rank: tuple[object, ...] | None = None
        for room in self.rooms:
            idle = room.get_idle_count(at_once=at_once)
            if idle < demand.whole or room.node.name in demand.mismatches:
                continue
            rank = _rank_room(room, demand, idle)
            if best_rank is not None and rank >= best_rank:
                continue
            devices = room.find_devices(demand, at_once=at_once)
            if devices is not None:
                best, best_rank = (room, devices), rank
        return best


def _rank_room(room: NodeRoom, demand: Demand, idle: int) -> tuple[object, ...]:
    """Return the order in which nodes are preferred: those that are fuller, in what counts.

    Pods without devices go to nodes without devices first, as with KAI.
    """
    if demand.whole:
        return (idle,)
    if demand.share is not None:
        part = room.part_of(demand) or 0
        shared = [free for free in room.later.devices.free if part <= free < 1]
        return (0, min(shared), idle) if len(shared) >= demand.share.devices else (1, idle, 0)
    return room.device_count > 0, room.later.amounts.get("cpu", 0)

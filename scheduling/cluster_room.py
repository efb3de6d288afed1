"""What is free on all nodes during a decision: where pods fit, and what trying them changes."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from scheduling.host_ports import is_host_port
from scheduling.node_room import MANY, NodeRoom
from scheduling.shapes import Demand, ShapeCounts, ShapeTable
from scheduling.state import GPU, Node, Number, Pod, PodShape

KeptPlace = tuple[PodShape, str]
"""A node on which an earlier decision kept a place for a pod of a shape."""


class Place(NamedTuple):
    """Where a pod finds room."""

    pod: Pod
    node: str
    devices: tuple[int, ...]


class Fit(NamedTuple):
    """The places of pods that were tried together; as many as there was room for."""

    places: Sequence[Place]
    is_complete: bool


class ClusterRoom:
    """The room of all nodes.

    Changes are undone by their opposites; amounts are exact, so nothing is lost by that.
    """

    def __init__(self, nodes: Sequence[Node], shapes: ShapeTable) -> None:
        self.rooms = [NodeRoom(node, shapes.whole_device) for node in nodes]
        self.version = 0
        """The number of this state of the room; what is undone gets its old number back."""
        self.has_leaving = False
        """Whether there is more room later than now somewhere."""
        self._shapes = shapes
        self._rooms_by_name = {room.node.name: room for room in self.rooms}
        self._versions = itertools.count(1)
        self._idle = [0, 0]
        """How many devices are idle on all nodes, later and at once."""
        self._idle_counts = [0] * len(self.rooms), [0] * len(self.rooms)
        """How many are on each node, later and at once."""
        self._is_bounded = all(node.max_pods is not None for node in nodes)
        """Whether each node bounds its pods."""
        self._free_pods = [0, 0]
        """How many more pods all nodes take together, later and at once, where they are bounded."""
        self._free_pod_counts = [0] * len(self.rooms), [0] * len(self.rooms)
        self._sums: tuple[int, dict[str, Number]] | None = None
        """The version of the room, and what is free later on all nodes together."""
        self._port_sums: dict[str, Number] = {}
        """What is free of ports in that version."""
        self._changes: list[int] = []
        """The indexes of nodes whose room has changed, one after the other."""
        self._places: dict[tuple[PodShape, bool], ShapePlaces] = {}
        """By shape, and whether at once: where one such pod finds room."""
        self._indexes = {room.node.name: index for index, room in enumerate(self.rooms)}
        self.device_count = sum(room.device_count for room in self.rooms)
        for index in range(len(self.rooms)):
            self._count_node(index)

    def add_pod(self, pod: Pod) -> None:
        """Count a pod that has a node, whether or not it fits there."""
        room = self._rooms_by_name.get(pod.node)
        if room is None:
            return
        demand = self._shapes.get_demand(pod.shape)
        self._change_room(room, demand, pod.devices, 1, at_once=True)
        if pod.is_leaving:
            self._change_room(room, demand, pod.devices, -1, at_once=False)
            self.has_leaving = True
        self.version = next(self._versions)

    def remove_pod(self, pod: Pod) -> None:
        """Count a pod no longer that had a node, and did not leave it before."""
        room = self._rooms_by_name.get(pod.node)
        if room is not None:
            demand = self._shapes.get_demand(pod.shape)
            self._change_room(room, demand, pod.devices, -1, at_once=True)
            self.version = next(self._versions)

    def copy(self) -> "ClusterRoom":
        """Return a room that changes on its own."""
        copy = ClusterRoom((), self._shapes)
        copy.rooms = [room.copy() for room in self.rooms]
        copy._rooms_by_name = {room.node.name: room for room in copy.rooms}
        copy._indexes, copy.device_count = self._indexes, self.device_count
        copy.has_leaving, copy._is_bounded = self.has_leaving, self._is_bounded
        copy._idle, copy._free_pods = list(self._idle), list(self._free_pods)
        later, at_once = self._idle_counts
        copy._idle_counts = list(later), list(at_once)
        later, at_once = self._free_pod_counts
        copy._free_pod_counts = list(later), list(at_once)
        copy._places = {key: places.copy() for key, places in self._places.items()}
        copy._changes = list(self._changes)
        return copy

    def empty_leaving(self) -> None:
        """Let all leave who are leaving: what is free later is free now."""
        for index, room in enumerate(self.rooms):
            if room.later is not room.now:
                room.now = room.later
                self._changes.append(index)
                self._count_node(index)
        self.has_leaving = False
        self.version = next(self._versions)

    @property
    def idle_later(self) -> int:
        """How many devices are idle on all nodes when those that leave have left."""
        return self._idle[0]

    def count_held(self, pod: Pod) -> int:
        """Return how many whole devices a pod holds on a node that is there."""
        is_held = self._shapes.get_demand(pod.shape).whole and pod.node in self._rooms_by_name
        return len(pod.devices) if is_held else 0

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

    def fit_pods(
        self, pods: Sequence[Pod], *, at_once: bool, only: Sequence[KeptPlace] = ()
    ) -> Fit:
        """Give places to pods, larger demands first, until one finds none.

        Places that are not for all are given back at once. Where places are kept, no others are
        tried.
        """
        version = self.version
        demands = [(self._shapes.get_demand(pod.shape), pod) for pod in pods]
        if len(pods) > 1:
            demands.sort(key=lambda entry: entry[0].size, reverse=True)
        places: list[Place] = []
        last: tuple[Demand, NodeRoom] | None = None
        kept_places = list(only)
        for demand, pod in demands:
            room = last[1] if last is not None and last[0] is demand else None
            if only:
                # Its own place first: equals that change places at each decision never rest.
                kept_places.sort(key=lambda place: place[1] != pod.nominated_node)
                found = self._find_kept_place(demand, kept_places, at_once=at_once)
            else:
                found = self._find_place(demand, room, at_once=at_once)
            if found is None:
                fit = Fit(places, is_complete=False)
                self.undo_fit(fit, at_once=at_once)
                self.version = version
                return fit
            room, devices = found
            places.append(Place(pod, room.node.name, devices))
            self._take_place(places[-1], at_once=at_once, sign=1)
            last = demand, room
        self.version = next(self._versions)
        return Fit(places, is_complete=True)

    def is_too_small(self, counts: ShapeCounts, *, at_once: bool) -> bool:
        """Return whether it is plain without a try that such pods do not fit together."""
        if self._idle[at_once] < self._shapes.count_devices(counts):
            return True
        if self._is_short_of_pods(sum(counts.values()), at_once=at_once):
            return True
        get_demand = self._shapes.get_demand
        for shape, count in counts.items():
            if self._list_places(get_demand(shape), at_once=at_once).most < count:
                return True
        return False

    def count_most_later(self, shape: PodShape, freed: Mapping[str, int]) -> int:
        """Return a number of pods of which no more find room later, with more devices free.

        `freed` says how many more, by node.
        """
        demand = self._shapes.get_demand(shape)
        if not demand.whole:
            return MANY
        places = self._list_places(demand, at_once=False)
        most = places.most
        for name, count in freed.items():
            index = self._indexes.get(name)
            if index is not None and name not in demand.mismatches:
                idle = self._idle_counts[False][index]
                most += (idle + count) // demand.whole - places.get_most(index)
        return most

    def is_enough_in_sum(self, counts: ShapeCounts) -> bool:
        """Return whether all nodes together have enough later, in parts of whatever size."""
        if self._sums is None or self._sums[0] != self.version:
            self._sums = self.version, self._sum_later()
            self._port_sums = {}
        sums = self._sums[1]
        return all(
            (self._sum_port(name) if is_host_port(name) else sums.get(name, 0)) >= amount
            for name, amount in self._shapes.sum_demands(counts).items()
        )

    def _sum_port(self, name: str) -> Number:
        """Return how much of a port is free later on all nodes, whether or not they name it."""
        if name not in self._port_sums:
            free = (max(room.later.amounts[name], 0) for room in self.rooms)
            self._port_sums[name] = sum(free)
        return self._port_sums[name]

    def _sum_later(self) -> dict[str, Number]:
        sums: dict[str, Number] = {}
        for room in self.rooms:
            for name, amount in room.later.amounts.items():
                sums[name] = sums.get(name, 0) + max(amount, 0)
            sums[GPU] = sums.get(GPU, 0) + sum(room.later.devices.free)
        return sums

    def _is_short_of_pods(self, pods: int, *, at_once: bool) -> bool:
        free = self._free_pods[at_once]
        return self._is_bounded and free < pods

    def _take_place(self, place: Place, *, at_once: bool, sign: int) -> None:
        room = self._rooms_by_name[place.node]
        self._change_room(
            room, self._shapes.get_demand(place.pod.shape), place.devices, sign, at_once
        )

    def _change_room(
        self, room: NodeRoom, demand: Demand, devices: Sequence[int], sign: int, at_once: bool
    ) -> None:
        """Change the room of a node, now and later or later alone, and the sums over all nodes."""
        if at_once:
            room.occupy(demand, devices, sign)
        else:
            room.occupy_later(demand, devices, sign)
        index = self._indexes[room.node.name]
        self._changes.append(index)
        self._count_node(index)

    def _count_node(self, index: int) -> None:
        """Bring the sums over all nodes up to date with one of them."""
        room = self.rooms[index]
        now, later = room.now, room.later
        idle = later.devices.idle_count
        counts, sums = self._idle_counts, self._idle
        sums[0] += idle - counts[0][index]
        counts[0][index] = idle
        if now is not later:
            idle = min(idle, now.devices.idle_count)
        sums[1] += idle - counts[1][index]
        counts[1][index] = idle
        if now.pods is not None and later.pods is not None:
            counts, sums = self._free_pod_counts, self._free_pods
            for at_once, pods in enumerate((max(later.pods, 0), max(now.pods, 0))):
                sums[at_once] += pods - counts[at_once][index]
                counts[at_once][index] = pods

    def _change_later(self, pod: Pod, sign: int) -> None:
        room = self._rooms_by_name.get(pod.node)
        if room is not None:
            demand = self._shapes.get_demand(pod.shape)
            self._change_room(room, demand, pod.devices, sign, at_once=False)
            self.version = next(self._versions)

    def _find_kept_place(
        self, demand: Demand, kept_places: list[KeptPlace], *, at_once: bool
    ) -> tuple[NodeRoom, tuple[int, ...]] | None:
        """Return the first of the places kept for such pods that takes one, and strike it off."""
        for place in kept_places:
            shape, name = place
            room = self._rooms_by_name.get(name)
            if shape is not demand.shape or room is None or name in demand.mismatches:
                continue
            devices = room.find_devices(demand, at_once=at_once)
            if devices is not None:
                kept_places.remove(place)
                return room, devices
        return None

    def _find_place(
        self, demand: Demand, last: NodeRoom | None, *, at_once: bool
    ) -> tuple[NodeRoom, tuple[int, ...]] | None:
        """Return the node and devices for a pod: the fullest node that still takes it (bin packing,
        KAI's default) among those that it prefers most, the first of equals.

        `last` took the pod before, and takes an equal one next if it can.
        """
        if last is not None and last.node.name not in demand.mismatches:
            devices = last.find_devices(demand, at_once=at_once)
            if devices is not None:
                return last, devices
        places = self._list_places(demand, at_once=at_once)
        if not places.ranks:
            return None
        _, index = min(places.ranks.values())
        room = self.rooms[index]
        devices = room.find_devices(demand, at_once=at_once)
        assert devices is not None
        return room, devices

    def _list_places(self, demand: Demand, *, at_once: bool) -> "ShapePlaces":
        """Return where one pod finds room, looking only at nodes that have changed since."""
        places = self._places.get((demand.shape, at_once))
        if places is None:
            places = self._places[demand.shape, at_once] = ShapePlaces()
            changed: Iterable[int] = range(len(self.rooms))
        elif places.position == len(self._changes):
            return places
        else:
            changed = set(self._changes[places.position :])
        places.position = len(self._changes)
        rooms, ranks = self.rooms, places.ranks
        mismatches, whole = demand.mismatches, demand.whole
        idle_counts = self._idle_counts[at_once]
        for index in changed:
            room, idle = rooms[index], idle_counts[index]
            most = 0
            if idle >= whole and room.node.name not in mismatches:
                most = room.count_most(demand, at_once=at_once)
            if most:
                places.put_node(index, _rank_room(room, demand, idle), most)
            elif index in ranks:
                places.remove_node(index)
        return places


class ShapePlaces:
    """The nodes that have room for one pod of a shape."""

    __slots__ = ("_most", "most", "position", "ranks")

    def __init__(self) -> None:
        self.most = 0
        """No more such pods than this find room on all nodes together."""
        self._most: dict[int, int] = {}
        self.position = 0
        """How many changes of nodes it knows."""
        self.ranks: dict[int, tuple[tuple[Number, ...], int]] = {}
        """How much each node is preferred, by its index: the smallest most."""

    def copy(self) -> "ShapePlaces":
        copy = ShapePlaces()
        copy.most, copy.position = self.most, self.position
        copy._most, copy.ranks = dict(self._most), dict(self.ranks)
        return copy

    def get_most(self, index: int) -> int:
        """Return a number of pods of which no more find room on a node."""
        return self._most.get(index, 0)

    def put_node(self, index: int, rank: tuple[Number, ...], most: int) -> None:
        self.ranks[index] = rank, index
        self.most += most - self._most.get(index, 0)
        self._most[index] = most

    def remove_node(self, index: int) -> None:
        """Note that a node, which had room, has none any more."""
        del self.ranks[index]
        self.most -= self._most.pop(index)


def _rank_room(room: NodeRoom, demand: Demand, idle: int) -> tuple[Number, ...]:
    """Return the order in which nodes are preferred: those that the pod itself prefers, then
    those that are fuller, in what counts.

    Pods without devices go to nodes without devices first, as with KAI.
    """
    preference = demand.preferences.get(room.node.name, 0) if demand.preferences else 0
    if demand.whole:
        return -preference, idle
    return (-preference, *_rank_fullness(room, demand, idle))


def _rank_fullness(room: NodeRoom, demand: Demand, idle: int) -> tuple[Number, ...]:
    if demand.share is not None:
        part = room.part_of(demand) or 0
        devices = room.later.devices
        shared = [free for free in devices.free if part <= free < devices.whole]
        return (0, min(shared), idle) if len(shared) >= demand.share.devices else (1, idle, 0)
    return room.device_count > 0, room.later.amounts.get("cpu", 0)

"""Why pods found no room: for each short resource what is needed and what there is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.amounts import format_amount
from scheduling.cluster_room import ClusterRoom
from scheduling.decision import Refusal
from scheduling.devices import WHOLE_DEVICE
from scheduling.host_ports import describe_port_shortage, is_host_port, select_named
from scheduling.node_room import NodeRoom
from scheduling.node_shortages import CountPlaced, build_node_refusal
from scheduling.refusals import NO_ROOM
from scheduling.shapes import Demand, ShapeCounts, ShapeTable
from scheduling.state import GPU, Number, PodShape

PODS = "pods"


@dataclass(slots=True)
class ShapeSurvey:
    """What nodes have for pods of one shape, in one version of the room.

    All amounts are of the nodes that accept such pods.
    """

    accepting: int = 0
    mismatches: dict[str, int] = field(default_factory=dict)
    """How many nodes do not accept such pods, by the reason."""
    short: dict[str, int] = field(default_factory=dict)
    """On how many nodes one such pod finds too little, by resource."""
    free: dict[str, Number] = field(default_factory=dict)
    capacity: dict[str, Number] = field(default_factory=dict)
    largest_free: dict[str, Number] = field(default_factory=dict)
    """The most that one node has free."""
    largest: dict[str, Number] = field(default_factory=dict)
    """The most that one node has when it is empty."""
    knows_memory: bool = True
    """Whether all nodes say how much memory a device has, or it does not matter."""


class ShortageReports:
    """Builds the refusals of pods for which there is no room.

    What nodes have for a shape is looked at once for each version of the room.
    """

    def __init__(self, room: ClusterRoom, shapes: ShapeTable) -> None:
        self._room = room
        self._shapes = shapes
        self._surveys: dict[PodShape, tuple[int, ShapeSurvey]] = {}

    def find_mismatch_refusal(self, counts: ShapeCounts) -> Refusal | None:
        """Return why no node accepts these pods, whatever room there is, or None."""
        if not self._room.rooms:
            return Refusal(NO_ROOM, "no node", "no nodes available to schedule pods")
        for shape in counts:
            mismatches = self._shapes.get_demand(shape).mismatches
            if mismatches and self._survey(shape).accepting == 0:
                counted = self._survey(shape).mismatches
                parts = [f"{count} {reason}" for reason, count in sorted(counted.items())]
                return self._build_refusal(" ".join(sorted(counted)), parts)
        return None

    def build_refusal(self, counts: ShapeCounts, placed: CountPlaced) -> Refusal:
        """Build the refusal of pods that start together; `placed` tells how many find room."""
        if len(self._room.rooms) == 1:
            return build_node_refusal(self._room.rooms[0], self._shapes, counts, placed)
        size = sum(counts.values())
        shape = self._find_blocked_shape(counts)
        survey = self._survey(shape)
        gang_suffix = f" for a gang of {size} pods" if size > 1 else ""
        wanted = self._shapes.sum_demands(counts) | {PODS: size}
        bound_sums: dict[PodShape, Mapping[str, Number]] = {}
        short = []
        for name in sorted(wanted):
            taking = self._find_taking(name, shape, counts)
            if taking not in bound_sums:
                bound_sums[taking] = self._sum_bound(taking, counts)
            if text := self._describe_amount(name, taking, bound_sums[taking], size):
                short.append((name, text))
        named = select_named(short)
        parts, names = [text for _, text in named], {name for name, _ in named}
        if not parts:
            name = GPU if GPU in wanted else next(iter(sorted(wanted)), PODS)
            names.add(name)
            parts.append(
                f"{survey.accepting} Insufficient {name} (needs "
                f"{format_amount(name, wanted.get(name, 0))}{gang_suffix}, room for {placed()} of "
                "them)"
            )
        parts += [f"{count} {reason}" for reason, count in survey.mismatches.items()]
        return self._build_refusal(
            " ".join(sorted(names | survey.mismatches.keys())), sorted(parts, key=_sort_key)
        )

    def _build_refusal(self, subject: str, parts: Sequence[str]) -> Refusal:
        total = len(self._room.rooms)
        return Refusal(NO_ROOM, subject, f"0/{total} nodes are available: {', '.join(parts)}.")

    def _find_taking(self, name: str, blocked: PodShape, counts: ShapeCounts) -> PodShape:
        """Return the blocked shape, or another where that one takes nothing of the resource.

        A survey has the amounts of its own shape's resources alone: a master without devices says
        nothing of the workers' devices.
        """
        shapes = (blocked, *counts)
        return next((shape for shape in shapes if name in self._survey(shape).capacity), blocked)

    def _sum_bound(self, shape: PodShape, counts: ShapeCounts) -> Mapping[str, Number]:
        """Return what pods want together that only nodes take which accept a shape, and how many.

        Pods that other nodes may take, too, do not count: what they want may be there.
        """
        bound = {
            other: count
            for other, count in counts.items()
            if other is shape or self._is_bound_to(other, shape)
        }
        return self._shapes.sum_demands(bound) | {PODS: sum(bound.values())}

    def _describe_amount(
        self, name: str, shape: PodShape, bound_sum: Mapping[str, Number], size: int
    ) -> str:
        """Describe what is short of one resource where a shape is accepted; "" if nothing."""
        survey, pods, wanted = self._survey(shape), bound_sum[PODS], bound_sum.get(name, 0)
        gang_suffix = ""
        if size > 1:
            part = "" if pods == size else f"{pods} of "
            gang_suffix = f" for {part}a gang of {size} pods"
        if is_host_port(name):
            return _describe_port(survey, name, wanted, gang_suffix)
        return _describe_resource(survey, name, wanted, size, gang_suffix)

    def _is_bound_to(self, other: PodShape, shape: PodShape) -> bool:
        """Return whether all nodes that accept the other shape accept this one."""
        refusing = self._shapes.get_demand(shape).mismatches.keys()
        return refusing <= self._shapes.get_demand(other).mismatches.keys()

    def _find_blocked_shape(self, counts: ShapeCounts) -> PodShape:
        """Return the first shape of which no node takes one more pod, else the largest."""
        ordered = sorted(counts, key=lambda shape: self._shapes.get_demand(shape).size)[::-1]
        return next(
            (
                shape
                for shape in ordered
                if max(self._survey(shape).short.values(), default=0)
                >= self._survey(shape).accepting
            ),
            ordered[0],
        )

    def _survey(self, shape: PodShape) -> ShapeSurvey:
        cache_entry = self._surveys.get(shape)
        if cache_entry is not None and cache_entry[0] == self._room.version:
            return cache_entry[1]
        demand = self._shapes.get_demand(shape)
        survey = ShapeSurvey()
        for room in self._room.rooms:
            mismatch = demand.mismatches.get(room.node.name)
            if mismatch is None:
                _survey_node(survey, room, demand)
            else:
                survey.mismatches[mismatch] = survey.mismatches.get(mismatch, 0) + 1
        self._surveys[shape] = self._room.version, survey
        return survey


def _survey_node(survey: ShapeSurvey, room: NodeRoom, demand: Demand) -> None:
    survey.accepting += 1
    for name, amount in demand.plain:
        free = max(min(room.now.amounts[name], room.later.amounts[name]), 0)
        _add_resource(
            survey, name, free, room.node.allocatable.get(name, 0), is_short=free < amount
        )
    if room.now.pods is not None and room.later.pods is not None:
        free_pods = max(min(room.now.pods, room.later.pods), 0)
        _add_resource(survey, PODS, free_pods, room.node.max_pods or 0, is_short=free_pods < 1)
    if demand.whole:
        idle = room.get_idle_count(at_once=True)
        _add_resource(survey, GPU, idle, room.device_count, is_short=idle < demand.whole)
    elif demand.share is not None:
        part = room.part_of(demand)
        if part is None:
            survey.knows_memory = False
        free_parts = sum(max(free, 0) for free in room.later.devices.free)
        is_short = part is None or (room.later.devices.count_with_room(part) < demand.share.devices)
        _add_resource(survey, GPU, free_parts, room.device_count, is_short=is_short)


def _add_resource(
    survey: ShapeSurvey, name: str, free: Number, capacity: Number, *, is_short: bool
) -> None:
    survey.free[name] = survey.free.get(name, 0) + free
    survey.capacity[name] = survey.capacity.get(name, 0) + capacity
    survey.largest_free[name] = max(survey.largest_free.get(name, 0), free)
    survey.largest[name] = max(survey.largest.get(name, 0), capacity)
    if is_short:
        survey.short[name] = survey.short.get(name, 0) + 1


def _describe_resource(
    survey: ShapeSurvey, name: str, wanted: Number, size: int, gang_suffix: str
) -> str:
    """Describe what is short of one resource; "" when there is enough of it."""
    if name == PODS and PODS not in survey.free:
        return ""
    free, capacity = survey.free.get(name, 0), survey.capacity.get(name, 0)
    short = survey.short.get(name, 0)
    label = "Too many pods" if name == PODS else f"Insufficient {name}"
    needs = f"needs {format_amount(name, wanted)}{gang_suffix}"
    if name == GPU and not survey.knows_memory:
        return (
            f"{survey.accepting} {label} (a node does not say how much memory a device has, so "
            "gpu-memory cannot be met)"
        )
    if wanted > free:
        count = short or survey.accepting
        if wanted > capacity:
            has = format_amount(name, capacity)
            return f"{count} {label} ({needs}, the nodes have {has}: this can never fit)"
        return (
            f"{count} {label} ({needs}, {format_amount(name, free)} of "
            f"{format_amount(name, capacity)} free)"
        )
    if not short:
        return ""
    if size > 1:
        return f"{short} {label}"
    largest = survey.largest.get(name, 0)
    if wanted > largest and (name != GPU or wanted >= WHOLE_DEVICE):
        return (
            f"{short} {label} ({needs}, no node has more than {format_amount(name, largest)}: "
            "this can never fit)"
        )
    most = format_amount(name, survey.largest_free.get(name, 0))
    return f"{short} {label} ({needs} on one node, at most {most} free on one)"


def _describe_port(survey: ShapeSurvey, name: str, wanted: Number, gang_suffix: str) -> str:
    """Describe what is short of a port; "" when it is free on enough nodes."""
    short = survey.short.get(name, 0)
    if wanted > survey.free.get(name, 0):
        short = short or survey.accepting
    if not short:
        return ""
    return f"{short} {describe_port_shortage(name, wanted, survey.accepting, gang_suffix)}"


def _sort_key(part: str) -> str:
    """Return the key that sorts parts by their words, as the real scheduler does, not numbers."""
    return part.partition(" ")[2]

"""The cluster that is played forward: its state prepared once, and copied for each draw."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from scheduling.cluster_room import ClusterRoom
from scheduling.deciding import book_state
from scheduling.devices import WHOLE_DEVICE
from scheduling.gangs import GangBook, build_gang_book
from scheduling.queues import Queues
from scheduling.shapes import ShapeNames, ShapeTable, find_device_memory
from scheduling.state import GPU, Amounts, Bound, ClusterState, Gang, Node, PodShape, Queue
from simulation.lines import LineKey, build_line_key

MOST_SCALE = 1_000_000
"""By how much amounts are multiplied at most, so that all of them are whole numbers."""

DEVICE_PARTS = 1_000_000
"""In how many parts devices are counted where no smaller number divides into all shares."""


@dataclass(frozen=True, slots=True)
class ScaledState:
    """A state whose amounts are whole numbers, in units of its own."""

    state: ClusterState
    whole_device: int = WHOLE_DEVICE
    """What one device counts for in bounds of queues, and on nodes."""


@dataclass(frozen=True, slots=True)
class World:
    """A cluster as it is now. Those who leave have left."""

    state: ClusterState
    shapes: ShapeTable
    queues: Queues
    room: ClusterRoom
    books: Sequence[GangBook]
    line_keys: Mapping[str, LineKey]
    """The keys of the lines in which gangs wait now, by the gang's key; others are worked out."""
    arrivals: Sequence[GangBook] = ()
    """Those who may come, as they came before; they count for nothing yet."""
    arrivals_since: float = 0.0
    """Since when all are known who came."""

    def copy_books(self) -> Sequence[GangBook]:
        """Return gangs whose pods come and go on their own."""
        return [book.copy() for book in self.books]


def build_world(
    state: ClusterState, arrivals: Sequence[Gang] = (), arrivals_since: float = 0.0
) -> World:
    """Build the world of a state, without the pods that leave, and of those who may come."""
    scaled = scale_state(replace(state, gangs=[*state.gangs, *arrivals]))
    return build_scaled_world(scaled, len(arrivals), arrivals_since)


def build_scaled_world(
    scaled: ScaledState, arrival_count: int = 0, arrivals_since: float = 0.0
) -> World:
    """Build the world of a state that is in whole numbers already.

    The last of its gangs, so many, are those who may come.
    """
    count = len(scaled.state.gangs) - arrival_count
    gangs, arrivals = scaled.state.gangs[:count], scaled.state.gangs[count:]
    state = replace(scaled.state, gangs=[_drop_leaving(gang) for gang in gangs])
    unify = ShapeNames().unify
    booked = book_state(state, scaled.whole_device, unify)
    return World(
        state,
        booked.shapes,
        booked.queues,
        booked.room,
        booked.gangs,
        {book.key: build_line_key(book) for book in booked.gangs if book.waiting},
        [build_gang_book(gang, unify) for gang in arrivals],
        arrivals_since,
    )


def scale_state(state: ClusterState) -> ScaledState:
    """Return the same state in units in which all amounts are whole numbers.

    Whole numbers are many times faster than fractions, and a draw computes with nothing else.
    """
    whole_device = _find_whole_device(state)
    scales = _find_scales(state)
    if not scales and whole_device == WHOLE_DEVICE:
        return ScaledState(state)
    bound_scales = {**scales, GPU: whole_device}
    shapes: dict[PodShape, PodShape] = {}

    def scale_shape(shape: PodShape) -> PodShape:
        if shape not in shapes:
            shapes[shape] = replace(shape, amounts=_scale_amounts(shape.amounts, scales))
        return shapes[shape]

    scaled = replace(
        state,
        nodes=[
            replace(node, allocatable=_scale_amounts(node.allocatable, scales))
            for node in state.nodes
        ],
        queues=[_scale_queue(queue, bound_scales) for queue in state.queues],
        gangs=[
            replace(gang, pods=[pod.with_shape(scale_shape(pod.shape)) for pod in gang.pods])
            for gang in state.gangs
        ],
    )
    return ScaledState(scaled, whole_device)


def _drop_leaving(gang: Gang) -> Gang:
    if not any(pod.is_leaving or pod.nominated_node for pod in gang.pods):
        return gang
    pods = [
        replace(pod, nominated_node="") if pod.nominated_node else pod
        for pod in gang.pods
        if not pod.is_leaving
    ]
    return replace(gang, pods=pods)


def _find_scales(state: ClusterState) -> Mapping[str, int]:
    """Return what each resource has to be multiplied by; nothing for those that are whole.

    Devices are not among them: nodes and pods have whole ones, and parts of them elsewhere.
    """
    scales: dict[str, int] = {}
    shapes = {pod.shape for gang in state.gangs for pod in gang.pods}
    for amounts in _list_amounts(state.nodes, state.queues, shapes):
        for name, amount in amounts.items():
            if isinstance(amount, Fraction) and amount.denominator > 1 and name != GPU:
                scales[name] = math.lcm(scales.get(name, 1), amount.denominator)
    return {name: scale for name, scale in scales.items() if scale <= MOST_SCALE}


def _find_whole_device(state: ClusterState) -> int:
    """Return how many parts of a device make all shares and bounds whole numbers."""
    bounds = [
        bound for queue in state.queues for name, bound in queue.bounds.items() if name == GPU
    ]
    parts = [each for bound in bounds for each in (bound.quota, bound.limit) if each is not None]
    memories = {node.device_memory for node in state.nodes} | {find_device_memory(state.nodes)}
    shares = {pod.shape.share for gang in state.gangs for pod in gang.pods if pod.shape.share}
    for share in shares:
        fractions = (share.device_fraction(memory) for memory in memories)
        parts += [fraction for fraction in fractions if fraction is not None]
    device_parts = WHOLE_DEVICE
    for part in parts:
        device_parts = math.lcm(device_parts, part.denominator)
        if device_parts > DEVICE_PARTS:
            return DEVICE_PARTS
    return device_parts


def _list_amounts(
    nodes: Iterable[Node], queues: Iterable[Queue], shapes: Iterable[PodShape]
) -> Iterable[Amounts]:
    for node in nodes:
        yield node.allocatable
    for shape in shapes:
        yield shape.amounts
    for queue in queues:
        for name, bound in queue.bounds.items():
            yield from ({name: each} for each in (bound.quota, bound.limit) if each is not None)


def _scale_amounts(amounts: Amounts, scales: Mapping[str, int]) -> Amounts:
    return {name: _scale_amount(amount, scales.get(name, 1)) for name, amount in amounts.items()}


def _scale_amount(amount: int | Fraction, scale: int) -> int | Fraction:
    scaled = amount * scale
    return scaled.numerator if scaled.denominator == 1 else scaled


def _scale_queue(queue: Queue, scales: Mapping[str, int]) -> Queue:
    def scale_bound(name: str, bound: Bound) -> Bound:
        quota, limit = (
            None if each is None else _scale_amount(each, scales.get(name, 1))
            for each in (bound.quota, bound.limit)
        )
        return Bound(quota, limit, bound.weight)

    return replace(
        queue, bounds={name: scale_bound(name, bound) for name, bound in queue.bounds.items()}
    )

"""The cluster that is played forward: its state prepared once, and copied for each draw."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from scheduling.cluster_room import ClusterRoom
from scheduling.deciding import book_state
from scheduling.gangs import GangBook
from scheduling.queues import Queues
from scheduling.shapes import ShapeTable
from scheduling.state import GPU, Amounts, Bound, ClusterState, Gang, Node, PodShape, Queue

MOST_SCALE = 1_000_000
"""By how much amounts are multiplied at most, so that all of them are whole numbers."""


@dataclass(frozen=True, slots=True)
class World:
    """A cluster as it is now. Those who leave have left."""

    state: ClusterState
    shapes: ShapeTable
    queues: Queues
    room: ClusterRoom
    books: Sequence[GangBook]

    def copy_books(self) -> Sequence[GangBook]:
        """Return gangs whose pods come and go on their own."""
        return [
            replace(
                book,
                waiting=dict(book.waiting),
                placed=dict(book.placed),
                sorted_waiting=None,
            )
            for book in self.books
        ]


def build_world(state: ClusterState, *, is_scaled: bool = False) -> World:
    """Build the world of a state, with the pods that leave taken out.

    A state that `is_scaled` comes from `scale_state`.
    """
    if not is_scaled:
        state = scale_state(state)
    state = replace(state, gangs=[_drop_leaving(gang) for gang in state.gangs])
    booked = book_state(state)
    return World(state, booked.shapes, booked.queues, booked.room, booked.gangs)


def scale_state(state: ClusterState) -> ClusterState:
    """Return the same state in units in which all amounts but devices are whole numbers.

    Whole numbers are many times faster than fractions, and a draw computes with nothing else.
    """
    scales = _find_scales(state)
    if not scales:
        return state
    shapes: dict[PodShape, PodShape] = {}

    def scale_shape(shape: PodShape) -> PodShape:
        if shape not in shapes:
            shapes[shape] = replace(shape, amounts=_scale_amounts(shape.amounts, scales))
        return shapes[shape]

    return replace(
        state,
        nodes=[
            replace(node, allocatable=_scale_amounts(node.allocatable, scales))
            for node in state.nodes
        ],
        queues=[_scale_queue(queue, scales) for queue in state.queues],
        gangs=[
            replace(gang, pods=[replace(pod, shape=scale_shape(pod.shape)) for pod in gang.pods])
            for gang in state.gangs
        ],
    )


def _drop_leaving(gang: Gang) -> Gang:
    pods = [
        replace(pod, nominated_node="") if pod.nominated_node else pod
        for pod in gang.pods
        if not pod.is_leaving
    ]
    return replace(gang, pods=pods)


def _find_scales(state: ClusterState) -> Mapping[str, int]:
    """Return what each resource has to be multiplied by; nothing for those that are whole."""
    scales: dict[str, int] = {}
    shapes = {pod.shape for gang in state.gangs for pod in gang.pods}
    for amounts in _list_amounts(state.nodes, state.queues, shapes):
        for name, amount in amounts.items():
            if isinstance(amount, Fraction) and amount.denominator > 1 and name != GPU:
                scales[name] = math.lcm(scales.get(name, 1), amount.denominator)
    return {name: scale for name, scale in scales.items() if scale <= MOST_SCALE}


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

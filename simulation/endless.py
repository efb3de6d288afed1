"""Which work of unknown end holds what a gang waits for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduling.gangs import GangBook
from scheduling.shapes import count_shapes
from scheduling.state import GPU, PodShape
from simulation.world import World

MOST_ENDLESS = 500
"""Gangs of unknown end that are looked at for each kind of waiting pods, the largest first."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A gang of unknown end, and the nodes on which it has what others may want."""

    key: str
    queue: str
    devices: int
    nodes: frozenset[str]
    device_nodes: frozenset[str]


class EndlessWork:
    """The gangs that run, and of which nobody knows when they end."""

    def __init__(self, world: World, keys: Iterable[str]) -> None:
        books = {book.key: book for book in world.books}
        holders = [_build_holder(world, books[key]) for key in keys if books[key].placed]
        holders.sort(key=lambda holder: (-holder.devices, -len(holder.nodes), holder.key))
        self._holders = holders[:MOST_ENDLESS]
        self._books = books
        self._known: dict[tuple[str, frozenset[PodShape]], tuple[Sequence[str], Sequence[str]]] = {}
        """Who holds what such pods want on their nodes, and in their queue."""

    def list_blockers(self, key: str, most: int) -> Sequence[str]:
        """Return those who hold what a gang wants where it may run, the largest first.

        Where nobody does, it is its queue that is full: those of its queue are returned.
        """
        book = self._books[key]
        shapes = frozenset(count_shapes(book.waiting.values()))
        kind = (book.queue, shapes)
        if kind not in self._known:
            on_its_nodes = [
                holder.key
                for holder in self._holders
                if any(_is_in_the_way(holder, shape) for shape in shapes)
            ]
            in_its_queue = [each.key for each in self._holders if each.queue == book.queue]
            self._known[kind] = on_its_nodes, in_its_queue
        # It may hold a part of what it wants itself.
        on_nodes, in_queue = ([each for each in keys if each != key] for keys in self._known[kind])
        return (on_nodes or in_queue)[:most]


def _is_in_the_way(holder: Holder, shape: PodShape) -> bool:
    """Return whether a gang holds something that such pods want, where they may run."""
    nodes = holder.device_nodes if _has_devices(shape) else holder.nodes
    return any(node not in shape.mismatches for node in nodes)


def _has_devices(shape: PodShape) -> bool:
    return shape.share is not None or bool(shape.amounts.get(GPU))


def _build_holder(world: World, book: GangBook) -> Holder:
    pods = list(book.placed.values())
    return Holder(
        book.key,
        book.queue,
        sum(world.shapes.get_demand(pod.shape).whole for pod in pods),
        frozenset(pod.node for pod in pods),
        frozenset(pod.node for pod in pods if _has_devices(pod.shape)),
    )

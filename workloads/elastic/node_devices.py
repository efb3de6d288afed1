"""Which devices of a node its pods have. Rows do not say it, and a decision needs some."""

from collections.abc import Mapping
from fractions import Fraction

from scheduling import GPU, Node, Number, PodShape


class NodeDevices:
    """Gives pods that run devices of their nodes, shares beside other shares."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._free: dict[str, list[Number]] = {
            name: [1] * int(node.allocatable.get(GPU, 0)) for name, node in nodes.items()
        }

    def take(self, node: str, shape: PodShape) -> tuple[int, ...]:
        """Return devices for a pod on a node; fewer than it has where the node lacks them."""
        part: Number = 1
        count = int(shape.amounts.get(GPU, 0))
        if shape.share is not None:
            count, part = shape.share.devices, shape.share.fraction or Fraction(1)
        free = self._free.get(node, [])
        fitting = sorted(
            (free_part, index) for index, free_part in enumerate(free) if free_part >= part
        )
        indexes = tuple(sorted(index for _, index in fitting[:count]))
        for index in indexes:
            free[index] -= part
        return indexes

"""One shape for all pods that are alike to place, so that a pass compares them at no cost."""

from collections.abc import Callable, Iterable, Mapping

from localkube.scheduler.node import (
    Node,
    NodeAnswers,
    PlacementRules,
    compute_preference,
    describe_mismatch,
)
from localkube.scheduler.task import Task, encode_shape
from scheduling.state import PodShape

SPARE_SHAPES = 1000
"""How many shapes without pods are kept beside those that have some."""


class ShapeTable:
    """The shapes of the pods that are known."""

    def __init__(self, list_nodes: Callable[[], Mapping[str, Node]]) -> None:
        self._list_nodes = list_nodes
        self._shapes: dict[bytes, PodShape] = {}

    def find_shape(self, demand: PodShape, rules: PlacementRules) -> PodShape:
        """Return the shape of pods that demand so much and may run in such places."""
        key = encode_shape(demand, rules)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = PodShape(
                demand.amounts,
                demand.share,
                NodeAnswers(lambda node: describe_mismatch(node, rules), self._list_nodes),
                NodeAnswers(lambda node: compute_preference(node, rules), self._list_nodes),
            )
        return shape

    def drop_unused(self, tasks: Iterable[Task], count: int) -> None:
        """Drop shapes that no pod has any more, once there are many; `count` is that of tasks."""
        if len(self._shapes) > 2 * count + SPARE_SHAPES:
            used = {task.pod.shape for task in tasks}
            self._shapes = {key: shape for key, shape in self._shapes.items() if shape in used}

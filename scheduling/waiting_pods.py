"""The pods of a gang that wait for a place, in the order in which they get one."""

import heapq
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import islice

from scheduling.state import Pod, PodShape


class WaitingPods:
    """The pods of a gang that wait, by shape; those that got a place are taken out.

    The pods of a shape are sorted when the first of them are needed.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._by_shape: dict[PodShape, deque[Pod]] = {}
        self._is_sorted = False
        for pod in pods:
            queue = self._by_shape.get(pod.shape)
            if queue is None:
                queue = self._by_shape[pod.shape] = deque()
            queue.append(pod)

    def __len__(self) -> int:
        return sum(map(len, self._by_shape.values()))

    def take_out(self, uids: Container[str]) -> None:
        """Take out pods that are the first of their shapes."""
        if not uids:
            return
        self._sort()
        for shape, pods in list(self._by_shape.items()):
            while pods and pods[0].uid in uids:
                pods.popleft()
            if not pods:
                del self._by_shape[shape]

    def count_first(self, count: int) -> Mapping[PodShape, int]:
        """Return how many of the first pods by rank there are of each shape."""
        if len(self._by_shape) == 1:
            return dict.fromkeys(self._by_shape, count)
        if count >= len(self):
            return {shape: len(pods) for shape, pods in self._by_shape.items()}
        counts: dict[PodShape, int] = {}
        for pod in self.list_first(count):
            counts[pod.shape] = counts.get(pod.shape, 0) + 1
        return counts

    def list_first(self, count: int) -> Sequence[Pod]:
        """Return the first pods by rank."""
        self._sort()
        if len(self._by_shape) == 1:
            return list(islice(next(iter(self._by_shape.values())), count))
        in_order = heapq.merge(*self._by_shape.values(), key=rank_pod)
        return list(islice(in_order, count))

    def list_heads(self) -> Sequence[Pod]:
        """Return the first pod of each shape, by rank: the others of a shape get its answer."""
        self._sort()
        return sorted((pods[0] for pods in self._by_shape.values()), key=rank_pod)

    def _sort(self) -> None:
        if not self._is_sorted:
            self._is_sorted = True
            for shape, pods in self._by_shape.items():
                self._by_shape[shape] = deque(sorted(pods, key=rank_pod))


def rank_pod(pod: Pod) -> tuple[int, str]:
    """Return the order of the pods of a gang; equal ranks are ordered by uid."""
    return pod.rank, pod.uid

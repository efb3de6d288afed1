"""Who waited at a moment, and in which place of its project's queue."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from workloads.time_machine.records import PastWorkload


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A place, and how many waited there."""

    position: int
    length: int


def list_places(
    workloads: Iterable[PastWorkload], queued_statuses: Collection[str]
) -> Mapping[bytes, QueuePlace]:
    """Return the places of workloads in the queues of their projects, by id.

    The order is the scheduler's: a higher priority first, then what was asked for first. Who wants
    GPUs waits apart from who wants none.
    """
    queues: dict[tuple[bytes, int, bool], list[PastWorkload]] = defaultdict(list)
    for each in workloads:
        if each.status in queued_statuses:
            queues[each.cluster, each.project, each.wants_gpus].append(each)
    places = {}
    for queue in queues.values():
        queue.sort(key=lambda each: (-each.priority, each.requested_at, each.id))
        for number, each in enumerate(queue, start=1):
            places[each.id] = QueuePlace(number, len(queue))
    return places

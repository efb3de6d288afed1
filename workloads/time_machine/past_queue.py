"""Who waited at a moment, and in which place of its project's queue."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from workloads.time_machine.records import PastWorkload


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A place, and how many waited there."""

    position: int
    length: int


QueueKey = tuple[bytes, int, bool]
"""The cluster, the project, and whether GPUs are wanted: who wants none waits apart."""


def list_places(
    workloads: Iterable[PastWorkload],
    queued_statuses: Collection[str],
    wanted: Collection[PastWorkload],
) -> Mapping[bytes, QueuePlace]:
    """Return the places of the wanted workloads in the queues of their projects, by id.

    The order is the scheduler's: a higher priority first, then what was asked for first.
    """
    wanted_ids = {each.id for each in wanted}
    queues: dict[QueueKey, list[PastWorkload]] = {
        _find_queue(each): [] for each in wanted if each.status in queued_statuses
    }
    if not queues:
        return {}
    projects = {project for _, project, _ in queues}
    for each in workloads:
        is_queued = each.project in projects and each.status in queued_statuses
        if is_queued and (queue := queues.get(_find_queue(each))) is not None:
            queue.append(each)
    places = {}
    for queue in queues.values():
        queue.sort(key=attrgetter("requested_at", "requested_micros", "id"))
        queue.sort(key=attrgetter("priority"), reverse=True)
        for number, each in enumerate(queue, start=1):
            if each.id in wanted_ids:
                places[each.id] = QueuePlace(number, len(queue))
    return places


def _find_queue(workload: PastWorkload) -> QueueKey:
    return workload.cluster, workload.project, workload.wants_gpus

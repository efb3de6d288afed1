"""What an operator remembers of a job between two reconciliations, so that each costs what changed.

Nothing of it decides anything by itself: it says where to look first, and the store says what is
there. So it may be lost at any time, as at a restart.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from localkube.controllers.index_failures import IndexFailures
from localkube.controllers.job_indexes import PodIndexes

MAX_REMEMBERED_JOBS = 4096


@dataclass(slots=True)
class JobMemory:
    """What is remembered of one job."""

    next_indexes: dict[str, int] = field(default_factory=dict)
    """By replica type: below this index all pods were there."""
    removed_names: dict[str, None] = field(default_factory=dict)
    """Names of pods that were removed since they were there."""
    changed_names: dict[str, None] = field(default_factory=dict)
    """Names of pods that changed and were not looked at."""
    settled_uids: set[str] = field(default_factory=set)
    """Uids of failed pods that stay and are dealt with."""
    checked_generation: int | None = None
    """The generation of the spec for which surplus replicas were looked for."""
    surplus_names: deque[str] = field(default_factory=deque)
    """Names of the replicas that this generation no longer has."""
    pod_indexes: PodIndexes | None = None
    """The completion indexes of the pods of a batch Job; None until it needs them."""
    index_failures: IndexFailures | None = None
    """The failures of the indexes of a batch Job; None until it needs them."""
    checked_successes: tuple[int | None, set[int]] | None = None
    """The completions, and those completed, of a batch Job that fulfilled no success policy."""
    last_success: datetime | None = None
    """When a pod of a batch Job last succeeded."""
    hostfile_version: tuple[int, int] | None = None
    """The generation, and the version of the hostfile that is in line with it."""
    status_written_at: float | None = None
    """When the status was last written, in seconds."""


class JobMemories:
    """The memories of one operator's jobs, by uid; the least recently used are forgotten."""

    def __init__(self) -> None:
        self._memories: OrderedDict[str, JobMemory] = OrderedDict()

    def get(self, uid: str) -> JobMemory:
        """Return the memory of a job, an empty one at first."""
        memory = self._memories.setdefault(uid, JobMemory())
        self._memories.move_to_end(uid)
        if len(self._memories) > MAX_REMEMBERED_JOBS:
            self._memories.popitem(last=False)
        return memory

    def find(self, uid: str) -> JobMemory | None:
        return self._memories.get(uid)

    def forget(self, uid: str) -> None:
        self._memories.pop(uid, None)


def take_names(names: dict[str, None], limit: int) -> Iterator[str]:
    """Take the oldest names out of a collection, at most `limit`."""
    for _ in range(min(limit, len(names))):
        name = next(iter(names))
        del names[name]
        yield name

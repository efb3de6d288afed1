"""Events that wait to be written: fair between namespaces, bounded, and only about workloads."""

import time
from collections import Counter, deque
from dataclasses import dataclass

from workloads.following.sources import ListDone, ListPage
from workloads.journal import Observation, Subject, WorkloadNames, find_subjects, uid_of

EVENTS_OF_NAMESPACE = 1000
"""Events of one namespace that may wait. What comes beyond is left out, and counted."""
EVENTS_IN_ALL = 10_000
UNKNOWN_EVENTS = 4000
"""Events that may wait until it is known whether they are about a workload."""
EVENTS_AT_ONCE = 100
"""Events of one write at most: what happens to jobs and pods meanwhile waits for no more."""


@dataclass(frozen=True, slots=True)
class _UnknownEvent:
    """An event about nothing that was known when it arrived."""

    observation: Observation
    subjects: tuple[Subject, ...]
    arrived_at: float


class WaitingEvents:
    """Events by namespace, each in its latest state. Not safe for threads: its owner has a lock.

    An event about nothing of ours is dropped, but never before the names of workloads were read
    after its arrival: it may be about one that was made a moment ago.
    """

    def __init__(self, names: WorkloadNames) -> None:
        self._names = names
        self._namespaces: dict[str, dict[object, Observation]] = {}
        self._unknown: dict[object, _UnknownEvent] = {}
        self._pages: deque[ListPage | ListDone] = deque()
        self._count = 0
        self.left_out: Counter[Subject] = Counter()
        """How many events about which workload were left out."""

    def __len__(self) -> int:
        return self._count + len(self._pages)

    @property
    def has_unknown(self) -> bool:
        """Return whether the names of workloads have to be read for an event."""
        return bool(self._unknown)

    def add_page(self, page: ListPage | ListDone) -> None:
        """Let a part of a listing wait; its source puts no other before it is written."""
        self._pages.append(page)

    def add_event(self, observation: Observation, *, may_leave_out: bool) -> bool:
        """Let an event wait, drop it or leave it out. Return False if there is no room.

        Without `may_leave_out` a namespace that is full has no room.
        """
        if observation.is_gone:
            # The cluster forgets events after an hour; the history does not.
            return True
        subjects = find_subjects(observation.object)
        # Looked up once: the names may be read again by another thread meanwhile.
        if subject := self._find_known(subjects):
            return self._put_known(observation, subject, may_leave_out=may_leave_out)
        if subjects:
            key = uid_of(observation.object) or object()
            if len(self._unknown) >= UNKNOWN_EVENTS and key not in self._unknown:
                return False
            self._unknown[key] = _UnknownEvent(observation, subjects, time.monotonic())
        return True

    def sort_unknown(self) -> None:
        """Take up or drop the events that arrived before the names were read last."""
        for key, event in list(self._unknown.items()):
            if event.arrived_at > self._names.read_at:
                continue
            subject = self._find_known(event.subjects)
            if subject is None or self._put_known(event.observation, subject, may_leave_out=True):
                del self._unknown[key]

    def take(self, limit: int) -> list[Observation | ListPage | ListDone]:
        """Return the next events, one of each namespace in turn, then a part of a listing."""
        taken: list[Observation | ListPage | ListDone] = []
        while self._namespaces and len(taken) < limit:
            namespace = next(iter(self._namespaces))
            events = self._namespaces.pop(namespace)
            taken.append(events.pop(next(iter(events))))
            if events:
                self._namespaces[namespace] = events
        self._count -= len(taken)
        if self._pages:
            taken.append(self._pages.popleft())
        return taken

    def _find_known(self, subjects: tuple[Subject, ...]) -> Subject | None:
        return next((each for each in subjects if each in self._names), None)

    def _put_known(
        self, observation: Observation, subject: Subject, *, may_leave_out: bool
    ) -> bool:
        events = self._namespaces.get(subject.namespace, {})
        key = uid_of(observation.object) or object()
        if key not in events:
            if len(events) >= EVENTS_OF_NAMESPACE:
                if may_leave_out:
                    self.left_out[subject] += 1
                return may_leave_out
            if self._count >= EVENTS_IN_ALL:
                return False
            self._count += 1
        events[key] = observation
        self._namespaces[subject.namespace] = events
        return True

"""How many events of one workload are written: a bound for the history of each attempt."""

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workloads.journal.cluster_events import Subject
from workloads.journal.left_out_events import MAX_EVENTS, count_events
from workloads.journal.observed_objects import uid_of
from workloads.journal.workload_names import WorkloadNames
from workloads.kube_objects import Object
from workloads.models import Event, Workload

STEP = 1000
"""Events after which the rows are counted again."""
FULL_SECONDS = 1.0
"""Seconds for which an attempt counts as full; a next one may have begun, and has no events."""

MAX_ALLOWANCES = 10_000
"""Workloads that are remembered."""


@dataclass(slots=True)
class _Allowance:
    """How many events may still be written until the rows are counted again."""

    remaining: int
    full_until: float = 0.0


class EventAllowances:
    """Judges events of workloads whose attempt has as many as are kept."""

    def __init__(self, cluster_id: uuid.UUID, names: WorkloadNames) -> None:
        self._cluster_id = cluster_id
        self._names = names
        self._allowances: dict[Subject, _Allowance] = {}

    def select_events(self, events: Sequence[Object]) -> tuple[list[Object], Counter[Subject]]:
        """Return the events that can be written, and how many of which workload have no room.

        An event that is stored already has room: it has one row however often it is repeated.
        Rows are counted in one statement for all workloads that are new here.
        """
        subjects = [self._names.find_workload(each) for each in events]
        self._count_new(subject for subject in subjects if subject is not None)
        refused: dict[int, Subject] = {}
        selected: Counter[Subject] = Counter()
        for index, subject in enumerate(subjects):
            if subject is not None:
                if self._spend(subject, selected[subject]):
                    selected[subject] += 1
                else:
                    refused[index] = subject
        stored = self._find_stored_uids(
            {subject.name for subject in refused.values()},
            {uid_of(events[index]) for index in refused},
        )
        refused = {
            index: subject
            for index, subject in refused.items()
            if uid_of(events[index]) not in stored
        }
        kept_events = [each for index, each in enumerate(events) if index not in refused]
        return kept_events, Counter(refused.values())

    def _count_new(self, subjects: Iterable[Subject]) -> None:
        new = set(subjects) - self._allowances.keys()
        if not new:
            return
        if len(self._allowances) + len(new) > MAX_ALLOWANCES:
            self._allowances.clear()
        counts = count_events(self._cluster_id, new)
        for subject in new:
            self._allowances[subject] = _Allowance(_compute_remaining(counts[subject]))

    def _spend(self, subject: Subject, selected: int) -> bool:
        """Take room for one event; `selected` are those that are judged and not yet written."""
        allowance = self._allowances.get(subject)
        if allowance is None:
            # Forgotten a moment ago, because there are too many workloads.
            allowance = self._allowances[subject] = _Allowance(0)
        if allowance.remaining:
            allowance.remaining -= 1
            return True
        now = time.monotonic()
        if now < allowance.full_until:
            return False
        stored = count_events(self._cluster_id, [subject])[subject]
        remaining = _compute_remaining(stored + selected)
        if not remaining:
            allowance.full_until = now + FULL_SECONDS
            return False
        allowance.remaining = remaining - 1
        return True

    def _find_stored_uids(self, names: set[str], uids: set[str]) -> set[str]:
        """Return which of these events of workloads of these names have a row."""
        if not uids:
            return set()
        workloads = Workload.objects.filter(
            cluster=self._cluster_id, name__in=names, released_at=None
        )
        rows = Event.objects.filter(workload__in=workloads.order_by().values("pk"), uid__in=uids)
        return set(rows.order_by().values_list("uid", flat=True)) - {""}


def _compute_remaining(stored: int) -> int:
    return max(0, min(STEP, MAX_EVENTS - stored))

"""The names of a cluster's workloads, in memory: most of its events are about other things."""

import time
import uuid
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from workloads.journal.cluster_events import Subject, find_subjects
from workloads.kube_objects import Object
from workloads.models import Workload

REFRESH_SECONDS = 0.25
"""Minimum seconds between two looks for new workloads."""
REREAD_SECONDS = 600.0
"""Seconds after which all names are read again: workloads that are long gone are then forgotten."""
KEPT_AFTER_RELEASE = timedelta(hours=2)
"""How long events may still be about a workload that is gone; the cluster keeps them an hour."""


class WorkloadNames:
    """Which names are those of workloads. Only new and changed rows are read again."""

    def __init__(self, cluster_id: uuid.UUID) -> None:
        self._cluster_id = cluster_id
        self._names: set[Subject] = set()
        self._position = -1
        self._reread_at = 0.0
        self.read_at = -REREAD_SECONDS
        """When the names were read last, by the monotonic clock: none before that is missing."""

    def __contains__(self, subject: Subject) -> bool:
        return subject in self._names

    def find_workload(self, event: Object) -> Subject | None:
        """Return the workload that an event may be about, None if there is none."""
        return next((each for each in find_subjects(event) if each in self._names), None)

    @property
    def is_refresh_due(self) -> bool:
        """Return whether the last look for new workloads is long enough ago."""
        return time.monotonic() - self.read_at >= REFRESH_SECONDS

    def refresh(self) -> None:
        """Read the names of the workloads that are new since the last look."""
        now = time.monotonic()
        is_reread = now >= self._reread_at
        position = -1 if is_reread else self._position
        recent = timezone.now() - KEPT_AFTER_RELEASE
        rows = Workload.objects.filter(
            Q(released_at=None) | Q(released_at__gte=recent),
            cluster=self._cluster_id,
            changed__gt=position,
        ).order_by()
        entries = list(rows.values_list("project__namespace", "name", "changed"))
        names = {Subject(namespace, name) for namespace, name, _ in entries}
        if is_reread:
            self._names, self._reread_at = names, now + REREAD_SECONDS
        else:
            self._names |= names
        self._position = max([position, *(changed for _, _, changed in entries)])
        self.read_at = now

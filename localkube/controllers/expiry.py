"""Removal of expired objects: old events, and finished Jobs with a time to live."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from localkube import clock
from localkube.controllers.job_rules import find_end_condition
from localkube.controllers.loop import Key, Trigger
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, is_terminating, uid_of
from localkube.objects import Objects
from localkube.resources import EVENTS, JOBS
from localkube.resources.resource import Resource
from localkube.store import Change

MAX_EVENT_AGE = timedelta(hours=1)
MAX_EVENTS_PER_NAMESPACE = 5000

MIN_PAUSE_SECONDS = 5.0
"""The least seconds between two timer-driven cleanups of a namespace, so that events go in batches.
"""


EVENTS_PER_RECONCILE = 20
"""Events that one reconciliation deletes: about 10 ms of work."""


class EventExpiry:
    """Delete events an hour after their last write, and a namespace's oldest ones above a limit.

    A real cluster keeps events for one hour too.
    """

    name = "event-expiry"

    def __init__(
        self,
        objects: Objects,
        *,
        max_age: timedelta = MAX_EVENT_AGE,
        max_events: int = MAX_EVENTS_PER_NAMESPACE,
    ) -> None:
        self._objects = objects
        self._max_age = max_age
        self._max_events = max_events
        self._write_times: dict[str, OrderedDict[str, datetime]] = {}
        self._sorted_namespaces: set[str] = set()

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {EVENTS: self._event_changed}

    def reconcile(self, key: Key) -> float | None:
        namespace, _ = key
        if namespace not in self._sorted_namespaces:
            self._sort_events(namespace)
        write_times = self._write_times.get(namespace, OrderedDict())
        oldest_allowed = clock.current_time() - self._max_age
        for _ in range(EVENTS_PER_RECONCILE):
            if not write_times:
                return None
            name, write_time = next(iter(write_times.items()))
            if write_time > oldest_allowed and len(write_times) <= self._max_events:
                return max(MIN_PAUSE_SECONDS, (write_time - oldest_allowed).total_seconds())
            del write_times[name]
            if self._objects.find(EVENTS, namespace, name) is not None:
                self._objects.delete(EVENTS, namespace, name)
        return 0

    def _event_changed(self, change: Change) -> Iterator[Key]:
        """Keep each namespace's events in the order of their last write."""
        write_times = self._write_times.setdefault(change.record.namespace, OrderedDict())
        if change.type == "DELETED":
            write_times.pop(change.record.name, None)
            return
        write_times[change.record.name] = clock.current_time()
        write_times.move_to_end(change.record.name)
        yield change.record.namespace, ""

    def _sort_events(self, namespace: str) -> None:
        """Order the events that existed at the start by the times that they carry.

        Nobody saw those being written.
        """
        known_times = self._write_times.get(namespace, OrderedDict())
        records = self._objects.store.list(EVENTS.key, namespace)
        entries = (
            (record.name, known_times.get(record.name) or _last_write_time(record.decode()))
            for record in records
        )
        self._write_times[namespace] = OrderedDict(sorted(entries, key=lambda entry: entry[1]))
        self._sorted_namespaces.add(namespace)


class JobExpiry:
    """Delete a finished Job `ttlSecondsAfterFinished` seconds after its end, its pods first."""

    name = "ttl-after-finished-controller"

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {
            JOBS: lambda change: (
                () if change.type == "DELETED" else ((change.record.namespace, change.record.name),)
            )
        }

    def reconcile(self, key: Key) -> float | None:
        job = self._objects.find(JOBS, *key)
        if job is None or is_terminating(job):
            return None
        ttl, end = job["spec"].get("ttlSecondsAfterFinished"), _finish_time(job)
        if ttl is None or end is None:
            return None
        seconds_left = (end + clock.bound_seconds(ttl) - clock.current_time()).total_seconds()
        if seconds_left > 0:
            return seconds_left
        self._objects.delete(
            JOBS, *key, DeleteOptions(propagation_policy="Foreground", uid=uid_of(job))
        )
        return None


def _last_write_time(event: Object) -> datetime:
    """Return when an event that existed at the start was probably last written.

    The event's own times may say anything, so they are limited to between its creation and now.
    """
    creation = clock.parse_time(event["metadata"]["creationTimestamp"])
    series = event.get("series") or {}
    text = (
        series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or ""
    )
    try:
        return max(creation, min(clock.parse_time(str(text)), clock.current_time()))
    except ValueError:
        return creation


def _finish_time(job: Object) -> datetime | None:
    end = find_end_condition(job)
    if end is None:
        return None
    time = end.get("lastTransitionTime") or job["metadata"]["creationTimestamp"]
    return clock.parse_time(str(time))

"""Removes what has had its time: old events, and finished Jobs with a time to live."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from localkube import clock
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
"""Seconds at least until a timer looks at a namespace's events again, so that they go in batches.
"""


class EventExpiry:
    """Deletes events an hour after they were last written, as a real cluster does, and the oldest
    of a namespace above a bound.
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
        written = self._write_times.get(namespace, OrderedDict())
        oldest_allowed = clock.now() - self._max_age
        while written:
            name, when = next(iter(written.items()))
            if when > oldest_allowed and len(written) <= self._max_events:
                return max(MIN_PAUSE_SECONDS, (when - oldest_allowed).total_seconds())
            del written[name]
            if self._objects.find(EVENTS, namespace, name) is not None:
                self._objects.delete(EVENTS, namespace, name)
        return None

    def _event_changed(self, change: Change) -> Iterator[Key]:
        """Keep the events of each namespace in the order of their last write."""
        written = self._write_times.setdefault(change.record.namespace, OrderedDict())
        if change.type == "DELETED":
            written.pop(change.record.name, None)
            return
        written[change.record.name] = clock.now()
        written.move_to_end(change.record.name)
        yield change.record.namespace, ""

    def _sort_events(self, namespace: str) -> None:
        """Take the times of the events that were there at the start from themselves: nobody saw
        them written.
        """
        seen = self._write_times.get(namespace, OrderedDict())
        records = self._objects.store.list(EVENTS.key, namespace)
        found = (
            (record.name, seen.get(record.name) or _last_write_time(record.decode()))
            for record in records
        )
        self._write_times[namespace] = OrderedDict(sorted(found, key=lambda each: each[1]))
        self._sorted_namespaces.add(namespace)


class JobExpiry:
    """Deletes a finished Job, and its pods before it, `ttlSecondsAfterFinished` seconds after its
    end.
    """

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
        left = (end + timedelta(seconds=int(ttl)) - clock.now()).total_seconds()
        if left > 0:
            return left
        self._objects.delete(
            JOBS, *key, DeleteOptions(propagation_policy="Foreground", uid=uid_of(job))
        )
        return None


def _last_write_time(event: Object) -> datetime:
    """When an event that was there at the start was last written, as well as it tells: its own
    times may say anything.
    """
    made = clock.parse_time(event["metadata"]["creationTimestamp"])
    series = event.get("series") or {}
    text = (
        series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or ""
    )
    try:
        return max(made, min(clock.parse_time(str(text)), clock.now()))
    except ValueError:
        return made


def _finish_time(job: Object) -> datetime | None:
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return clock.parse_time(
                str(condition.get("lastTransitionTime") or job["metadata"]["creationTimestamp"])
            )
    return None

"""The event recorder: writes what a component did or met as events about the object concerned."""

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from localkube import clock
from localkube.errors import ApiError
from localkube.metadata import Object, name_of, namespace_of, uid_of
from localkube.objects import Objects
from localkube.resources import EVENTS

MESSAGE_BYTES = 1024
"""Most bytes of an event's message, the API's own bound."""

REPEAT_WINDOW = timedelta(hours=1)
MAX_REMEMBERED_EVENTS = 4096
"""How many recent events a recorder remembers.

The repetition of a remembered event is counted and not written again.
"""

SIMILAR_WINDOW = timedelta(minutes=10)
MAX_SIMILAR_EVENTS = 10
"""How many events about one object, of one type and reason, are written within SIMILAR_WINDOW.

Later ones are combined into one, as client-go does it: ten thousand pods of a job are else ten
thousand events about the job.
"""

COMBINED_PREFIX = "(combined from similar events): "
"""How the message of combined events starts (client-go `tools/record/events_cache.go`)."""

REPEAT_PAUSE = timedelta(seconds=1)
"""The least time between two writes of an event that was written MAX_SIMILAR_EVENTS times.

What repeats meanwhile is counted with the next one.
"""

log = logging.getLogger(__name__)

EventIdentity = tuple[str, str, str, str, str]
"""Uid of the object, type, reason, message and path of the field."""


@dataclass(slots=True)
class RecentEvent:
    """An event that was written a short while ago."""

    namespace: str
    name: str
    last: datetime
    """When it last happened."""
    written_at: datetime
    writes: int = 1
    uncounted: int = 0
    """How often it has happened since it was last written."""


@dataclass(slots=True)
class SimilarEvents:
    """The events about one object, of one type and reason."""

    first: datetime
    count: int = 0


class EventRecorder:
    """Writes events in one component's name.

    `host` is the node for a component that runs on one (the kubelet). `modern` chooses the form of
    events.k8s.io that the real scheduler writes (eventTime, action, reportingComponent, series);
    otherwise firstTimestamp, lastTimestamp and count.
    """

    def __init__(
        self, objects: Objects, component: str, *, host: str = "", modern: bool = False
    ) -> None:
        self._objects = objects
        self._component = component
        self._host = host
        self._modern = modern
        self._recent_events: OrderedDict[EventIdentity, RecentEvent] = OrderedDict()
        self._similar_events: OrderedDict[tuple[str, str, str], SimilarEvents] = OrderedDict()

    def record_event(
        self,
        involved_object: Object,
        type: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        action: str = "",
        field_path: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Write an event about an object; a repetition within an hour only raises its count.

        Many similar ones become one, whose message is that of the last. `message` is cut to 1024
        bytes. Never raises: an event in a namespace that is absent or being deleted, or that the
        full disk refuses, is lost. `action` is for the modern form; `field_path` names a part of
        the object, as `spec.containers{NAME}`.
        """
        message = _truncate_message(message)
        namespace = namespace_of(involved_object) or "default"
        now = clock.current_time()
        identity = (uid_of(involved_object), type, reason, message, field_path)
        if identity not in self._recent_events and self._is_flood(identity, now):
            message = _truncate_message(COMBINED_PREFIX + message)
            identity = (uid_of(involved_object), type, reason, COMBINED_PREFIX, field_path)
        try:
            if not self._count_repetition(identity, message, now):
                event = self._build_event(
                    involved_object, namespace, type, reason, message, action, field_path, now
                )
                if annotations:
                    event["metadata"]["annotations"] = dict(annotations)
                name = self._create_event(namespace, event)
                self._remember_event(identity, namespace, name, now)
        except ApiError as refusal:
            log.debug(
                "the event %s about %s/%s was lost: %s",
                reason,
                namespace,
                name_of(involved_object),
                refusal.message,
            )

    def _is_flood(self, identity: EventIdentity, now: datetime) -> bool:
        """Count a new event; return whether there were too many similar ones lately."""
        uid, type, reason, _, _ = identity
        similar = self._similar_events.setdefault((uid, type, reason), SimilarEvents(now))
        self._similar_events.move_to_end((uid, type, reason))
        while len(self._similar_events) > MAX_REMEMBERED_EVENTS:
            self._similar_events.popitem(last=False)
        if now - similar.first > SIMILAR_WINDOW:
            similar.first, similar.count = now, 0
        similar.count += 1
        return similar.count > MAX_SIMILAR_EVENTS

    def _count_repetition(self, identity: EventIdentity, message: str, now: datetime) -> bool:
        recent = self._recent_events.get(identity)
        if recent is None:
            return False
        # The event may have expired meanwhile: then it is written anew.
        if now - recent.last > REPEAT_WINDOW or not self._exists(recent):
            return False
        recent.last = now
        recent.uncounted += 1
        self._recent_events.move_to_end(identity)
        # A clock that was set back must not end the counting.
        pause = abs(now - recent.written_at)
        if recent.writes < MAX_SIMILAR_EVENTS or pause >= REPEAT_PAUSE:
            self._write_repetition(recent, message, now)
        return True

    def _exists(self, event: RecentEvent) -> bool:
        return self._objects.store.find(EVENTS.key, event.namespace, event.name) is not None

    def _write_repetition(self, recent: RecentEvent, message: str, now: datetime) -> None:
        def change(event: Object) -> None:
            event["message"] = message
            self._raise_count(event, recent.uncounted, now)

        self._objects.modify(EVENTS, recent.namespace, recent.name, change)
        recent.writes += 1
        recent.written_at, recent.uncounted = now, 0

    def _raise_count(self, event: Object, added: int, now: datetime) -> None:
        if self._modern:
            count = (event.get("series") or {}).get("count", 1)
            event["series"] = {
                "count": count + added,
                "lastObservedTime": clock.format_micro_time(now),
            }
        else:
            event["count"] = event.get("count", 1) + added
            event["lastTimestamp"] = clock.format_time(now)

    def _create_event(self, namespace: str, event: Object) -> str:
        return name_of(self._objects.create(EVENTS, namespace, event))

    def _remember_event(
        self, identity: EventIdentity, namespace: str, name: str, now: datetime
    ) -> None:
        self._recent_events[identity] = RecentEvent(namespace, name, now, now)
        self._recent_events.move_to_end(identity)
        while len(self._recent_events) > MAX_REMEMBERED_EVENTS:
            self._recent_events.popitem(last=False)

    def _build_event(
        self,
        involved_object: Object,
        namespace: str,
        type: str,
        reason: str,
        message: str,
        action: str,
        field_path: str,
        now: datetime,
    ) -> Object:
        reference: Object = {
            "apiVersion": involved_object["apiVersion"],
            "kind": involved_object["kind"],
            "name": name_of(involved_object),
            "uid": uid_of(involved_object),
        }
        if namespace_of(involved_object):
            reference["namespace"] = namespace
        if version := involved_object["metadata"].get("resourceVersion"):
            reference["resourceVersion"] = version
        if field_path:
            reference["fieldPath"] = field_path
        event: Object = {
            "metadata": {
                "name": f"{name_of(involved_object)[:230]}.{time.time_ns():x}",
                "namespace": namespace,
            },
            "involvedObject": reference,
            "reason": reason,
            "message": message,
            "type": type,
            "reportingComponent": self._component,
        }
        if self._modern:
            return event | self._build_modern_part(action or reason, now)
        return event | self._build_legacy_part(now)

    def _build_modern_part(self, action: str, now: datetime) -> Object:
        return {
            "source": {},
            "eventTime": clock.format_micro_time(now),
            "action": action,
            "reportingInstance": f"{self._component}-{self._host or '127.0.0.1'}",
        }

    def _build_legacy_part(self, now: datetime) -> Object:
        source = {"component": self._component} | ({"host": self._host} if self._host else {})
        timestamp = clock.format_time(now)
        return {
            "source": source,
            "firstTimestamp": timestamp,
            "lastTimestamp": timestamp,
            "count": 1,
            "eventTime": None,
            "reportingInstance": self._host,
        }


def _truncate_message(message: str) -> str:
    """Cut a message to 1024 bytes of UTF-8, ending in an ellipsis where it was cut."""
    raw = message.encode()
    if len(raw) <= MESSAGE_BYTES:
        return message
    return raw[: MESSAGE_BYTES - 3].decode(errors="ignore") + "..."

"""The event recorder: writes what a component did or met as events about the object concerned."""

import logging
import time
from collections import OrderedDict
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

log = logging.getLogger(__name__)

EventIdentity = tuple[str, str, str, str, str]


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
        self._recent_events: OrderedDict[EventIdentity, tuple[str, str, datetime]] = OrderedDict()

    def record_event(
        self,
        involved_object: Object,
        type: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        action: str = "",
        field_path: str = "",
    ) -> None:
        """Write an event about an object; a repetition within an hour only raises its count.

        `message` is cut to 1024 bytes. Never raises: an event in a namespace that is absent or
        being deleted, or that the full disk refuses, is lost. `action` is for the modern form;
        `field_path` names a part of the object, as `spec.containers{NAME}`.
        """
        message = _truncate_message(message)
        identity = (uid_of(involved_object), type, reason, message, field_path)
        namespace = namespace_of(involved_object) or "default"
        now = clock.current_time()
        try:
            if not self._count_repetition(identity, now):
                name = self._create_event(
                    namespace,
                    self._build_event(
                        involved_object, namespace, type, reason, message, action, field_path, now
                    ),
                )
                self._remember_event(identity, namespace, name, now)
        except ApiError as refusal:
            log.debug(
                "the event %s about %s/%s was lost: %s",
                reason,
                namespace,
                name_of(involved_object),
                refusal.message,
            )

    def _count_repetition(self, identity: EventIdentity, now: datetime) -> bool:
        if identity not in self._recent_events:
            return False
        namespace, name, last = self._recent_events[identity]
        # The event may have expired meanwhile: then it is written anew.
        if now - last > REPEAT_WINDOW or self._objects.find(EVENTS, namespace, name) is None:
            return False
        self._objects.modify(EVENTS, namespace, name, lambda event: self._raise_count(event, now))
        self._remember_event(identity, namespace, name, now)
        return True

    def _raise_count(self, event: Object, now: datetime) -> None:
        if self._modern:
            count = (event.get("series") or {}).get("count", 1)
            event["series"] = {"count": count + 1, "lastObservedTime": clock.format_micro_time(now)}
        else:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = clock.format_time(now)

    def _create_event(self, namespace: str, event: Object) -> str:
        return name_of(self._objects.create(EVENTS, namespace, event))

    def _remember_event(
        self, identity: EventIdentity, namespace: str, name: str, now: datetime
    ) -> None:
        self._recent_events[identity] = (namespace, name, now)
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

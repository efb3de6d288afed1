"""Writes events: what a component did or met, told about the object that it concerns."""

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
"""The API's bound on an event's message."""

REPEAT_WITHIN = timedelta(hours=1)
REMEMBERED = 4096
"""How many told events a recorder remembers in order to count a repetition instead of writing it
again.
"""

log = logging.getLogger(__name__)

Identity = tuple[str, str, str, str, str]


class Recorder:
    """Tells events in one component's name.

    `host` is the node for a component that runs on one (the kubelet). `modern` gives the form of
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
        self._told: OrderedDict[Identity, tuple[str, str, datetime]] = OrderedDict()

    def event(
        self,
        about: Object,
        type: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        action: str = "",
        field_path: str = "",
    ) -> None:
        """Tell `message` (cut to 1024 bytes) about an object; the same again within an hour only
        raises the count.

        Never raises: an event about something in a namespace that is gone or going, or that the
        full disk refuses, is lost. `action` is for the modern form; `field_path` names a part of
        the object, as `spec.containers{NAME}`.
        """
        message = _cut(message)
        identity = (uid_of(about), type, reason, message, field_path)
        namespace = namespace_of(about) or "default"
        now = clock.now()
        try:
            if not self._told_again(identity, now):
                name = self._tell(
                    namespace,
                    self._describe(
                        about, namespace, type, reason, message, action, field_path, now
                    ),
                )
                self._remember(identity, namespace, name, now)
        except ApiError as refusal:
            log.debug(
                "the event %s about %s/%s was lost: %s",
                reason,
                namespace,
                name_of(about),
                refusal.message,
            )

    def _told_again(self, identity: Identity, now: datetime) -> bool:
        if identity not in self._told:
            return False
        namespace, name, last = self._told[identity]
        if now - last > REPEAT_WITHIN or self._objects.find(EVENTS, namespace, name) is None:
            return False
        self._objects.modify(EVENTS, namespace, name, lambda event: self._count(event, now))
        self._remember(identity, namespace, name, now)
        return True

    def _count(self, event: Object, now: datetime) -> None:
        if self._modern:
            told = (event.get("series") or {}).get("count", 1)
            event["series"] = {"count": told + 1, "lastObservedTime": clock.micro(now)}
        else:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = clock.stamp(now)

    def _tell(self, namespace: str, event: Object) -> str:
        return name_of(self._objects.create(EVENTS, namespace, event))

    def _remember(self, identity: Identity, namespace: str, name: str, now: datetime) -> None:
        self._told[identity] = (namespace, name, now)
        self._told.move_to_end(identity)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    def _describe(
        self,
        about: Object,
        namespace: str,
        type: str,
        reason: str,
        message: str,
        action: str,
        field_path: str,
        now: datetime,
    ) -> Object:
        involved: Object = {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": name_of(about),
            "uid": uid_of(about),
        }
        if namespace_of(about):
            involved["namespace"] = namespace
        if version := about["metadata"].get("resourceVersion"):
            involved["resourceVersion"] = version
        if field_path:
            involved["fieldPath"] = field_path
        event: Object = {
            "metadata": {
                "name": f"{name_of(about)[:230]}.{time.time_ns():x}",
                "namespace": namespace,
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": type,
            "reportingComponent": self._component,
        }
        return event | (
            self._modern_part(action or reason, now) if self._modern else self._legacy_part(now)
        )

    def _modern_part(self, action: str, now: datetime) -> Object:
        return {
            "source": {},
            "eventTime": clock.micro(now),
            "action": action,
            "reportingInstance": f"{self._component}-{self._host or '127.0.0.1'}",
        }

    def _legacy_part(self, now: datetime) -> Object:
        source = {"component": self._component} | ({"host": self._host} if self._host else {})
        seen = clock.stamp(now)
        return {
            "source": source,
            "firstTimestamp": seen,
            "lastTimestamp": seen,
            "count": 1,
            "eventTime": None,
            "reportingInstance": self._host,
        }


def _cut(message: str) -> str:
    """At most 1024 bytes of UTF-8, ending in an ellipsis where something was left out."""
    raw = message.encode()
    if len(raw) <= MESSAGE_BYTES:
        return message
    return raw[: MESSAGE_BYTES - 3].decode(errors="ignore") + "..."

"""Events: one store, two shapes. Core v1 is what is stored; events.k8s.io/v1 is a view of it
(`facts/engine.md` 6.4).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from localkube.errors import Cause, required
from localkube.metadata import Object
from localkube.resources import names
from localkube.resources.causes import invalid
from localkube.resources.cells import NAME, since
from localkube.resources.fields import find, text
from localkube.resources.resource import Column, Resource

NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Core v1 field to its name in events.k8s.io/v1; the others are called the same in both."""

_BACK = {modern: core for core, modern in NAMES.items()}

ALWAYS: Mapping[str, Any] = {
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
"""What an event shows even when it is not set."""


def to_modern(event: Object) -> Object:
    """A stored event in the shape of events.k8s.io/v1."""
    return {NAMES.get(key, key): value for key, value in event.items()} | {
        "apiVersion": "events.k8s.io/v1"
    }


def to_core(event: Object) -> Object:
    """An event of events.k8s.io/v1 in the shape that is stored."""
    return {_BACK.get(key, key): value for key, value in event.items()} | {"apiVersion": "v1"}


def fill_event(event: Object) -> None:
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for key, value in ALWAYS.items():
        event.setdefault(key, value)


def fill_modern(event: Object) -> None:
    stored = to_core(event)
    fill_event(stored)
    event |= to_modern(stored)


def check_event(event: Object, old: Object | None) -> list[Cause]:
    """The legacy rules: an event lives beside what it is about; a new-style one says who reports
    what was done.
    """
    about, here = (
        (event.get("involvedObject") or {}).get("namespace") or "",
        event["metadata"].get("namespace") or "",
    )
    causes = []
    if (about or "default") != here and not (not about and here in ("", "default")):
        causes.append(invalid("involvedObject.namespace", about, "does not match event.namespace"))
    return causes + (_check_reporter(event, "reportingComponent") if event.get("eventTime") else [])


def check_modern(event: Object, old: Object | None) -> list[Cause]:
    causes = [] if old is not None or event.get("eventTime") else [required("eventTime")]
    return causes + [
        Cause(c.reason, c.message, c.field.replace("reportingComponent", "reportingController"))
        for c in check_event(to_core(event), old)
    ]


def _check_reporter(event: Object, field: str) -> list[Cause]:
    reporter = event.get("reportingComponent") or ""
    causes = (
        [invalid(field, reporter, wrong) for wrong in names.qualified(reporter)]
        if reporter
        else [required(field)]
    )
    return causes + [
        required(part) for part in ("reportingInstance", "action", "reason") if not event.get(part)
    ]


def _first(event: Object) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"))


def _last(event: Object) -> str:
    series = event.get("series")
    if series:
        return since(series.get("lastObservedTime"))
    return since(event["lastTimestamp"]) if event.get("lastTimestamp") else _first(event)


def _count(event: Object) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def _object(event: Object) -> str:
    about = event.get("involvedObject") or {}
    kind = str(about.get("kind", "")).lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _source(event: Object) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


COLUMNS = (
    Column("Last Seen", _last),
    Column("Type", lambda event: event.get("type", "")),
    Column("Reason", lambda event: event.get("reason", "")),
    Column("Object", _object),
    Column(
        "Subobject", lambda event: find(event, ("involvedObject", "fieldPath")) or "", priority=1
    ),
    Column("Source", _source, priority=1),
    Column("Message", lambda event: str(event.get("message") or "").strip()),
    Column("First Seen", _first, priority=1),
    Column("Count", _count, priority=1),
    replace(NAME, priority=1),
)


def _modern(column: Column) -> Column:
    cell: Callable[[Object], Any] = column.cell
    return replace(column, cell=lambda event: cell(to_core(event)))


def _reporter(event: Object) -> str:
    return str(event.get("reportingComponent") or "")


_PARTS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SHARED = {"reason": text("reason"), "type": text("type")}
_CORE_FIELDS = {
    **_SHARED,
    **{f"involvedObject.{part}": text("involvedObject", part) for part in _PARTS},
    "reportingComponent": _reporter,
    "source": lambda event: str(find(event, ("source", "component")) or _reporter(event)),
}
# Read from the stored shape, as all fields are: by the names of the view.
_MODERN_FIELDS = {
    **_SHARED,
    **{f"regarding.{part}": text("involvedObject", part) for part in _PARTS},
    "reportingController": _reporter,
}

EVENTS = Resource(
    "",
    "v1",
    "events",
    "Event",
    columns=COLUMNS,
    short_names=("ev",),
    # The store keeps the fields of both shapes with an event, so those of the view can be asked for
    # here too.
    field_selectors=_CORE_FIELDS | _MODERN_FIELDS,
    schema="events",
    defaults=fill_event,
    validate=check_event,
    generation=False,
)

EVENTS_V1 = Resource(
    "events.k8s.io",
    "v1",
    "events",
    "Event",
    columns=tuple(_modern(column) for column in COLUMNS),
    short_names=("ev",),
    field_selectors=_MODERN_FIELDS,
    schema="events-v1",
    defaults=fill_modern,
    validate=check_modern,
    generation=False,
    storage=EVENTS,
    read=to_modern,
    write=to_core,
)

"""Events: one store, two forms.

Core v1 is what is stored; events.k8s.io/v1 is a view of it (`facts/engine.md` 6.4).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from localkube.errors import Cause, required_cause
from localkube.metadata import Object
from localkube.resources import name_rules
from localkube.resources.causes import invalid_value_cause
from localkube.resources.field_readers import find_value, text_reader
from localkube.resources.resource import Column, Resource
from localkube.resources.table_cells import NAME, format_since

MODERN_FIELD_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Core v1 field to its name in events.k8s.io/v1; the others are called the same in both."""

_CORE_FIELD_NAMES = {modern: core for core, modern in MODERN_FIELD_NAMES.items()}

ALWAYS_PRESENT: Mapping[str, Any] = {
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
"""Fields that an event shows even when they are not set."""


def convert_to_modern(event: Object) -> Object:
    """Convert a stored event to the form of events.k8s.io/v1."""
    return {MODERN_FIELD_NAMES.get(key, key): value for key, value in event.items()} | {
        "apiVersion": "events.k8s.io/v1"
    }


def convert_to_core(event: Object) -> Object:
    """Convert an event of events.k8s.io/v1 to the form that is stored."""
    return {_CORE_FIELD_NAMES.get(key, key): value for key, value in event.items()} | {
        "apiVersion": "v1"
    }


def set_event_defaults(event: Object) -> None:
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for key, value in ALWAYS_PRESENT.items():
        event.setdefault(key, value)


def set_modern_event_defaults(event: Object) -> None:
    stored = convert_to_core(event)
    set_event_defaults(stored)
    event |= convert_to_modern(stored)


def check_event(event: Object, old: Object | None) -> list[Cause]:
    """Return the problems of an event, by the legacy rules.

    An event lives in the namespace of the object concerned; a new-style one names reporter, action
    and reason.
    """
    object_namespace, event_namespace = (
        (event.get("involvedObject") or {}).get("namespace") or "",
        event["metadata"].get("namespace") or "",
    )
    causes = []
    if (object_namespace or "default") != event_namespace and not (
        not object_namespace and event_namespace in ("", "default")
    ):
        causes.append(
            invalid_value_cause(
                "involvedObject.namespace", object_namespace, "does not match event.namespace"
            )
        )
    return causes + (_check_reporter(event, "reportingComponent") if event.get("eventTime") else [])


def check_modern_event(event: Object, old: Object | None) -> list[Cause]:
    causes = [] if old is not None or event.get("eventTime") else [required_cause("eventTime")]
    return causes + [
        Cause(c.reason, c.message, c.field.replace("reportingComponent", "reportingController"))
        for c in check_event(convert_to_core(event), old)
    ]


def _check_reporter(event: Object, field: str) -> list[Cause]:
    reporter = event.get("reportingComponent") or ""
    causes = [required_cause(field)]
    if reporter:
        causes = [
            invalid_value_cause(field, reporter, text)
            for text in name_rules.check_qualified_name(reporter)
        ]
    return causes + [
        required_cause(part)
        for part in ("reportingInstance", "action", "reason")
        if not event.get(part)
    ]


def _format_first_seen(event: Object) -> str:
    return format_since(event.get("firstTimestamp") or event.get("eventTime"))


def _format_last_seen(event: Object) -> str:
    series = event.get("series")
    if series:
        return format_since(series.get("lastObservedTime"))
    if event.get("lastTimestamp"):
        return format_since(event["lastTimestamp"])
    return _format_first_seen(event)


def _get_count(event: Object) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def _format_object(event: Object) -> str:
    reference = event.get("involvedObject") or {}
    kind = str(reference.get("kind", "")).lower()
    return f"{kind}/{reference['name']}" if reference.get("name") else kind


def _format_source(event: Object) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


COLUMNS = (
    Column("Last Seen", _format_last_seen),
    Column("Type", lambda event: event.get("type", "")),
    Column("Reason", lambda event: event.get("reason", "")),
    Column("Object", _format_object),
    Column(
        "Subobject",
        lambda event: find_value(event, ("involvedObject", "fieldPath")) or "",
        priority=1,
    ),
    Column("Source", _format_source, priority=1),
    Column("Message", lambda event: str(event.get("message") or "").strip()),
    Column("First Seen", _format_first_seen, priority=1),
    Column("Count", _get_count, priority=1),
    replace(NAME, priority=1),
)


def _convert_column(column: Column) -> Column:
    cell: Callable[[Object], Any] = column.cell
    return replace(column, cell=lambda event: cell(convert_to_core(event)))


def _get_reporter(event: Object) -> str:
    return str(event.get("reportingComponent") or "")


_OBJECT_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SHARED_FIELDS = {"reason": text_reader("reason"), "type": text_reader("type")}
_CORE_FIELDS = {
    **_SHARED_FIELDS,
    **{f"involvedObject.{part}": text_reader("involvedObject", part) for part in _OBJECT_FIELDS},
    "reportingComponent": _get_reporter,
    "source": lambda event: str(find_value(event, ("source", "component")) or _get_reporter(event)),
}
# The values come from the stored form, as those of all fields; the names are the view's.
_MODERN_FIELDS = {
    **_SHARED_FIELDS,
    **{f"regarding.{part}": text_reader("involvedObject", part) for part in _OBJECT_FIELDS},
    "reportingController": _get_reporter,
}

EVENTS = Resource(
    "",
    "v1",
    "events",
    "Event",
    columns=COLUMNS,
    short_names=("ev",),
    # The store indexes an event once for both forms, so the fields of the view must be here too.
    field_selectors=_CORE_FIELDS | _MODERN_FIELDS,
    schema="events",
    set_defaults=set_event_defaults,
    validate=check_event,
    generation=False,
)

EVENTS_V1 = Resource(
    "events.k8s.io",
    "v1",
    "events",
    "Event",
    columns=tuple(_convert_column(column) for column in COLUMNS),
    short_names=("ev",),
    field_selectors=_MODERN_FIELDS,
    schema="events-v1",
    set_defaults=set_modern_event_defaults,
    validate=check_modern_event,
    generation=False,
    storage=EVENTS,
    from_stored=convert_to_modern,
    to_stored=convert_to_core,
)

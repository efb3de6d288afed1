"""Reads Kubernetes events, in the old and the new form."""

from collections.abc import Iterable, Sequence

from workloads.observed import Object, part


def about(events: Iterable[Object], name: str) -> Sequence[Object]:
    """The events about the object of this name."""
    return [event for event in events if (part(event, "involvedObject") or part(event, "regarding")).get("name") == name]


def newest(events: Iterable[Object], *reasons: str) -> Object | None:
    """The last event with one of these reasons."""
    return max((event for event in events if event.get("reason") in reasons), key=_time, default=None)


def _time(event: Object) -> str:
    times = (
        part(event, "series").get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        part(event, "metadata").get("creationTimestamp"),
    )
    return next((str(time) for time in times if time), "")

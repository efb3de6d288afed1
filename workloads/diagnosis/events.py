"""Readers of Kubernetes events, in the old and the new form."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from workloads.kube_objects import (
    Object,
    clean_text,
    get_involved_object,
    is_intermediate_job,
    nested_dict,
)

_COMBINED = "(combined from similar events): "
"""How events begin from the eleventh similar one on."""


def filter_events_about(events: Iterable[Object], name: str) -> Sequence[Object]:
    """Return the events about the object of this name."""
    return [event for event in events if get_involved_object(event).get("name") == name]


def filter_job_events(events: Iterable[Object], job: Object) -> Sequence[Object]:
    """Return the events about a job, and about the batch Jobs that its operator creates."""
    name, job_events = str(nested_dict(job, "metadata").get("name") or ""), []
    for event in events:
        subject = get_involved_object(event)
        if subject.get("name") == name or is_intermediate_job(subject, job.get("kind"), name):
            job_events.append(event)
    return job_events


def find_newest(events: Iterable[Object], *reasons: str) -> Object | None:
    """Return the last event with one of these reasons; None where there is none."""
    return max(
        (event for event in events if event.get("reason") in reasons), key=get_time, default=None
    )


def get_text(event: Object) -> str:
    """Return what an event says, bounded and without control bytes."""
    return clean_text(event.get("message") or event.get("note")).removeprefix(_COMBINED)


def get_time(event: Object) -> str:
    """Return when an event was seen last, as RFC 3339 text; "" where that is unknown."""
    times = (
        nested_dict(event, "series").get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        nested_dict(event, "metadata").get("creationTimestamp"),
    )
    return next((str(time) for time in times if time), "")


def describe_since(time: str) -> str:
    """Describe RFC 3339 text as " since 1 Jan, 00:00:00 UTC"; "" where it is no moment."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return ""
    return f" since {moment.astimezone(UTC):%-d %b, %H:%M:%S} UTC" if moment.tzinfo else ""

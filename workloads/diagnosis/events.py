"""Reads Kubernetes events, in the old and the new form."""

from collections.abc import Iterable, Sequence

from workloads.observed import INDIRECT, Object, part


def about(events: Iterable[Object], name: str) -> Sequence[Object]:
    """The events about the object of this name."""
    return [
        event
        for event in events
        if (part(event, "involvedObject") or part(event, "regarding")).get("name") == name
    ]


def about_job(events: Iterable[Object], job: Object) -> Sequence[Object]:
    """The events about a job, and about the batch Jobs that its operator makes of it."""
    name, found = str(part(job, "metadata").get("name") or ""), []
    for event in events:
        subject = part(event, "involvedObject") or part(event, "regarding")
        is_between = (
            job.get("kind") in INDIRECT
            and subject.get("kind") == "Job"
            and str(subject.get("name")).startswith(f"{name}-")
        )
        if subject.get("name") == name or is_between:
            found.append(event)
    return found


def newest(events: Iterable[Object], *reasons: str) -> Object | None:
    """The last event with one of these reasons."""
    return max(
        (event for event in events if event.get("reason") in reasons), key=_time, default=None
    )


def _time(event: Object) -> str:
    times = (
        part(event, "series").get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        part(event, "metadata").get("creationTimestamp"),
    )
    return next((str(time) for time in times if time), "")

"""The cluster's own events, and the workloads that they may be about.

Each is stored once, however often it is reported.
"""

import functools
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from clusters.job_kinds import JOBS
from workloads import disruptions
from workloads.cluster_texts import strip_names
from workloads.journal.observed_objects import Observation, parse_pod_group_name, uid_of
from workloads.kube_objects import (
    Object,
    clean_text,
    get_data_job_name,
    get_involved_object,
    int_or_zero,
    nested_dict,
)

log = logging.getLogger(__name__)

MAX_CLOCK_LAG = timedelta(minutes=1)
"""How far the cluster's clock may be behind ours.

An earlier time belongs to something before, or is not credible.
"""

_REPLICA_NAME = re.compile(r"(.+)-[a-z]{1,16}-[0-9]{1,6}")
_JOB_POD_NAME = re.compile(r"(.+?)(-[0-9]{1,6})?-[a-z0-9]{5}")
_CLAIM_NAME = re.compile(r"(.+)-data-[0-9]{1,3}")
"""The name of a claim that Muster makes for a workload (`manifests.volumes`)."""
_KUEUE_NAME = re.compile(r"[a-z]{2,32}-(.+)-[a-z0-9]{5}")
"""The name of Kueue's Workload for a job: its kind, its name and a hash (engine facts 4)."""
_SECOND = timedelta(microseconds=999_999)
_MAX_INT = (1 << 31) - 1


class Subject(NamedTuple):
    """The namespace and the name of a workload that an event may be about."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event of the cluster.

    `names` are the workloads that it may be about; `subject_uid` is the uid of the object that it
    names.
    """

    uid: str
    namespace: str
    names: tuple[str, ...]
    subject_kind: str
    subject: str
    subject_uid: str
    at: datetime
    first_at: datetime | None
    count: int
    is_warning: bool
    reason: str
    text: str
    source: str
    cause: disruptions.Cause | None = None
    """Why a pod was taken; None for any other event."""


def parse_events(
    observations: Iterable[Observation], clock_lead: timedelta = timedelta(0)
) -> Iterator[ClusterEvent]:
    """Return the events that may be about our workloads, each once, in its latest state.

    `clock_lead` is how far the cluster's clock is ahead of ours.
    """
    newest: dict[str, ClusterEvent] = {}
    for observation in observations:
        if observation.kind != "event" or observation.is_gone:
            # The API server deletes events after an hour (--event-ttl); the row stays.
            continue
        event = _parse_event(
            observation.object if isinstance(observation.object, dict) else {}, clock_lead
        )
        if event is not None and (
            event.uid not in newest
            or supersedes(event, newest[event.uid].count, newest[event.uid].at)
        ):
            newest[event.uid] = event
    return iter(newest.values())


def find_subjects(event: Object) -> tuple[Subject, ...]:
    """Return the workloads that an event may be about, by the name of its object alone."""
    namespace, subject, kind = _read_involved_object(event)
    names = _guess_workload_names(kind, subject) if namespace else ()
    return tuple(Subject(namespace, name) for name in names)


def supersedes(event: ClusterEvent, count: int, at: datetime) -> bool:
    """Return whether the event is newer than the stored count and time."""
    return (event.count, event.at) > (count, at)


def parse_moment(value: object, clock_lead: timedelta = timedelta(0)) -> datetime | None:
    """Parse RFC 3339 text into a moment of our clock; None for anything else.

    `clock_lead` is how far the clock that wrote it is ahead of ours.
    """
    parsed = _parse_moment_text(value) if isinstance(value, str) and len(value) < 64 else None
    try:
        return parsed - clock_lead if parsed is not None else None
    except OverflowError:
        return None


@functools.lru_cache(1024)
def _parse_moment_text(text: str) -> datetime | None:
    """Parse RFC 3339 text, cached: many pods change in the same second and share the text."""
    try:
        parsed = datetime.fromisoformat(text)
        return parsed.astimezone(UTC) if parsed.tzinfo else None
    except (ValueError, OverflowError):
        return None


def refine_moment(at: datetime, now: datetime) -> datetime:
    """Return a moment known only to the second, moved to the latest possible fraction.

    Our own moments then compare with it.
    """
    return at if at.microsecond or now < at else min(now, at + _SECOND)


def _parse_event(event: Object, clock_lead: timedelta) -> ClusterEvent | None:
    involved = get_involved_object(event)
    namespace, subject, kind = _read_involved_object(event)
    names = _guess_workload_names(kind, subject)
    uid = uid_of(event)
    if not names or not namespace or not uid:
        return None
    series, metadata = nested_dict(event, "series"), nested_dict(event, "metadata")
    moments = [
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        metadata.get("creationTimestamp"),
    ]
    at = next(
        (parsed for moment in moments if (parsed := parse_moment(moment, clock_lead)) is not None),
        None,
    )
    if at is None:
        return None
    source = (
        event.get("reportingComponent")
        or event.get("reportingController")
        or nested_dict(event, "source").get("component")
    )
    return ClusterEvent(
        uid=uid,
        namespace=namespace,
        names=names,
        subject_kind=kind[:64],
        subject=subject,
        subject_uid=clean_text(involved.get("uid"), 64),
        at=at,
        first_at=parse_moment(event.get("firstTimestamp"), clock_lead)
        or parse_moment(event.get("eventTime"), clock_lead),
        count=min(
            _MAX_INT, max(1, int_or_zero(series.get("count")), int_or_zero(event.get("count")))
        ),
        is_warning=event.get("type") == "Warning",
        reason=clean_text(event.get("reason"), 128),
        text=strip_names(clean_text(event.get("message") or event.get("note")), namespace),
        source=clean_text(source, 128),
        cause=disruptions.parse_event(event),
    )


def _read_involved_object(event: Object) -> tuple[str, str, str]:
    """Return the namespace, name and kind of the object that an event is about."""
    involved = get_involved_object(event)
    namespace, name, kind = (
        clean_text(involved.get(each), 253) for each in ("namespace", "name", "kind")
    )
    return namespace, name, kind


def _guess_workload_names(kind: str, subject: str) -> tuple[str, ...]:
    """Return the workloads whose object, pod, PodGroup or claim may have this name."""
    if kind == "PodGroup":
        name, _ = parse_pod_group_name(subject)
        return (name,) if name else ()
    if kind == "Pod":
        matches = (pattern.fullmatch(subject) for pattern in (_REPLICA_NAME, _JOB_POD_NAME))
        owners = [match[1] for match in matches if match is not None]
        return tuple(dict.fromkeys((*owners, *map(_remove_data_suffix, owners))))
    if kind == JOBS.kind:
        # An operator may have made it for a job of another kind.
        match = _REPLICA_NAME.fullmatch(subject)
        candidates = (
            subject.removesuffix("-launcher"),
            match[1] if match else subject,
            _remove_data_suffix(subject),
        )
        return tuple(dict.fromkeys((subject, *candidates))) if subject else ()
    if pattern := {"PersistentVolumeClaim": _CLAIM_NAME, "Workload": _KUEUE_NAME}.get(kind):
        match = pattern.fullmatch(subject)
        return (match[1],) if match else ()
    return (subject,) if kind.endswith("Job") and subject else ()


def _remove_data_suffix(name: str) -> str:
    """Return the workload's name out of that of the Job of its data workers."""
    return name.removesuffix(get_data_job_name(""))

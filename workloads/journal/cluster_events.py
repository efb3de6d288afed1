"""The cluster's own events: whose they are, and their rows, each once however often it is told."""

import functools
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from workloads.journal.observed_objects import Observation, parse_pod_group_name, uid_of
from workloads.kube_objects import Object, clean_text, int_or_zero, nested_dict

log = logging.getLogger(__name__)

MAX_CLOCK_LAG = timedelta(minutes=1)
"""By how much the cluster's clock may be behind ours: what it dates yet earlier is of something
before, or not to be believed.
"""

_REPLICA_NAME = re.compile(r"(.+)-[a-z]{1,16}-[0-9]{1,6}")
_JOB_POD_NAME = re.compile(r"(.+?)(-[0-9]{1,6})?-[a-z0-9]{5}")
_SECOND = timedelta(microseconds=999_999)
_MAX_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event of the cluster. `names` are those of the workloads that it may be about,
    `subject_uid` the uid of what it names.
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


def parse_events(
    observations: Iterable[Observation], clock_lead: timedelta = timedelta(0)
) -> Iterator[ClusterEvent]:
    """The events among these that may be about a workload of ours, each once, as last told. `ahead`
    is the cluster's clock, of ours.
    """
    newest: dict[str, ClusterEvent] = {}
    for each in observations:
        if each.kind != "event" or each.is_gone:
            # That the cluster forgets an event is no news: the row stays.
            continue
        told = _parse_event(each.object if isinstance(each.object, dict) else {}, clock_lead)
        if told is not None and (
            told.uid not in newest or supersedes(told, newest[told.uid].count, newest[told.uid].at)
        ):
            newest[told.uid] = told
    return iter(newest.values())


def supersedes(event: ClusterEvent, count: int, at: datetime) -> bool:
    """Whether it says more than what was told so far."""
    return (event.count, event.at) > (count, at)


def parse_moment(value: object, clock_lead: timedelta = timedelta(0)) -> datetime | None:
    """RFC 3339 text as a moment of ours, told by a clock that is so much ahead; None for anything
    else.
    """
    found = _parse_moment_text(value) if isinstance(value, str) and len(value) < 64 else None
    try:
        return found - clock_lead if found is not None else None
    except OverflowError:
        return None


@functools.lru_cache(1024)
def _parse_moment_text(text: str) -> datetime | None:
    """What happens to many pods at once is known to the second, so it is the same text."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def refine_moment(at: datetime, now: datetime) -> datetime:
    """A moment of the cluster's that is known to the second: as late in it as we may have heard, so
    that our own moments compare.
    """
    return at if at.microsecond or now < at else min(now, at + _SECOND)


def _parse_event(event: Object, clock_lead: timedelta) -> ClusterEvent | None:
    about = nested_dict(event, "involvedObject") or nested_dict(event, "regarding")
    namespace, subject, kind = (
        clean_text(about.get(name), 253) for name in ("namespace", "name", "kind")
    )
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
        (found for each in moments if (found := parse_moment(each, clock_lead)) is not None), None
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
        subject_uid=clean_text(about.get("uid"), 64),
        at=at,
        first_at=parse_moment(event.get("firstTimestamp"), clock_lead)
        or parse_moment(event.get("eventTime"), clock_lead),
        count=min(
            _MAX_INT, max(1, int_or_zero(series.get("count")), int_or_zero(event.get("count")))
        ),
        is_warning=event.get("type") == "Warning",
        reason=clean_text(event.get("reason"), 128),
        text=clean_text(event.get("message") or event.get("note")),
        source=clean_text(source, 128),
    )


def _guess_workload_names(kind: str, subject: str) -> tuple[str, ...]:
    """The workloads whose object, pod or PodGroup may have this name."""
    if kind == "PodGroup":
        name, _ = parse_pod_group_name(subject)
        return (name,) if name else ()
    if kind == "Pod":
        found = (pattern.fullmatch(subject) for pattern in (_REPLICA_NAME, _JOB_POD_NAME))
        return tuple(dict.fromkeys(match[1] for match in found if match is not None))
    if kind == "Job":
        # Also one that the operator of an MPIJob or a TrainJob has made.
        match = _REPLICA_NAME.fullmatch(subject)
        made = (subject.removesuffix("-launcher"), match[1] if match else subject)
        return tuple(dict.fromkeys((subject, *made))) if subject else ()
    return (subject,) if kind.endswith("Job") and subject else ()

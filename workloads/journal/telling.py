"""The cluster's own events: whose they are, and their rows, each once however often it is told."""

import functools
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from workloads.journal.seeing import Seen, group_of, uid_of
from workloads.observed import Object, number, part, plain

log = logging.getLogger(__name__)

SKEW = timedelta(minutes=1)
"""By how much the cluster's clock may be behind ours: what it dates yet earlier is of something
before, or not to be believed.
"""

_REPLICA = re.compile(r"(.+)-[a-z]{1,16}-[0-9]{1,6}")
_RUN = re.compile(r"(.+?)(-[0-9]{1,6})?-[a-z0-9]{5}")
_SECOND = timedelta(microseconds=999_999)
_MOST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Told:
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


def read(seen: Iterable[Seen], ahead: timedelta = timedelta(0)) -> Iterator[Told]:
    """The events among these that may be about a workload of ours, each once, as last told. `ahead`
    is the cluster's clock, of ours.
    """
    newest: dict[str, Told] = {}
    for each in seen:
        if each.kind != "event" or each.gone:
            # That the cluster forgets an event is no news: the row stays.
            continue
        told = _told(each.object if isinstance(each.object, dict) else {}, ahead)
        if told is not None and (
            told.uid not in newest or supersedes(told, newest[told.uid].count, newest[told.uid].at)
        ):
            newest[told.uid] = told
    return iter(newest.values())


def supersedes(told: Told, count: int, at: datetime) -> bool:
    """Whether it says more than what was told so far."""
    return (told.count, told.at) > (count, at)


def moment(value: object, ahead: timedelta = timedelta(0)) -> datetime | None:
    """RFC 3339 text as a moment of ours, told by a clock that is so much ahead; None for anything
    else.
    """
    found = _moment(value) if isinstance(value, str) and len(value) < 64 else None
    try:
        return found - ahead if found is not None else None
    except OverflowError:
        return None


@functools.lru_cache(1024)
def _moment(text: str) -> datetime | None:
    """What happens to many pods at once is known to the second, so it is the same text."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def refined(at: datetime, now: datetime) -> datetime:
    """A moment of the cluster's that is known to the second: as late in it as we may have heard, so
    that our own moments compare.
    """
    return at if at.microsecond or now < at else min(now, at + _SECOND)


def _told(event: Object, ahead: timedelta) -> Told | None:
    about = part(event, "involvedObject") or part(event, "regarding")
    namespace, subject, kind = (
        plain(about.get(name), 253) for name in ("namespace", "name", "kind")
    )
    names = _names(kind, subject)
    uid = uid_of(event)
    if not names or not namespace or not uid:
        return None
    series, metadata = part(event, "series"), part(event, "metadata")
    moments = [
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        metadata.get("creationTimestamp"),
    ]
    at = next((found for each in moments if (found := moment(each, ahead)) is not None), None)
    if at is None:
        return None
    source = (
        event.get("reportingComponent")
        or event.get("reportingController")
        or part(event, "source").get("component")
    )
    return Told(
        uid=uid,
        namespace=namespace,
        names=names,
        subject_kind=kind[:64],
        subject=subject,
        subject_uid=plain(about.get("uid"), 64),
        at=at,
        first_at=moment(event.get("firstTimestamp"), ahead)
        or moment(event.get("eventTime"), ahead),
        count=min(_MOST, max(1, number(series.get("count")), number(event.get("count")))),
        is_warning=event.get("type") == "Warning",
        reason=plain(event.get("reason"), 128),
        text=plain(event.get("message") or event.get("note")),
        source=plain(source, 128),
    )


def _names(kind: str, subject: str) -> tuple[str, ...]:
    """The workloads whose object, pod or PodGroup may have this name."""
    if kind == "PodGroup":
        name, _ = group_of(subject)
        return (name,) if name else ()
    if kind == "Pod":
        found = (pattern.fullmatch(subject) for pattern in (_REPLICA, _RUN))
        return tuple(dict.fromkeys(match[1] for match in found if match is not None))
    if kind == "Job":
        # Also one that the operator of an MPIJob or a TrainJob has made.
        match = _REPLICA.fullmatch(subject)
        made = (subject.removesuffix("-launcher"), match[1] if match else subject)
        return tuple(dict.fromkeys((subject, *made))) if subject else ()
    return (subject,) if kind.endswith("Job") and subject else ()

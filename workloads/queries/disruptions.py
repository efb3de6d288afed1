"""What events say to one reader: who got the room of taken pods is named as far as they may see.

Everything that shows an event to somebody takes its words from here: pages, REST and notices.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from projects.models import Project, User
from projects.querysets import list_visible_project_ids
from workloads.disruptions import (
    Cause,
    Disruption,
    decode_cause,
    decode_disruption,
    describe_disruption,
)
from workloads.models import Event, Workload

UNNAMED = "another project"
MOST_NOTICES = 3
"""Notices on one page; of more it is said that there are some."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened to a workload, for a user who has not been told; `event` is its id."""

    event: int
    workload: Workload
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class EventWords:
    """What an event says to one reader.

    `taker` is who got the room of taken pods, "" for nobody.
    """

    text: str
    taker: str = ""


Names = Mapping[tuple[object, str], str]
"""Names of projects by cluster and namespace."""


def load_event_words(
    events: Iterable[Event], workload: Workload, user: User
) -> Mapping[int, EventWords]:
    """Return what each event of a workload says to this user, by its id.

    The workload is loaded with its project. One query, and none where nothing was taken.
    """
    return _load_words([(each, workload) for each in events], user)


def load_disruptions(workload: Workload, limit: int) -> Sequence[Event]:
    """Load the newest changes of how many pods a workload has, the newest first."""
    rows = Event.objects.filter(workload=workload, kind=Event.Kind.SCALE)
    return list(rows.order_by("-at", "-id")[:limit])


def load_notices(user: User) -> tuple[Sequence[Notice], bool]:
    """Return what a user is still to be told of their workloads, and whether there is more.

    The newest come first. Two queries, one where there is nothing.
    """
    rows: QuerySet[Event] = Event.objects.filter(notice_to=user).order_by("-id")
    events = list(
        rows.filter(workload__in=Workload.objects.visible_to(user).order_by())
        .select_related("workload__project")
        .defer("workload__spec", "workload__job", "workload__pod_group")[: MOST_NOTICES + 1]
    )
    if not events:
        return (), False
    pairs = [(each, each.workload) for each in events[:MOST_NOTICES]]
    words = _load_words(pairs, user, is_notice=True)
    notices = [
        Notice(event.pk, workload, words[event.pk].text, event.at) for event, workload in pairs
    ]
    return notices, len(events) > MOST_NOTICES


def _find_taker(cause: Cause | Disruption, workload: Workload, names: Names) -> str:
    """Return who got the room of taken pods, in words for the reader whose names these are."""
    if not cause.namespace:
        return "another workload"
    if cause.namespace == workload.project.namespace:
        return cause.workload or "another workload"
    return names.get((workload.cluster_id, cause.namespace), UNNAMED)


def _load_project_names(causes: Iterable[tuple[Cause | Disruption, Workload]], user: User) -> Names:
    """Load the names of the projects that got room, as far as the user may see them."""
    places = {
        (workload.cluster_id, cause.namespace)
        for cause, workload in causes
        if cause.namespace and cause.namespace != workload.project.namespace
    }
    if not places:
        return {}
    rows = Project.objects.filter(
        cluster__in={cluster for cluster, _ in places},
        namespace__in={namespace for _, namespace in places},
    )
    # The namespace of a removed project may be another's by now: the newest has it.
    owners = {
        (cluster, namespace): (key, name)
        for key, cluster, namespace, name in rows.order_by("pk").values_list(
            "pk", "cluster_id", "namespace", "name"
        )
    }
    visible = list_visible_project_ids(user)
    return {
        place: name for place, (key, name) in owners.items() if visible is None or key in visible
    }


def _decode_event_cause(event: Event) -> Cause | Disruption | None:
    """Return what an event keeps of why pods were taken; None where it keeps nothing."""
    if event.cause is None:
        return None
    if event.kind == Event.Kind.SCALE:
        return decode_disruption(event.cause)
    return decode_cause(event.cause)


def _load_words(
    pairs: Sequence[tuple[Event, Workload]], user: User, *, is_notice: bool = False
) -> dict[int, EventWords]:
    causes = {event.pk: _decode_event_cause(event) for event, _ in pairs}
    names = _load_project_names(
        [(cause, workload) for event, workload in pairs if (cause := causes[event.pk])], user
    )
    words = {}
    for event, workload in pairs:
        cause, text, taker = causes[event.pk], event.text, ""
        if isinstance(cause, Disruption):
            taker = _find_taker(cause, workload, names)
            text = describe_disruption(
                cause,
                None if is_notice else event.at,
                taker,
                subject=workload.name if is_notice else "",
            )
            taker = taker if cause.namespace else ""
        elif cause is not None and (workload.cluster_id, cause.namespace) in names:
            text = cause.text
        words[event.pk] = EventWords(text, taker)
    return words

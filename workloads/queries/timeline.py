"""What the database knows of a workload's past, for its timeline: the same for page and REST."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from clusters import connections
from projects.models import User
from workloads.models import Event, RadarFinding, Workload
from workloads.queries.disruptions import load_event_words
from workloads.queries.findings import get_title
from workloads.queries.quota_pods import count_quota_pods, decode_known_spec
from workloads.queries.timeline_logs import (
    PodClock,
    add_pod_details,
    list_training_facts,
    load_rank_facts,
)
from workloads.queries.timeline_pods import MOST_PODS, LoadedPods, load_pod_facts
from workloads.states import RESTING, UP, Status
from workloads.timeline import (
    AttemptFact,
    FindingFact,
    PodBounds,
    PodChange,
    RankChoice,
    StatusChange,
    Timeline,
    TimelineFacts,
    build_timeline,
)
from workloads.timeline.building import choose_positions

MOST_CHANGES = 120
MOST_POD_CHANGES = 60
MOST_ATTEMPTS = 60
MOST_FINDINGS = 100
"""Rows that are read of each sort, the newest."""


def load_timeline(workload: Workload, user: User, choice: RankChoice | None = None) -> Timeline:
    """Load the timeline of a workload, as this user may read it.

    The workload is loaded with its project and its progress. Twelve queries at most, whatever the
    number of pods and events.
    """
    facts = _load_facts(workload, user, choice)
    positions = choose_positions(facts, choice)
    drawn_keys = {pod.key for position in positions for pod in position.pods}
    ranks = {position.rank for position in positions if position.rank is not None}
    clock = PodClock(connections.clock_offset(workload.cluster_id), facts.created_at, facts.now)
    pods = add_pod_details(facts.all_pods, drawn_keys, clock)
    facts = replace(
        facts,
        pods=pods[: len(facts.pods)],
        older_pods=pods[len(facts.pods) :],
        logs=[*list_training_facts(workload), *load_rank_facts(workload, ranks)],
    )
    return build_timeline(facts, choice)


def _load_facts(workload: Workload, user: User, choice: RankChoice | None) -> TimelineFacts:
    changes = _load_newest(_list_status_events(workload), MOST_CHANGES)
    pod_changes = _load_newest(_list_scale_events(workload), MOST_POD_CHANGES)
    words = load_event_words([*changes, *pod_changes], workload, user)
    pods = load_pod_facts(workload, choice)
    findings = list(
        RadarFinding.objects.filter(workload=workload)
        .order_by("-found_at", "-id")
        .only("kind", "rank", "sentence", "began_at", "seen_at", "ended_at", "attempt")[
            : MOST_FINDINGS + 1
        ]
    )
    attempts = list(
        workload.attempts.select_related("requested_by").order_by("-number")[: MOST_ATTEMPTS + 1]
    )
    is_over = workload.status in RESTING or workload.released_at is not None
    gaps = [
        *_describe_deleted_events(workload, changes),
        *_describe_cut("changes of status", MOST_CHANGES, changes),
        *_describe_cut("changes of its pods", MOST_POD_CHANGES, pod_changes),
        *_describe_cut("findings", MOST_FINDINGS, findings),
        *_describe_cut("attempts", MOST_ATTEMPTS, attempts),
        *_describe_cut_pods(pods, choice),
    ]
    return TimelineFacts(
        created_at=workload.created_at.timestamp(),
        now=timezone.now().timestamp(),
        status=workload.status,
        status_at=workload.status_at.timestamp(),
        is_over=is_over,
        attempt=workload.attempt,
        changes=[
            StatusChange(
                each.at.timestamp(),
                each.old,
                each.new,
                words[each.pk].text,
                each.by.username if each.by is not None else "",
            )
            for each in changes[:MOST_CHANGES]
        ],
        attempts=[
            AttemptFact(
                each.number,
                each.status,
                each.requested_at.timestamp(),
                _to_seconds(each.started_at),
                _to_seconds(each.ended_at),
                each.requested_by.username if each.requested_by is not None else "",
                each.reason,
            )
            for each in attempts[:MOST_ATTEMPTS]
        ],
        pods=pods.newest,
        older_pods=pods.older,
        are_all_pods=pods.are_all,
        pod_changes=[
            PodChange(each.at.timestamp(), words[each.pk].text, _is_loss(each))
            for each in pod_changes[:MOST_POD_CHANGES]
        ],
        findings=[_build_finding(each, workload) for each in findings[:MOST_FINDINGS]],
        bounds=_build_bounds(workload),
        gaps=gaps,
    )


def _list_status_events(workload: Workload) -> "QuerySet[Event]":
    # `new__gt` is the condition of the index that has changes of status only.
    return Event.objects.filter(workload=workload, new__gt="").select_related("by")


def _list_scale_events(workload: Workload) -> "QuerySet[Event]":
    return Event.objects.filter(workload=workload, kind=Event.Kind.SCALE)


def _load_newest(events: "QuerySet[Event]", most: int) -> list[Event]:
    """Load the newest events, one more than are shown where there are more."""
    return list(events.order_by("-at", "-id")[: most + 1])


def _is_loss(event: Event) -> bool:
    return event.cause is not None or event.is_warning


def _build_finding(row: RadarFinding, workload: Workload) -> FindingFact:
    # What runs no more has no trouble: it lasted for as long as it was seen.
    lasts = row.ended_at is None and workload.status in UP and row.attempt == workload.attempt
    ended_at = None if lasts else row.ended_at or row.seen_at
    return FindingFact(
        row.kind,
        get_title(row.kind),
        row.began_at.timestamp(),
        _to_seconds(ended_at),
        row.sentence,
        row.rank,
    )


def _build_bounds(workload: Workload) -> PodBounds:
    quota = count_quota_pods(workload, decode_known_spec(workload))
    return PodBounds(workload.requested_pods or None, workload.min_pods, workload.max_pods, quota)


def _to_seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _describe_cut(words: str, most: int, rows: Sequence[object]) -> Iterable[str]:
    if len(rows) > most:
        yield f"It had more {words}: the newest {most:,} are shown."


def _describe_cut_pods(pods: LoadedPods, choice: RankChoice | None) -> Iterable[str]:
    if pods.are_all:
        return
    ranks = "the chosen ranks" if choice else "rank 0"
    older = f"those of {ranks}" if pods.are_all_of_ranks else f"as many older ones of {ranks}"
    yield f"It had more pods: the newest {MOST_PODS:,} and {older} are shown."


def _describe_deleted_events(workload: Workload, changes: Sequence[Event]) -> Iterable[str]:
    """Yield that the beginning of the history is not there any more, where that is so."""
    if changes and len(changes) <= MOST_CHANGES and changes[-1].old in ("", Status.CREATING):
        return
    if not changes and workload.status == Status.CREATING:
        return
    if len(changes) <= MOST_CHANGES:
        days = settings.OPTIONS.history_days
        yield f"The beginning of its history is not there any more: it is kept for {days:g} days."

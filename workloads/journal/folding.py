"""A batch of what was seen becomes rows, in one turn and a constant number of statements."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from clusters import connections
from workloads.journal import applying, deriving, rows
from workloads.journal.cases import Case, load
from workloads.journal.seeing import Thing
from workloads.journal.telling import SKEW, Told, refined, supersedes
from workloads.journal.turns import Turn
from workloads.journal.writing import MIRRORED
from workloads.models import Attempt, Event, Pod, Workload
from workloads.observed import INDIRECT
from workloads.states import Status

_OTHERS = ("id", "workload", "uid", "logs_kept")
_POD_FIELDS = [field.name for field in Pod._meta.fields if field.name not in _OTHERS]
_ORDER = {"job": 0, "podgroup": 1, "pod": 2}


def fold(
    turn: Turn,
    cluster_id: uuid.UUID,
    things: Sequence[Thing],
    told: Sequence[Told] = (),
    *,
    look: Collection[uuid.UUID] = (),
) -> set[uuid.UUID]:
    """Write what these tell. The answer is which workloads changed. The status of those in `look`
    is told anew in any case.
    """
    now = timezone.now()
    cases = load(cluster_id, things, told, look)
    if not cases:
        return set()
    ahead = connections.ahead(cluster_id)
    for each in cases.values():
        each.ahead = ahead
    by_name = _by_name(cases.values())
    for thing in sorted(things, key=lambda thing: _ORDER[thing.kind]):
        case = _concerned(thing, cases, by_name)
        if case is not None:
            applying.apply(case, thing, now)
    for pk in look:
        if pk in cases:
            cases[pk].touched = True
    events = [
        event
        for case in cases.values()
        if case.touched and (event := deriving.follow_up(case, now))
    ]
    counted = _happened(told, by_name, events, now)
    _write(turn, cases, events, counted)
    return {pk for pk, case in cases.items() if case.news or case.to}


def _by_name(cases: Iterable[Case]) -> Mapping[tuple[str, str], list[Case]]:
    """The cases by namespace and name, the one that has the name now first."""
    found: dict[tuple[str, str], list[Case]] = {}
    for case in sorted(cases, key=lambda case: case.workload.released_at is not None):
        found.setdefault((case.namespace, case.workload.name), []).append(case)
    return found


def _concerned(
    thing: Thing, cases: Mapping[uuid.UUID, Case], by_name: Mapping[tuple[str, str], list[Case]]
) -> Case | None:
    """Whose it is. A label alone is not enough: anybody may write it, but only in a namespace of
    their own.
    """
    if thing.workload is None:
        return next(iter(by_name.get((thing.namespace, thing.name), ())), None)
    case = cases.get(thing.workload)
    return case if case is not None and thing.namespace in ("", case.namespace) else None


def _happened(
    told: Sequence[Told],
    by_name: Mapping[tuple[str, str], list[Case]],
    events: list[Event],
    now: datetime,
) -> list[rows.Change]:
    """New events of the cluster are added to `events`; the answer is what becomes of those that
    were told again.
    """
    found = {each.uid: (each, *owner) for each in told if (owner := _owner(each, by_name))}
    if not found:
        return []
    wanted = Event.objects.filter(
        workload__in={case.workload.pk for _, case, _ in found.values()}, uid__in=found
    )
    known = {
        (row.workload_id, row.uid): row
        for row in wanted.only("workload", "uid", "count", "at").order_by()
    }
    changes = []
    for each, case, attempt in found.values():
        row = known.get((case.workload.pk, each.uid))
        if row is None:
            events.append(_row(each, case, attempt, now))
        elif supersedes(each, row.count, row.at):
            changes.append(
                rows.Change(
                    row.pk,
                    to={
                        "count": max(each.count, row.count),
                        "at": max(each.at, row.at),
                        "text": each.text,
                    },
                )
            )
        else:
            continue
        case.news = True
    return changes


def _owner(told: Told, by_name: Mapping[tuple[str, str], list[Case]]) -> tuple[Case, int] | None:
    """The workload and the attempt that an event is about."""
    candidates = [case for name in told.names for case in by_name.get((told.namespace, name), ())]
    for case in candidates:
        if told.subject_uid in case.pods:
            return case, case.pods[told.subject_uid].attempt
        if told.subject_uid and told.subject_uid == case["job_uid"]:
            return case, case.workload.attempt
        owner = told.subject[-36:] if told.subject_kind == "PodGroup" else told.subject_uid
        if owner in case.job_uids:
            return case, case.job_uids[owner]
    for case in candidates:
        # It may come before what it is about; but not what is about somebody of the same name
        # before.
        name, kind = case.workload.name, case.workload.job_kind.rpartition("/")[2]
        if told.subject_kind == "Job" and told.subject != name and kind not in INDIRECT:
            continue
        is_made = told.subject_kind == "Pod" or (told.subject_kind == "Job" and kind in INDIRECT)
        unknown = is_made or not case["job_uid"] or not told.subject_uid
        if (
            unknown
            and case.workload.released_at is None
            and told.at > case.workload.created_at - SKEW
        ):
            return case, case.workload.attempt
    return None


def _row(told: Told, case: Case, attempt: int, now: datetime) -> Event:
    return Event(
        workload=case.workload,
        attempt=attempt,
        at=refined(told.at, now),
        kind=Event.Kind.CLUSTER,
        is_warning=told.is_warning,
        reason=told.reason,
        text=told.text,
        source=told.source,
        subject_kind=told.subject_kind,
        subject=told.subject,
        count=told.count,
        first_at=told.first_at,
        uid=told.uid,
    )


def _write(
    turn: Turn,
    cases: Mapping[uuid.UUID, Case],
    events: Sequence[Event],
    counted: Sequence[rows.Change],
) -> None:
    pods = [case.pods[uid] for case in cases.values() for uid in case.written]
    rows.insert(Pod, pods, unique=("workload", "uid"), update=_POD_FIELDS)
    changed, mirrored = [], []
    for case in cases.values():
        row = case.workload
        if not (case.news or case.to):
            continue
        turn.changed(row.project_id)
        changed.append(
            rows.Change(
                row.pk,
                {"status": row.status, "attempt": row.attempt},
                {**case.to, "changed": turn.position},
            )
        )
        mirror = {name: case.to[name] for name in MIRRORED if name in case.to}
        if mirror and row.status != Status.DELETING:
            mirrored.append(rows.Change(row.pk, {"number": row.attempt}, mirror))
    rows.update(Workload, "id", changed)
    rows.update(Attempt, "workload", mirrored)
    rows.insert(Event, events)
    rows.update(Event, "id", counted)

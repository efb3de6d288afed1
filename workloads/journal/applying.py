"""What one object says, laid over its workload's case. What is older than what is known, or
somebody else's, changes nothing.
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from workloads.journal.cases import Case
from workloads.journal.seeing import Kind, Thing, uid_of, version_of
from workloads.journal.telling import moment
from workloads.models import Pod
from workloads.observed import Object, is_made_for, plain, view
from workloads.states import RESTING, Status

MOST_GPUS = Decimal(10**8)
_MOST = (1 << 31) - 1
_DEFAULTS = [(field.attname, field.get_default()) for field in Pod._meta.concrete_fields]


def apply(case: Case, thing: Thing, now: datetime) -> None:
    """Lay one object over its case."""
    if case.workload.released_at is None or thing.kind == "pod":
        _BY_KIND[thing.kind](case, thing, now)


def _job(case: Case, thing: Thing, now: datetime) -> None:
    if thing.attempt != case.workload.attempt or (thing.name and thing.name != case.workload.name):
        return
    if thing.data and (thing.owner or thing.data.get("kind", _kind(case)) != _kind(case)):
        # Somebody else's under our labels: nothing controls what we make, and it is of the kind
        # that we make.
        return
    uid, known = case["job_uid"], case.job
    if thing.gone:
        if uid in ("", thing.uid) and (known is not None or not uid):
            case.become(job=None, job_uid=thing.uid)
            case.touched = case.news = True
        return
    if known is None:
        # What has gone does not come back; another one is the attempt's only as long as the attempt
        # goes on.
        if uid == thing.uid or (uid and Status(case.workload.status) in RESTING):
            return
    elif not thing.is_news_to(version_of(known)):
        return
    case.become(job=thing.data, job_uid=thing.uid)
    case.touched = case.news = True


def _pod_group(case: Case, thing: Thing, now: datetime) -> None:
    known: Object | None = case["pod_group"]
    if thing.gone:
        if known is not None and uid_of(known) == thing.uid:
            case.become(pod_group=None)
            case.touched = case.news = True
        return
    if case["job_uid"] != thing.owner and (case["job_uid"] or thing.owner in case.job_uids):
        return
    if known is None or thing.is_news_to(version_of(known)):
        case.become(pod_group=thing.data)
        case.touched = case.news = True


def _pod(case: Case, thing: Thing, now: datetime) -> None:
    row = case.pods.get(thing.uid)
    current = thing.attempt == case.workload.attempt
    if row is None:
        if not thing.data or thing.attempt > case.workload.attempt or _is_strangers(case, thing):
            return
        row = _new(case.workload.pk, thing.attempt, thing.uid)
        is_back, news = False, True
    else:
        # It had vanished by a cluster's mistake, or was restored with it: what is in a listing that
        # was asked for later is there.
        is_back = (
            row.vanished_at is not None
            and thing.asked_at is not None
            and row.vanished_at < thing.asked_at
        )
        news = bool(thing.data) and (is_back or thing.is_news_to(row.version))
        if thing.data and not news and not (thing.gone and row.vanished_at is None):
            return
    before = _unversioned(row.data)
    if thing.data and news:
        fill(row, thing.data, case.ahead)
    if is_back:
        row.vanished_at = None
    elif thing.gone and row.vanished_at is None:
        row.vanished_at = now
    elif row.pk is not None and before == _unversioned(row.data) and thing.data:
        case.written.add(row.uid)
        return
    case.pods[row.uid] = row
    case.written.add(row.uid)
    case.news = True
    case.touched = case.touched or current or case.workload.status == Status.DELETING


def _new(workload_id: uuid.UUID, attempt: int, uid: str) -> Pod:
    """A new row. Made of all its values at once, which takes half the time where thousands are
    made.
    """
    given = {"workload_id": workload_id, "attempt": attempt, "uid": uid}
    return Pod(*(given.get(name, default) for name, default in _DEFAULTS))


def _is_strangers(case: Case, thing: Thing) -> bool:
    """Whether a pod with our labels belongs to somebody else. As long as its attempt's job is not
    known it is judged by that one's name.
    """
    uid = (
        case["job_uid"]
        if thing.attempt == case.workload.attempt
        else case.job_uid_of(thing.attempt)
    )
    return not is_made_for(thing.data, _kind(case), case.workload.name, uid)


def _kind(case: Case) -> str:
    return case.workload.job_kind.rpartition("/")[2]


_BY_KIND: Mapping[Kind, Callable[[Case, Thing, datetime], None]] = {
    "job": _job,
    "pod": _pod,
    "podgroup": _pod_group,
}


def fill(row: Pod, data: Object, ahead: timedelta = timedelta(0)) -> None:
    """The pod's row from its object, told by a clock so much ahead of ours; its rank depends on the
    others and is not touched.
    """
    seen = view(data)
    row.name = plain(seen.name, 253)
    row.role = plain(seen.role, 16)
    row.index = seen.index
    row.phase = plain(seen.phase, 16)
    row.status = plain(seen.status, 64)
    row.reason = seen.reason
    row.is_ready = seen.ready
    row.node = plain(seen.node, 253)
    row.gpus = None if seen.gpus is None else gpus(seen.gpus)
    row.restarts = min(_MOST, max(0, seen.restarts))
    row.image = plain(seen.image, 512)
    row.created_at = moment(seen.created_at, ahead)
    row.started_at = moment(seen.started_at, ahead)
    row.ended_at = (
        max(
            (at for end in seen.ends if end.current and (at := moment(end.finished_at, ahead))),
            default=None,
        )
        if seen.finished
        else None
    )
    row.version = version_of(data)[:32]
    row.data = data


def gpus(amount: Decimal) -> Decimal:
    """As the column holds it, whatever a pod may ask for."""
    return min(amount, MOST_GPUS).quantize(Decimal("0.001"))


def _unversioned(data: Object) -> Object:
    metadata = data.get("metadata")
    return (
        data | {"metadata": metadata | {"resourceVersion": ""}}
        if isinstance(metadata, dict)
        else data
    )

"""What one object says, laid over its workload's case. What is older than what is known, or somebody else's, changes nothing."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from workloads.journal.cases import Case
from workloads.journal.seeing import Kind, Thing, is_newer, uid_of, version_of
from workloads.journal.telling import moment
from workloads.models import Pod
from workloads.observed import Object, plain, view
from workloads.states import RESTING, Status

MOST_GPUS = Decimal(10**8)
_MOST = (1 << 31) - 1


def apply(case: Case, thing: Thing, now: datetime) -> None:
    """Lay one object over its case."""
    if case.workload.released_at is None or thing.kind == "pod":
        _BY_KIND[thing.kind](case, thing, now)


def _job(case: Case, thing: Thing, now: datetime) -> None:
    if thing.attempt != case.workload.attempt or (thing.name and thing.name != case.workload.name):
        return
    uid, known = case["job_uid"], case.job
    if thing.gone:
        if uid in ("", thing.uid) and (known is not None or not uid):
            case.become(job=None, job_uid=thing.uid)
            case.touched = case.news = True
        return
    if known is None:
        # What has gone does not come back; another one is the attempt's only as long as the attempt goes on.
        if uid == thing.uid or (uid and Status(case.workload.status) in RESTING):
            return
    elif not is_newer(thing.version, version_of(known)):
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
    if known is None or is_newer(thing.version, version_of(known)):
        case.become(pod_group=thing.data)
        case.touched = case.news = True


def _pod(case: Case, thing: Thing, now: datetime) -> None:
    row = case.pods.get(thing.uid)
    current = thing.attempt == case.workload.attempt
    if row is None:
        stranger = current and thing.owner and case["job_uid"] and thing.owner != case["job_uid"]
        if not thing.data or stranger or thing.attempt > case.workload.attempt:
            return
        row = Pod(workload=case.workload, attempt=thing.attempt, uid=thing.uid)
    elif thing.data and not is_newer(thing.version, row.version) and not (thing.gone and row.vanished_at is None):
        return
    before = _unversioned(row.data)
    if thing.data and (row.pk is None or is_newer(thing.version, row.version)):
        fill(row, thing.data)
    if thing.gone and row.vanished_at is None:
        row.vanished_at = now
    elif row.pk is not None and before == _unversioned(row.data) and thing.data:
        case.written.add(row.uid)
        return
    case.pods[row.uid] = row
    case.written.add(row.uid)
    case.news = True
    case.touched = case.touched or current or case.workload.status == Status.DELETING


_BY_KIND: Mapping[Kind, Callable[[Case, Thing, datetime], None]] = {"job": _job, "pod": _pod, "podgroup": _pod_group}


def fill(row: Pod, data: Object) -> None:
    """The pod's row from its object; its rank depends on the others and is not touched."""
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
    row.created_at = moment(seen.created_at)
    row.started_at = moment(seen.started_at)
    row.ended_at = (
        max((at for end in seen.ends if end.current and (at := moment(end.finished_at))), default=None) if seen.finished else None
    )
    row.version = version_of(data)[:32]
    row.data = data


def gpus(amount: Decimal) -> Decimal:
    """As the column holds it, whatever a pod may ask for."""
    return min(amount, MOST_GPUS).quantize(Decimal("0.001"))


def _unversioned(data: Object) -> Object:
    metadata = data.get("metadata")
    return data | {"metadata": metadata | {"resourceVersion": ""}} if isinstance(metadata, dict) else data

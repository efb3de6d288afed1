"""What the rows have to say of a cluster whose objects are these: worked out from a listing,
without the code that writes the rows.
"""

from collections.abc import Iterator
from typing import Any

from tests.faults.histories import History
from tests.faults.operating import Object
from workloads import manifests
from workloads.models import Attempt, Pod, Workload
from workloads.states import ENDING, RESTING, TERMINAL, Status

BEHIND = "Its job was deleted in the cluster, and not by Muster."


def find_differences(history: History) -> list[str]:
    """Describe where the rows differ from the cluster."""
    there = history.listed()
    found = [
        word
        for workload in Workload.objects.order_by("created_at")
        for word in _compare_workload(workload, there, history)
    ]
    kept = {each["metadata"]["uid"] for some in there.values() for each in some}
    return [*found, *(f"what is somebody else's is gone: {uid}" for uid in history.foreign - kept)]


def _compare_workload(
    workload: Workload, there: dict[str, list[Object]], history: History
) -> Iterator[str]:
    name = f"{workload.name} ({workload.status}, wanted {workload.desired})"
    job = next((each for each in there["job"] if _uid(each) == workload.job_uid), None)
    if workload.released_at is None:
        yield from (f"{name}: {word}" for word in _job(workload, job, there))
        yield from (f"{name}: {word}" for word in _status(workload, job, there, history))
        yield from (f"{name}: {word}" for word in _group(workload, job, there))
    yield from (f"{name}: {word}" for word in _pods(workload, there))
    moves = list(workload.events.exclude(new="").order_by("id").values_list("old", "new"))
    if [new for _, new in moves][:-1] != [old for old, _ in moves][1:]:
        yield f"{name}: its moves do not follow each other: {moves}"


def _job(workload: Workload, job: Object | None, there: dict[str, list[Object]]) -> Iterator[str]:
    kept = (workload.job or {}).get("metadata", {})
    if job is None and workload.job is not None:
        yield "it has a job that is not there"
    if job is not None and kept.get("resourceVersion") != job["metadata"]["resourceVersion"]:
        yield (
            f"its job is of version {kept.get('resourceVersion')}, and there of "
            f"{job['metadata']['resourceVersion']}"
        )
    if job is not None and (workload.job or {}).get("status") != job.get("status", {}):
        yield "its job's status is another one there"
    mine = [each for each in there["job"] if _is_job_of(each, workload)]
    if (
        mine
        and _uid(mine[0]) != workload.job_uid
        and Status(workload.status) not in RESTING | ENDING
    ):
        yield f"its job is {_uid(mine[0])}, and not {workload.job_uid}"


def _status(
    workload: Workload, job: Object | None, there: dict[str, list[Object]], history: History
) -> Iterator[str]:
    status = Status(workload.status)
    if status in ENDING and job is None and workload.desired != "Running":
        return
    if job is None and workload.job_uid and status not in RESTING:
        yield "its job is gone, and it has not come to rest"
    if status is Status.FAILED and workload.job_uid and workload.job_uid not in history.ends:
        yield f"it never failed in the cluster: {workload.reason}"
    if status is Status.COMPLETED and workload.job_uid not in history.ends:
        yield "it never ended in the cluster"
    was_asked = workload.events.filter(
        attempt=workload.attempt, reason__in=("Stop", "Delete")
    ).exists()
    is_behind = workload.job_uid in history.behind and job is None and not was_asked
    if (
        is_behind
        and status not in TERMINAL
        and (status, workload.reason) != (Status.STOPPED, BEHIND)
    ):
        yield f"its job was deleted behind our back, and it says {workload.reason!r}"
    if job is None:
        return
    ended = {
        each["type"]
        for each in job.get("status", {}).get("conditions", ())
        if each["status"] == "True"
    }
    if job["metadata"].get("deletionTimestamp"):
        if status not in RESTING | ENDING:
            yield "its job is being deleted"
        return
    expected = (
        Status.FAILED
        if "Failed" in ended
        else Status.COMPLETED
        if ended & {"Succeeded", "Complete"}
        else None
    )
    if expected is not None and status not in RESTING | {expected, Status.DELETING}:
        yield f"its job is {expected}"
    if expected is None and status in TERMINAL and workload.job_uid not in history.ends:
        yield "its job has not ended"
    if expected is None and status not in RESTING | ENDING:
        yield from _running(workload, job, there)


def _running(workload: Workload, job: Object, there: dict[str, list[Object]]) -> Iterator[str]:
    """What its pods say of one that goes on."""
    pods = [
        each for each in there["pod"] if _is_pod_of(each, workload) and _owner(each) == _uid(job)
    ]
    ready = [each for each in pods if _is_ready(each)]
    ended_well = [each for each in pods if each["status"].get("phase") == "Succeeded"]
    wanted = _count_wanted_pods(job)
    if workload.requested_pods != wanted:
        yield f"{workload.requested_pods} pods are requested, and {wanted} there"
    if workload.running_pods != len(ready):
        yield f"{workload.running_pods} pods run, and {len(ready)} there"
    all_up = len(ready) + len(ended_well) >= wanted
    if all_up and workload.status != Status.RUNNING:
        yield "all its pods are up"
    if workload.status == Status.RUNNING and not pods and wanted:
        yield "it has no pods"


def _group(workload: Workload, job: Object | None, there: dict[str, list[Object]]) -> Iterator[str]:
    group = next(
        (
            each
            for each in there["podgroup"]
            if each["metadata"]["name"] == f"pg-{workload.name}-{workload.job_uid}"
        ),
        None,
    )
    kept = (workload.pod_group or {}).get("metadata", {})
    mine = (group or {}).get("metadata", {})
    if (kept.get("uid"), kept.get("resourceVersion")) != (
        mine.get("uid"),
        mine.get("resourceVersion"),
    ) and workload.job_uid:
        yield (
            f"its PodGroup is {kept.get('uid')} {kept.get('resourceVersion')}, and there "
            f"{mine.get('uid')} {mine.get('resourceVersion')}"
        )


def _pods(workload: Workload, there: dict[str, list[Object]]) -> Iterator[str]:
    uids = dict(Attempt.objects.filter(workload=workload).values_list("number", "job_uid"))
    rows = {row.uid: row for row in Pod.objects.filter(workload=workload)}
    mine = {_uid(each): each for each in there["pod"] if _is_pod_of(each, workload)}
    for uid, pod in mine.items():
        row, owner, attempt = rows.pop(uid, None), _owner(pod), _attempt(pod)
        # A pod without an owner is taken for what its labels say; one of somebody else's never is.
        is_ours = (not owner or owner == uids.get(attempt)) and attempt in uids
        if row is None:
            if is_ours:
                yield f"the pod {pod['metadata']['name']} {uid} is not known"
            continue
        if not is_ours and uids.get(attempt) and row.vanished_at is None:
            yield f"the pod {pod['metadata']['name']} of {owner} is not its"
            continue
        now = (
            pod["metadata"]["resourceVersion"],
            pod["status"].get("phase", ""),
            pod["spec"].get("nodeName", ""),
            _is_ready(pod),
            None,
        )
        then = (row.version, row.phase, row.node, row.is_ready, row.vanished_at)
        if now != then and is_ours:
            yield f"the pod {row.name} {uid} is {then}, and there {now}"
    for row in rows.values():
        if row.vanished_at is None:
            yield f"the pod {row.name} {row.uid} has vanished"


def _is_ready(pod: Object) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return (
        pod["status"].get("phase") == "Running"
        and conditions.get("Ready") == "True"
        and not pod["metadata"].get("deletionTimestamp")
    )


def _count_wanted_pods(job: Object) -> int:
    if job["kind"] == "Job":
        left = int(job["spec"]["completions"]) - int(job.get("status", {}).get("succeeded", 0))
        return max(0, min(int(job["spec"]["parallelism"]), left))
    return sum(int(each.get("replicas", 1)) for each in job["spec"]["pytorchReplicaSpecs"].values())


def _is_pod_of(obj: Object, workload: Workload) -> bool:
    labels = obj["metadata"].get("labels") or {}
    return bool(
        labels.get(manifests.WORKLOAD) == str(workload.pk)
        and labels.get(manifests.MANAGED_BY) == manifests.MUSTER
    )


def _is_job_of(job: Object, workload: Workload) -> bool:
    kind = "PyTorchJob" if workload.framework else "Job"
    is_his = (
        _is_pod_of(job, workload)
        and _attempt(job) == workload.attempt
        and job["metadata"]["name"] == workload.name
    )
    return is_his and job["kind"] == kind and not _owner(job)


def _attempt(obj: Object) -> int:
    return int((obj["metadata"].get("labels") or {}).get(manifests.ATTEMPT, 0))


def _owner(obj: Object) -> str:
    owners: list[Any] = obj["metadata"].get("ownerReferences") or []
    return next((str(each["uid"]) for each in owners if each.get("controller")), "")


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])

"""Rows as the REST API has them: workloads, pods, events and history, in the words of Run:ai's
API.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any

from workloads import quantities
from workloads.manifests.rest import as_rest
from workloads.models import Event, Pod, Workload
from workloads.observed import listed, part, plain
from workloads.specs import (
    Compute,
    Environment,
    Priority,
    Setup,
    Source,
    Spec,
    from_json,
    join_words,
)
from workloads.states import ACTIVE, TERMINAL, Status

Body = dict[str, Any]

TENANT = 1
"""There is one."""
NODE_POOL = "default"
"""What clients expect where no pool was asked for."""
PHASES = frozenset(each.value for each in Status)


def submission(workload: Workload, requested_name: str = "") -> Body:
    """What was submitted, and what became of it."""
    spec = from_json(workload.spec)
    asked = as_rest(spec, project_id=str(workload.project_id), cluster_id=str(workload.cluster_id))
    return asked | {
        "requestedName": requested_name or workload.name,
        "workloadId": str(workload.pk),
        "departmentId": str(workload.project.department_id),
        "createdBy": _submitter(workload),
        "createdAt": moment(workload.created_at),
        "deletedAt": moment(workload.deleted_at),
        "desiredPhase": workload.desired,
        "actualPhase": workload.status,
    }


def item(workload: Workload, ran: float) -> Body:
    """One of the list, which ran so many seconds. Needs project with department, and
    submitted_by.
    """
    spec = from_json(workload.spec)
    project = workload.project
    conditions = _conditions(workload)
    return {
        "tenantId": TENANT,
        "id": str(workload.pk),
        "name": workload.name,
        "type": "Distributed" if spec.is_distributed else "Training",
        "category": "Training",
        "source": "Control-plane",
        "submittedBy": _submitter(workload),
        "clusterId": str(workload.cluster_id),
        "projectId": str(workload.project_id),
        "projectName": project.name,
        "departmentId": str(project.department_id),
        "departmentName": project.department.name,
        "namespace": project.namespace,
        "createdAt": moment(workload.created_at),
        "updatedAt": moment(workload.status_at),
        "deletedAt": moment(workload.deleted_at),
        "completedAt": moment(workload.ended_at) if workload.status in TERMINAL else None,
        "phase": workload.status,
        # Why it is so; else why what was asked for is not done yet.
        "phaseMessage": workload.reason or workload.trouble,
        "phaseUpdatedAt": moment(workload.status_at),
        "k8sPhase": next(
            (each["type"] for each in reversed(conditions) if each["status"] == "True"), ""
        ),
        "k8sPhaseUpdatedAt": moment(workload.status_at),
        "conditions": conditions,
        "actionsSupport": {
            "delete": workload.status != Status.DELETING,
            "suspend": workload.status in ACTIVE,
        },
        "preemptible": workload.preemptible,
        "priority": Priority(workload.priority).number
        if workload.priority in Priority.__members__.values()
        else None,
        "priorityClassName": workload.priority,
        "runningPods": workload.running_pods,
        "requestedPods": _requested_pods(spec),
        "requestedNodePools": list(spec.setup.node_pools) or [NODE_POOL],
        "currentNodePools": []
        if spec.setup.node_pools or not workload.running_pods
        else [NODE_POOL],
        "totalRunningTimeSeconds": int(ran),
        "additionalFields": {"attempt": workload.attempt, "ended": workload.ended},
    } | _what_runs(workload, spec)


def pod(row: Pod, *, full: bool = False) -> Body:
    """A pod. Needs its workload with project. `full` adds the names of workload and project."""
    workload = row.workload
    setup = part(row.data, "spec")
    updated = (
        row.vanished_at or row.ended_at or row.started_at or row.created_at or workload.created_at
    )
    shown = {
        "tenantId": TENANT,
        "id": row.uid,
        "name": row.name,
        "workloadId": str(row.workload_id),
        "projectId": str(workload.project_id),
        "clusterId": str(workload.cluster_id),
        "priorityClassName": workload.priority,
        "nodeName": row.node,
        "createdAt": moment(row.created_at or workload.created_at),
        "completedAt": moment(row.ended_at),
        "deletedAt": moment(row.vanished_at),
        "updatedAt": moment(updated),
        "k8sPhase": row.phase or "Pending",
        "k8sPhaseUpdatedAt": moment(updated),
        "containers": _containers(row),
        "requestedNodePools": [NODE_POOL],
        "currentNodePool": NODE_POOL if row.node else "",
        "requestedResources": {"gpu": {"request": _number(row.gpus)}},
        "allocatedResources": {
            "gpu": _number(row.gpus)
            if row.node and row.ended_at is None and row.vanished_at is None
            else 0
        },
        "ip": plain(part(row.data, "status").get("podIP")),
        "tolerations": [_toleration(each) for each in listed({"of": setup}, "of", "tolerations")],
    }
    return shown | (
        {"workloadName": workload.name, "projectName": workload.project.name} if full else {}
    )


def event(row: Event, workload: Workload) -> Body:
    """Something that happened: an event of the cluster, or what somebody did."""
    return {
        "id": row.uid or str(row.pk),
        "createdAt": moment(row.at),
        "type": "Warning" if row.is_warning else "Normal",
        "clusterId": str(workload.cluster_id),
        "message": str(row),
        "reason": row.reason,
        "source": row.source or ("" if row.kind == Event.Kind.CLUSTER else "muster"),
        "involvedObject": {
            "uid": "" if row.subject else str(workload.pk),
            "kind": row.subject_kind or "Workload",
            "name": row.subject or workload.name,
            "namespace": workload.project.namespace,
        },
    }


def record(row: Event, workload: Workload) -> Body:
    """An entry of the history: a change of status, or an event."""
    changed = row.new in PHASES
    what = (
        {"phaseUpdate": {"phase": row.new, "phaseMessage": row.text}}
        if changed
        else {"event": event(row, workload)}
    )
    return {
        "meta": {
            "creationTimestamp": moment(row.at),
            "type": "PhaseUpdate" if changed else "Event",
        },
        "spec": what,
    }


def moment(at: datetime | None) -> str | None:
    """RFC 3339, in UTC."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def _submitter(workload: Workload) -> str:
    return workload.submitted_by.username if workload.submitted_by else ""


def _requested_pods(spec: Spec) -> Body:
    asked: Body = {"number": spec.pods}
    if spec.elastic is not None:
        head = int(spec.has_master)
        asked |= {"min": spec.elastic.min_workers + head, "max": spec.elastic.max_workers + head}
    if not spec.is_distributed:
        asked |= {"parallelism": spec.parallelism, "completions": spec.runs}
    return asked


def _what_runs(workload: Workload, spec: Spec) -> Body:
    environment = spec.setup.environment
    images = [
        environment.image,
        *([spec.master_setup.environment.image] if spec.has_master else []),
    ]
    totals = spec.totals
    return {
        "images": list(dict.fromkeys(images)),
        "command": join_words(environment.command),
        "arguments": join_words(environment.args),
        "environmentVariables": _variables(environment),
        "distributedFramework": spec.framework.value if spec.framework else None,
        "workloadRequestedResources": {
            "gpuRequestType": _gpu_type(spec.setup.compute),
            "gpu": {"request": _number(totals.gpus)},
            "gpuMemory": {"request": f"{totals.gpu_memory}Mi" if totals.gpu_memory else None},
            "cpu": {"request": _number(totals.cpu)},
            "cpuMemory": {"request": str(int(totals.memory)) if totals.memory else None},
        },
        "podsRequestedResources": _of_a_pod(spec.setup),
        "allocatedResources": {"gpu": _number(workload.gpus_allocated)},
        "urls": [],
        "datasources": [],
        "environments": [],
        "childrenIds": [],
    }


def _of_a_pod(setup: Setup) -> Body:
    compute, gpus = setup.compute, setup.compute.gpus
    whole = Decimal(gpus.device_count) * (1 if gpus.portion is None else gpus.portion)
    return {
        "gpuRequestType": _gpu_type(compute),
        "gpu": {"request": 0 if gpus.memory else _number(whole)},
        "gpuMemory": {"request": gpus.memory or None},
        "cpu": {"request": _cores(compute.cpu_request), "limit": _cores(compute.cpu_limit)},
        "cpuMemory": {
            "request": compute.memory_request or None,
            "limit": compute.memory_limit or None,
        },
        "extendedResources": [
            {"resource": each.resource, "quantity": each.quantity} for each in compute.extended
        ],
    }


def _gpu_type(compute: Compute) -> str | None:
    return (
        "memory" if compute.gpus.memory else "portion" if compute.gpus.portion is not None else None
    )


def _cores(quantity: str) -> float | int | None:
    return _number(quantities.parse(quantity)) if quantity else None


def _variables(environment: Environment) -> dict[str, str]:
    """Those with a value of their own; where others come from is in the submission."""
    return {each.name: each.value for each in environment.variables if each.source is Source.CUSTOM}


def _conditions(workload: Workload) -> list[Body]:
    found = []
    for each in listed(workload.job, "status", "conditions")[:50]:
        shown = {"type": plain(each.get("type"), 100), "status": plain(each.get("status"), 20)}
        shown |= {"reason": plain(each.get("reason")), "message": plain(each.get("message"))}
        if isinstance(changed := each.get("lastTransitionTime"), str):
            shown["lastTransitionTime"] = plain(changed, 40)
        found.append(shown)
    return found


def _containers(row: Pod) -> list[Body]:
    began = {
        str(each.get("name")): part(each, "state", "running").get("startedAt")
        or part(each, "state", "terminated").get("startedAt")
        for each in listed(row.data, "status", "containerStatuses")
    }
    containers = [
        {
            "name": plain(each.get("name")),
            "image": plain(each.get("image")),
            "startedAt": began.get(str(each.get("name"))),
        }
        for each in listed(row.data, "spec", "containers")
    ]
    return containers or [{"name": "", "image": row.image, "startedAt": moment(row.started_at)}]


def _toleration(told: Body) -> Body:
    shown = {
        name: plain(told.get(name))
        for name in ("key", "operator", "value", "effect")
        if told.get(name)
    }
    seconds = told.get("tolerationSeconds")
    return shown | ({"tolerationSeconds": seconds} if isinstance(seconds, int) else {})


def _number(value: Decimal | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value == value.to_integral_value() else float(value)

"""Answers of the REST API: workloads, pods, events and history, in the words of Run:ai's API."""

from decimal import Decimal
from typing import Any

from console.moments import format_moment
from workloads import quantities
from workloads.diagnosis import Diagnosis
from workloads.disruptions import Disruption, decode_disruption
from workloads.kube_objects import clean_text, nested_dict, nested_list
from workloads.models import Attempt, Event, Pod, Workload
from workloads.phases import get_phase
from workloads.queries import DeliveryView, EventWords, Explanation, PreparationView
from workloads.rest.writing import build_rest_body
from workloads.runtime_limits import LimitUse
from workloads.specs import (
    Compute,
    Environment,
    Priority,
    Setup,
    Spec,
    VariableSource,
    decode_spec,
    join_command_line,
)
from workloads.states import ACTIVE, TERMINAL, Status
from workloads.utilisation import get_current_use

Body = dict[str, Any]

TENANT_ID = 1
"""The id of the only tenant."""
DEFAULT_NODE_POOL = "default"
"""The pool that clients expect where none was requested."""


def serialize_submission(workload: Workload, requested_name: str = "") -> Body:
    """Return a submission with the workload's present state."""
    spec = decode_spec(workload.spec)
    submission = build_rest_body(
        spec, project_id=str(workload.project_id), cluster_id=str(workload.cluster_id)
    )
    if spec.total_gpus is not None:
        submission["spec"]["numWorkers"] = spec.workers
    return submission | {
        "requestedName": requested_name or workload.name,
        "workloadId": str(workload.pk),
        "departmentId": str(workload.project.department_id),
        "createdBy": _get_submitter_name(workload),
        "createdAt": format_moment(workload.created_at),
        "deletedAt": format_moment(workload.deleted_at),
        "desiredPhase": workload.desired,
        "actualPhase": get_phase(workload.status),
    }


def serialize_workload(
    workload: Workload,
    running_seconds: float,
    explanation: Explanation,
    preparation: PreparationView | None,
) -> Body:
    """Return a workload as an item of the list.

    Needs the project with its department, and submitted_by.
    """
    spec = decode_spec(workload.spec)
    project = workload.project
    conditions = _serialize_conditions(workload)
    return {
        "tenantId": TENANT_ID,
        "id": str(workload.pk),
        "name": workload.name,
        "type": "Distributed" if spec.is_distributed else "Training",
        "category": "Training",
        "source": "Control-plane",
        "submittedBy": _get_submitter_name(workload),
        "clusterId": str(workload.cluster_id),
        "projectId": str(workload.project_id),
        "projectName": project.name,
        "departmentId": str(project.department_id),
        "departmentName": project.department.name,
        "namespace": project.namespace,
        "createdAt": format_moment(workload.created_at),
        "updatedAt": format_moment(workload.status_at),
        "deletedAt": format_moment(workload.deleted_at),
        "completedAt": format_moment(workload.ended_at) if workload.status in TERMINAL else None,
        "phase": get_phase(workload.status),
        "phaseMessage": explanation.text,
        "diagnosis": _serialize_diagnosis(explanation.diagnosis),
        "clusterMessage": explanation.cluster_message,
        "phaseUpdatedAt": format_moment(workload.status_at),
        "k8sPhase": next(
            (each["type"] for each in reversed(conditions) if each["status"] == "True"), ""
        ),
        "k8sPhaseUpdatedAt": format_moment(workload.status_at),
        "conditions": conditions,
        "actionsSupport": {
            "delete": workload.status != Status.DELETING,
            "suspend": workload.status in ACTIVE or workload.may_be_resumed_by_others,
        },
        "preemptible": workload.preemptible,
        "priority": Priority(workload.priority).number
        if workload.priority in Priority.__members__.values()
        else None,
        "priorityClassName": workload.priority,
        "runningPods": workload.running_pods,
        "requestedPods": _serialize_requested_pods(workload, spec),
        "requestedNodePools": list(spec.setup.node_pools) or [DEFAULT_NODE_POOL],
        "currentNodePools": []
        if spec.setup.node_pools or not workload.running_pods
        else [DEFAULT_NODE_POOL],
        "totalRunningTimeSeconds": int(running_seconds),
        "gpuUse": _serialize_gpu_use(workload),
        "idleSince": format_moment(workload.idle_since),
        "likelyStartAt": format_moment(workload.likely_start),
        "dataDelivery": serialize_preparation(preparation),
        "additionalFields": {"attempt": workload.attempt, "ended": workload.ended},
    } | _serialize_definition(workload, spec)


def _serialize_gpu_use(workload: Workload) -> Body | None:
    """Return how much it uses its GPUs now; None where that is not known. Needs metric_series."""
    series = getattr(workload, "metric_series", None)
    if series is None:
        return None
    percent = get_current_use(workload.status, series.gpu_use, series.gpu_use_at)
    if percent is None:
        return None
    return {"percent": round(percent, 1), "at": format_moment(series.gpu_use_at)}


def _serialize_diagnosis(diagnosis: Diagnosis | None) -> Body | None:
    if diagnosis is None:
        return None
    return {
        "message": diagnosis.sentence,
        "help": diagnosis.help,
        "pod": diagnosis.pod,
        "container": diagnosis.container,
        "logLine": diagnosis.line,
        "cause": diagnosis.cause,
        "rank": diagnosis.rank,
        "confidence": diagnosis.confidence,
        "queuePosition": diagnosis.position,
        "queueLength": diagnosis.queue_length,
    }


def serialize_preparation(view: PreparationView | None) -> Body | None:
    """Return how far the data of a workload that prepares it is; None for any other."""
    if view is None:
        return None
    return {
        "preparedUnits": view.prepared,
        "units": view.wanted,
        "percent": view.percent,
        "secondsLeft": None if view.eta_seconds is None else round(view.eta_seconds),
    }


def serialize_delivery(view: DeliveryView) -> Body:
    """Return how a workload's data is prepared and delivered."""
    return {
        "attempt": view.attempt,
        "workers": view.data_workers,
        "units": view.wanted,
        "preparedUnits": view.prepared,
        "percent": view.percent,
        "unitsPerSecond": view.rate,
        "secondsLeft": None if view.eta_seconds is None else round(view.eta_seconds),
        "message": view.progress_sentence,
        "hasStalled": view.has_stalled,
        "endedEarly": view.ended_early,
        "failure": view.failure,
        "readyAt": format_moment(view.ready_at),
        "resumedAt": format_moment(view.resumed_at),
        "dataWorkers": [
            {
                "number": each.number,
                "pod": each.pod,
                "status": each.status,
                "nodeName": each.node,
                "preparedUnits": each.prepared,
                "units": each.of,
                "unitsPerSecond": each.rate,
                "isReady": each.is_ready,
                "error": each.error,
            }
            for each in view.workers
        ],
        "ranks": [
            {
                "rank": each.rank,
                "countedAt": format_moment(each.at),
                "waitedSeconds": each.waited,
                "computedSeconds": each.computed,
                "spanSeconds": each.span,
                "waitedShare": round(each.waited_share, 4),
                "queueDepth": each.depth,
                "elementsPerSecond": each.rate,
                "deliveredElements": each.delivered,
                "epoch": each.epoch,
            }
            for each in view.ranks
        ],
        "rankCount": view.rank_count,
        "waitedShare": None if view.waited_share is None else round(view.waited_share, 4),
        "elementsPerSecond": view.elements_per_second,
        "countedAt": format_moment(view.counted_at),
        "isRecent": view.is_recent,
        "waitingMessage": view.sentence,
        "suggestedWorkers": view.suggested_workers,
    }


def serialize_attempt(attempt: Attempt) -> Body:
    """Return one run of a workload. Needs requested_by."""
    return {
        "number": attempt.number,
        "phase": get_phase(attempt.status),
        "phaseMessage": attempt.reason,
        "requestedBy": attempt.requested_by.username if attempt.requested_by else "",
        "requestedAt": format_moment(attempt.requested_at),
        "startedAt": format_moment(attempt.started_at),
        "endedAt": format_moment(attempt.ended_at),
        "podsEnded": attempt.ended,
    }


def serialize_limit(use: LimitUse) -> Body:
    """Return a limit of a workload with what is used of it."""
    return {
        "name": use.title,
        "limitSeconds": use.limit_seconds,
        "usedSeconds": None if use.used_seconds is None else int(use.used_seconds),
        "message": use.note,
    }


def serialize_pod(row: Pod, workload: Workload, *, full: bool = False) -> Body:
    """Return a pod of a workload, which is loaded with its project.

    `full` adds the names of workload and project.
    """
    pod_spec = nested_dict(row.data, "spec")
    updated = (
        row.vanished_at or row.ended_at or row.started_at or row.created_at or workload.created_at
    )
    body = {
        "tenantId": TENANT_ID,
        "id": row.uid,
        "name": row.name,
        "workloadId": str(row.workload_id),
        "projectId": str(workload.project_id),
        "clusterId": str(workload.cluster_id),
        "priorityClassName": workload.priority,
        "nodeName": row.node,
        "createdAt": format_moment(row.created_at or workload.created_at),
        "completedAt": format_moment(row.ended_at),
        "deletedAt": format_moment(row.vanished_at),
        "updatedAt": format_moment(updated),
        "k8sPhase": row.phase or "Pending",
        "k8sPhaseUpdatedAt": format_moment(updated),
        "containers": _serialize_containers(row),
        "requestedNodePools": [DEFAULT_NODE_POOL],
        "currentNodePool": DEFAULT_NODE_POOL if row.node else "",
        "requestedResources": {"gpu": {"request": _serialize_number(row.gpus)}},
        "allocatedResources": {
            "gpu": _serialize_number(row.gpus)
            if row.node and row.ended_at is None and row.vanished_at is None
            else 0
        },
        "attempt": row.attempt,
        "role": row.role,
        "rank": row.rank,
        "status": row.status or row.phase,
        "message": row.reason,
        "restarts": row.restarts,
        "startedAt": format_moment(row.started_at),
        "ip": clean_text(nested_dict(row.data, "status").get("podIP")),
        "tolerations": [
            _serialize_toleration(each)
            for each in nested_list({"of": pod_spec}, "of", "tolerations")
        ],
    }
    return body | (
        {"workloadName": workload.name, "projectName": workload.project.name} if full else {}
    )


def serialize_event(row: Event, workload: Workload, words: EventWords) -> Body:
    """Return an event of the cluster, or an action of a user, with its words for this reader.

    What took pods has its cause in numbers, too.
    """
    disruption = decode_disruption(row.cause) if row.kind == Event.Kind.SCALE else None
    cause = {} if disruption is None else {"cause": _serialize_disruption(disruption, words.taker)}
    return {
        "id": row.uid or str(row.pk),
        "createdAt": format_moment(row.at),
        "type": "Warning" if row.is_warning else "Normal",
        "clusterId": str(workload.cluster_id),
        "message": words.text or str(row),
        "reason": row.reason,
        "source": row.source or ("" if row.kind == Event.Kind.CLUSTER else "muster"),
        "involvedObject": {
            "uid": "" if row.subject else str(workload.pk),
            "kind": row.subject_kind or "Workload",
            "name": row.subject or workload.name,
            "namespace": workload.project.namespace,
        },
    } | cause


def _serialize_disruption(disruption: Disruption, taker: str) -> Body:
    return {
        "action": disruption.action.value,
        "pods": disruption.pods,
        "gpus": _serialize_number(disruption.gpus),
        "takenBy": taker,
        "nodes": list(disruption.nodes),
        "podsBefore": disruption.pods_before,
        "podsAfter": disruption.pods_after,
        "isOver": not disruption.is_open,
        "resumedStep": disruption.resumed_step,
        "beganAnew": disruption.began_anew,
        "lostSteps": disruption.lost_steps,
        "lostSeconds": disruption.lost_seconds,
    }


def serialize_history_record(row: Event, workload: Workload, words: EventWords) -> Body:
    """Return an entry of the history: a change of status, or an event.

    The event of a change of the number of pods also has `scale`.
    """
    is_status = row.new in Status.__members__.values()
    content: Body = (
        {"phaseUpdate": {"phase": get_phase(row.new), "phaseMessage": row.text}}
        if is_status
        else {"event": serialize_event(row, workload, words)}
    )
    if row.pods_after is not None:
        content["scale"] = {"podsBefore": row.pods_before, "podsAfter": row.pods_after}
    return {
        "meta": {
            "creationTimestamp": format_moment(row.at),
            "type": "PhaseUpdate" if is_status else "Event",
        },
        "spec": content,
    }


def _get_submitter_name(workload: Workload) -> str:
    return workload.submitted_by.username if workload.submitted_by else ""


def _serialize_requested_pods(workload: Workload, spec: Spec) -> Body:
    body: Body = {"number": spec.pod_count}
    if spec.elastic is not None:
        body |= {
            # Grown or lowered since it was submitted.
            "number": workload.requested_pods,
            "min": spec.elastic.min_pods,
            "max": spec.elastic.max_pods,
        }
    if not spec.is_distributed:
        body |= {"parallelism": spec.parallelism, "completions": spec.runs}
    return body


def _serialize_definition(workload: Workload, spec: Spec) -> Body:
    environment = spec.setup.environment
    images = [
        environment.image,
        *([spec.master_setup.environment.image] if spec.has_master else []),
    ]
    totals = spec.overall_totals
    return {
        "images": list(dict.fromkeys(images)),
        "command": join_command_line(environment.command),
        "arguments": join_command_line(environment.args),
        "environmentVariables": _serialize_variables(environment),
        "distributedFramework": spec.framework.value if spec.framework else None,
        "workloadRequestedResources": {
            "gpuRequestType": _get_gpu_request_type(spec.setup.compute),
            "gpu": {"request": _serialize_number(totals.gpus)},
            "gpuMemory": {"request": f"{totals.gpu_memory}Mi" if totals.gpu_memory else None},
            "cpu": {"request": _serialize_number(totals.cpu)},
            "cpuMemory": {"request": str(int(totals.memory)) if totals.memory else None},
        },
        "podsRequestedResources": _serialize_pod_resources(spec.setup),
        "allocatedResources": {
            "gpu": _serialize_number(workload.gpus_allocated),
            "cpu": _serialize_number(workload.cpu_allocated),
            "cpuMemory": str(workload.memory_allocated),
        },
        "urls": [],
        "datasources": [],
        "environments": [],
        "childrenIds": [],
    }


def _serialize_pod_resources(setup: Setup) -> Body:
    compute, gpus = setup.compute, setup.compute.gpus
    gpu_devices = Decimal(gpus.device_count) * (1 if gpus.portion is None else gpus.portion)
    return {
        "gpuRequestType": _get_gpu_request_type(compute),
        "gpu": {"request": 0 if gpus.memory else _serialize_number(gpu_devices)},
        "gpuMemory": {"request": gpus.memory or None},
        "cpu": {
            "request": _parse_cores(compute.cpu_request),
            "limit": _parse_cores(compute.cpu_limit),
        },
        "cpuMemory": {
            "request": compute.memory_request or None,
            "limit": compute.memory_limit or None,
        },
        "extendedResources": [
            {"resource": each.resource, "quantity": each.quantity} for each in compute.extended
        ],
    }


def _get_gpu_request_type(compute: Compute) -> str | None:
    if compute.gpus.memory:
        return "memory"
    return None if compute.gpus.portion is None else "portion"


def _parse_cores(quantity: str) -> float | int | None:
    return _serialize_number(quantities.parse_quantity(quantity)) if quantity else None


def _serialize_variables(environment: Environment) -> dict[str, str]:
    """Return the variables with a value of their own.

    Where others come from is in the submission.
    """
    return {
        each.name: each.value
        for each in environment.variables
        if each.source is VariableSource.CUSTOM
    }


def _serialize_conditions(workload: Workload) -> list[Body]:
    conditions = []
    for each in nested_list(workload.job, "status", "conditions")[:50]:
        body = {
            "type": clean_text(each.get("type"), 100),
            "status": clean_text(each.get("status"), 20),
        }
        body |= {
            "reason": clean_text(each.get("reason")),
            "message": clean_text(each.get("message")),
        }
        if isinstance(changed := each.get("lastTransitionTime"), str):
            body["lastTransitionTime"] = clean_text(changed, 40)
        conditions.append(body)
    return conditions


def _serialize_containers(row: Pod) -> list[Body]:
    started = {
        str(each.get("name")): nested_dict(each, "state", "running").get("startedAt")
        or nested_dict(each, "state", "terminated").get("startedAt")
        for each in nested_list(row.data, "status", "containerStatuses")
    }
    containers = [
        {
            "name": clean_text(each.get("name")),
            "image": clean_text(each.get("image")),
            "startedAt": started.get(str(each.get("name"))),
        }
        for each in nested_list(row.data, "spec", "containers")
    ]
    return containers or [
        {"name": "", "image": row.image, "startedAt": format_moment(row.started_at)}
    ]


def _serialize_toleration(toleration: Body) -> Body:
    body = {
        name: clean_text(toleration.get(name))
        for name in ("key", "operator", "value", "effect")
        if toleration.get(name)
    }
    seconds = toleration.get("tolerationSeconds")
    return body | ({"tolerationSeconds": seconds} if isinstance(seconds, int) else {})


def _serialize_number(value: Decimal | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value == value.to_integral_value() else float(value)

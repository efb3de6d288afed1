"""Quota trials in answers of the REST API, and their schemas."""

from typing import Any

from console.moments import format_moment
from projects.api import schemas
from projects.api.schemas import (
    BOOLEAN,
    INTEGER,
    MOMENT,
    NUMBER,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from workloads.models import QuotaTrial, TrialStatus
from workloads.trials import Change, ChangeKind, decode_changes, decode_result
from workloads.trials.changes import COUNT_FIELD, MOST_FIRST_CHANGES
from workloads.trials.results import ProjectWaits, TrialResult, Waits

FIELD_NAMES = {
    "gpu_quota": "gpuQuota",
    "gpu_limit": "gpuLimit",
    "over_quota_weight": "overQuotaWeight",
    COUNT_FIELD: "count",
}
_MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
_WAITS = object_schema(
    ["medianSeconds", "p90Seconds", "gpuHours", "notStarted"],
    medianSeconds=describe_schema(NUMBER, "Half of the workloads wait less."),
    p90Seconds=describe_schema(NUMBER, "9 of 10 wait less."),
    gpuHours=describe_schema(NUMBER, "GPUs that are waited for, times hours."),
    notStarted=describe_schema(INTEGER, "Had not started by the end; counted with that time."),
)
_PROJECT_WAITS = {
    "workloads": INTEGER,
    "measured": describe_schema(_WAITS, "As it was in truth."),
    "asItIs": describe_schema(_WAITS, "The replay with today's quotas and nodes."),
    "asTried": describe_schema(_WAITS, "The replay with the changes."),
}
_RESULT = object_schema(
    ["begin", "until", "isWhole", "total", "projects"],
    begin=MOMENT,
    until=describe_schema(MOMENT, "How far both replays came."),
    isWhole=describe_schema(BOOLEAN, "Whether that is all of the time."),
    isCut=describe_schema(BOOLEAN, "Whether there were more workloads than are played."),
    stoppedBeforeStart=describe_schema(INTEGER, "Runs that are left out: none knows their length."),
    unreadable=describe_schema(
        INTEGER,
        "Runs that are left out: of removed projects, unreadable definitions, or too many pods.",
    ),
    deleted=describe_schema(INTEGER, "Workloads of this time whose rows are gone."),
    total=object_schema(_PROJECT_WAITS, **_PROJECT_WAITS),
    projects=array_schema(
        object_schema(
            ["projectId", "projectName", *_PROJECT_WAITS],
            projectId=TEXT,
            projectName=TEXT,
            **_PROJECT_WAITS,
        )
    ),
)
_CHANGE = object_schema(
    ["kind", "id", "name", "field", "before", "after"],
    kind=enum_schema(*(each.value for each in ChangeKind)),
    id=TEXT,
    name=TEXT,
    field=enum_schema(*FIELD_NAMES.values()),
    before=describe_schema(TEXT, "Empty is unlimited; of a department's quota, the sum."),
    after=TEXT,
)
_TRIAL_FIELDS: dict[str, Schema] = {
    "id": schemas.ID,
    "clusterId": schemas.ID,
    "clusterName": TEXT,
    "askedBy": TEXT,
    "status": enum_schema(*(each.value for each in TrialStatus)),
    "message": describe_schema(TEXT, "Why it failed."),
    "createdAt": MOMENT,
    "computedAt": _MAYBE_MOMENT,
    "tookSeconds": NUMBER,
    "changeCount": INTEGER,
    "firstChanges": describe_schema(
        array_schema(_CHANGE), f"At most {MOST_FIRST_CHANGES}; a trial by itself has all `changes`."
    ),
}
TRIAL = object_schema(_TRIAL_FIELDS, **_TRIAL_FIELDS)
WHOLE_TRIAL = object_schema(
    [*_TRIAL_FIELDS, "changes", "result"],
    **_TRIAL_FIELDS,
    changes=array_schema(_CHANGE),
    result={"oneOf": [_RESULT, {"type": "null"}]},
)


def serialize_trial(trial: QuotaTrial) -> dict[str, Any]:
    """Return a trial as the API lists it: with its first changes, and without its result."""
    return {
        "id": str(trial.pk),
        "clusterId": str(trial.cluster_id),
        "clusterName": trial.cluster.name,
        "askedBy": trial.asked_by.username if trial.asked_by else "",
        "status": trial.status,
        "message": trial.trouble,
        "createdAt": format_moment(trial.created_at),
        "computedAt": format_moment(trial.computed_at),
        "tookSeconds": round(trial.took_seconds, 1),
        "changeCount": trial.change_count,
        "firstChanges": _serialize_changes(trial.first_changes),
    }


def serialize_whole_trial(trial: QuotaTrial) -> dict[str, Any]:
    """Return a trial as the API has it, with all changes and the result; None until it is done."""
    result = _serialize_result(decode_result(trial.result)) if trial.result else None
    changes = _serialize_changes(trial.changes)
    return serialize_trial(trial) | {"changes": changes, "result": result}


def _serialize_changes(data: Any) -> list[dict[str, str]]:
    return [_serialize_change(each) for each in decode_changes(data)]


def _serialize_change(change: Change) -> dict[str, str]:
    return {
        "kind": change.kind.value,
        "id": change.id,
        "name": change.name,
        "field": FIELD_NAMES.get(change.field, change.field),
        "before": change.before,
        "after": change.after,
    }


def _serialize_result(result: TrialResult) -> dict[str, Any]:
    return {
        "begin": format_moment(result.begin),
        "until": format_moment(result.until),
        "isWhole": result.is_whole,
        "isCut": result.is_cut,
        "stoppedBeforeStart": result.never_started,
        "unreadable": result.unreadable,
        "deleted": result.deleted,
        "total": _serialize_project(result.total),
        "projects": [
            {"projectId": str(each.id), "projectName": each.name} | _serialize_project(each)
            for each in result.projects
        ],
    }


def _serialize_project(waits: ProjectWaits) -> dict[str, Any]:
    return {
        "workloads": waits.count,
        "measured": _serialize_waits(waits.truth),
        "asItIs": _serialize_waits(waits.before),
        "asTried": _serialize_waits(waits.after),
    }


def _serialize_waits(waits: Waits) -> dict[str, Any]:
    return {
        "medianSeconds": waits.median,
        "p90Seconds": waits.high,
        "gpuHours": waits.gpu_hours,
        "notStarted": waits.unstarted,
    }

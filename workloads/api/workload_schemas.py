"""The schemas of workloads in the description of the API (OpenAPI)."""

from console.rest_schemas import describe_body
from projects.api.schemas import (
    BOOLEAN,
    ID,
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
from workloads.rest.structs import DistributedBody, SpecBody
from workloads.states import Status

PHASE = enum_schema(*Status)
MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
_SUBMISSION = describe_body(DistributedBody)
SPEC: Schema = describe_body(SpecBody)
"""The spec of a submission of either architecture. A policy may set its image."""
MASTER: dict[str, Schema] = {
    name: _SUBMISSION["properties"][name]
    for name in ("masterSpecSameAsWorker", "masterSpec", "noMaster")
}
_TEMPLATE_ID = describe_schema(
    ID, "A template: spec is merged over its values, and may not change what it locks."
)
SUBMISSION: Schema = {
    **_SUBMISSION,
    "properties": {**_SUBMISSION["properties"], **MASTER, "templateId": _TEMPLATE_ID, "spec": SPEC},
    "required": ["name", "projectId", "clusterId", "spec"],
}
SUBMITTED = object_schema(
    [
        "name",
        "requestedName",
        "workloadId",
        "projectId",
        "clusterId",
        "createdBy",
        "createdAt",
        "desiredPhase",
    ],
    name=TEXT,
    requestedName=TEXT,
    workloadId=ID,
    projectId=TEXT,
    departmentId=TEXT,
    clusterId=ID,
    createdBy=TEXT,
    createdAt=MOMENT,
    deletedAt=MAYBE_MOMENT,
    desiredPhase=enum_schema("Running", "Stopped", "Deleted"),
    actualPhase=PHASE,
    spec=SPEC,
    **MASTER,
)
_RESOURCES = describe_schema(
    object_schema(
        gpu=object_schema(request={"type": ["number", "null"]}),
        cpu=object_schema(request={"type": ["number", "null"]}),
        cpuMemory=object_schema(request={"type": ["string", "null"]}),
    ),
    "What is asked for; null where nothing is.",
)
WORKLOAD = object_schema(
    ["id", "name", "type", "phase", "projectId", "clusterId", "createdAt"],
    id=ID,
    name=TEXT,
    type=enum_schema("Distributed", "Training"),
    distributedFramework={"type": ["string", "null"]},
    phase=PHASE,
    phaseMessage=TEXT,
    phaseUpdatedAt=MOMENT,
    projectId=TEXT,
    projectName=TEXT,
    clusterId=ID,
    submittedBy=TEXT,
    createdAt=MOMENT,
    completedAt=MAYBE_MOMENT,
    deletedAt=MAYBE_MOMENT,
    runningPods=INTEGER,
    requestedPods=object_schema(
        number=INTEGER, min=INTEGER, max=INTEGER, parallelism=INTEGER, completions=INTEGER
    ),
    workloadRequestedResources=_RESOURCES,
    podsRequestedResources=_RESOURCES,
    allocatedResources=object_schema(gpu=NUMBER),
    actionsSupport=object_schema(delete=BOOLEAN, suspend=BOOLEAN),
    conditions=array_schema(
        object_schema(["type", "status"], type=TEXT, status=TEXT, reason=TEXT, message=TEXT)
    ),
    totalRunningTimeSeconds=INTEGER,
)
POD = object_schema(
    ["id", "name", "workloadId", "clusterId", "k8sPhase", "createdAt", "containers"],
    id=TEXT,
    name=TEXT,
    workloadId=ID,
    projectId=TEXT,
    clusterId=ID,
    nodeName=TEXT,
    k8sPhase=TEXT,
    createdAt=MOMENT,
    completedAt=MAYBE_MOMENT,
    deletedAt=MAYBE_MOMENT,
    containers=array_schema(object_schema(name=TEXT, image=TEXT, startedAt=MAYBE_MOMENT)),
)
EVENT = object_schema(
    ["createdAt", "type", "clusterId", "message"],
    id=TEXT,
    createdAt=MOMENT,
    type=enum_schema("Normal", "Warning"),
    clusterId=ID,
    message=TEXT,
    reason=TEXT,
    source=TEXT,
    involvedObject=object_schema(uid=TEXT, kind=TEXT, name=TEXT, namespace=TEXT),
)
RECORD = object_schema(
    ["meta", "spec"],
    meta=object_schema(creationTimestamp=MOMENT, type=enum_schema("Event", "PhaseUpdate")),
    spec=object_schema(event=EVENT, phaseUpdate=object_schema(phase=PHASE, phaseMessage=TEXT)),
)

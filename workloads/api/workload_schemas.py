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
from workloads.api.finding_answers import NEEDS_A_LOOK, OPEN_FINDINGS, RADAR
from workloads.api.progress_answers import MAYBE_PROGRESS
from workloads.diagnosis import Confidence, FailureCause
from workloads.disruptions import Action
from workloads.phases import PHASES
from workloads.rest.structs import DistributedBody, SpecBody
from workloads.specs import Framework

PHASE = enum_schema(*PHASES)
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
ACCEPTED: Schema = {
    **SUBMITTED,
    "properties": {
        **SUBMITTED["properties"],
        "warnings": describe_schema(
            array_schema(TEXT),
            "Why it cannot start with the nodes that its cluster has now, or with its project's "
            "quota: it is accepted, and waits until they grow. And that pods of several nodes "
            "would share a new claim that one node alone may mount. Missing where there is "
            "nothing to say.",
        ),
    },
}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_REQUESTED: dict[str, Schema] = {
    "gpuRequestType": {"type": ["string", "null"], "enum": ["portion", "memory", None]},
    "gpu": object_schema(["request"], request=_MAYBE_NUMBER),
    "gpuMemory": object_schema(["request"], request=_MAYBE_TEXT),
}
_NOTHING = "null where nothing is."
_WORKLOAD_RESOURCES = describe_schema(
    object_schema(
        **_REQUESTED,
        cpu=object_schema(["request"], request=_MAYBE_NUMBER),
        cpuMemory=object_schema(["request"], request=_MAYBE_TEXT),
    ),
    f"What all pods together ask for; {_NOTHING}",
)
_POD_RESOURCES = describe_schema(
    object_schema(
        **_REQUESTED,
        cpu=object_schema(["request", "limit"], request=_MAYBE_NUMBER, limit=_MAYBE_NUMBER),
        cpuMemory=object_schema(["request", "limit"], request=_MAYBE_TEXT, limit=_MAYBE_TEXT),
        extendedResources=array_schema(
            object_schema(["resource", "quantity"], resource=TEXT, quantity=TEXT)
        ),
    ),
    f"What a pod asks for, of a distributed workload a worker; {_NOTHING}",
)
_NODE_POOLS = array_schema(TEXT)
_ALWAYS_EMPTY = describe_schema(array_schema({}), "Always empty.")
_DIAGNOSIS = object_schema(
    ["message", "help"],
    message=TEXT,
    help=TEXT,
    pod=TEXT,
    container=TEXT,
    logLine=describe_schema(TEXT, "The line of the pod's log that says why it failed."),
    cause=describe_schema(
        {"type": ["string", "null"], "enum": [*FailureCause, None]},
        "What ended it; null of one that waits.",
    ),
    rank=describe_schema(
        {"type": ["integer", "null"]}, "The rank that caused it, where that is known."
    ),
    confidence=describe_schema(
        {"type": ["string", "null"], "enum": [*Confidence, None]},
        "Certain where the cluster or the library of collectives says so, likely where a line of "
        "the log does.",
    ),
    queuePosition=describe_schema(
        {"type": ["integer", "null"]},
        "Its place among the workloads of its project that wait for the same; null of others.",
    ),
    queueLength=describe_schema(
        {"type": ["integer", "null"]}, "How many of its project wait for the same."
    ),
)
WORKLOAD = object_schema(
    [
        "id",
        "name",
        "type",
        "distributedFramework",
        "phase",
        "phaseMessage",
        "diagnosis",
        "projectId",
        "clusterId",
        "createdAt",
    ],
    tenantId=INTEGER,
    id=ID,
    name=TEXT,
    type=enum_schema("Distributed", "Training"),
    category=enum_schema("Training"),
    source=enum_schema("Control-plane"),
    distributedFramework=describe_schema(
        {"type": ["string", "null"], "enum": [*sorted(Framework), None]},
        "Null of a standard workload.",
    ),
    phase=PHASE,
    phaseMessage=describe_schema(
        TEXT,
        "What its page says: why it waits or why it failed, why a requested change is not done "
        "yet, and whether its cluster answers.",
    ),
    diagnosis=describe_schema(
        {**_DIAGNOSIS, "type": ["object", "null"]},
        "Why it waits or why it failed, of which pod, and what would help.",
    ),
    clusterMessage=describe_schema(
        TEXT,
        "Since when its cluster has not answered or nobody has followed it: what is here may have "
        "changed since.",
    ),
    dataDelivery=describe_schema(
        {
            "anyOf": [
                object_schema(
                    preparedUnits=INTEGER,
                    units=INTEGER,
                    percent=INTEGER,
                    secondsLeft={"type": ["integer", "null"]},
                ),
                {"type": "null"},
            ]
        },
        "How far its data is while that is prepared, before GPUs are taken: its phase is then "
        "Initializing. Null otherwise.",
    ),
    phaseUpdatedAt=MOMENT,
    k8sPhase=describe_schema(TEXT, "The newest condition of its job that holds."),
    k8sPhaseUpdatedAt=MOMENT,
    projectId=TEXT,
    projectName=TEXT,
    departmentId=TEXT,
    departmentName=TEXT,
    namespace=TEXT,
    clusterId=ID,
    submittedBy=TEXT,
    createdAt=MOMENT,
    updatedAt=MOMENT,
    completedAt=MAYBE_MOMENT,
    deletedAt=MAYBE_MOMENT,
    runningPods=INTEGER,
    requestedPods=object_schema(
        number=INTEGER, min=INTEGER, max=INTEGER, parallelism=INTEGER, completions=INTEGER
    ),
    requestedNodePools=_NODE_POOLS,
    currentNodePools=_NODE_POOLS,
    preemptible=BOOLEAN,
    priority=describe_schema({"type": ["integer", "null"]}, "Null is the cluster's default."),
    priorityClassName=TEXT,
    images=array_schema(TEXT),
    command=TEXT,
    arguments=TEXT,
    environmentVariables=describe_schema(
        {"type": "object", "additionalProperties": TEXT}, "Those with a value of their own."
    ),
    workloadRequestedResources=_WORKLOAD_RESOURCES,
    podsRequestedResources=_POD_RESOURCES,
    allocatedResources=object_schema(gpu=NUMBER, cpu=NUMBER, cpuMemory=TEXT),
    actionsSupport=object_schema(delete=BOOLEAN, suspend=BOOLEAN),
    conditions=array_schema(
        object_schema(
            ["type", "status"],
            type=TEXT,
            status=TEXT,
            reason=TEXT,
            message=TEXT,
            lastTransitionTime=TEXT,
        )
    ),
    totalRunningTimeSeconds=INTEGER,
    gpuUse=describe_schema(
        {"type": ["object", "null"], "properties": {"percent": NUMBER, "at": MOMENT}},
        "The mean use of its GPUs, if it was measured in the last five minutes.",
    ),
    idleSince=describe_schema(MAYBE_MOMENT, "Since when none of its GPUs has been used."),
    likelyStartAt=describe_schema(
        MAYBE_MOMENT, "When it is likely to start, while it waits; its forecast says more."
    ),
    progress=MAYBE_PROGRESS,
    needsALook=NEEDS_A_LOOK,
    additionalFields=object_schema(
        attempt=INTEGER, ended=describe_schema(TEXT, 'How its pods ended: "3 succeeded".')
    ),
    **dict.fromkeys(("urls", "datasources", "environments", "childrenIds"), _ALWAYS_EMPTY),
)
_ATTEMPT = object_schema(
    ["number", "phase"],
    number=INTEGER,
    phase=PHASE,
    phaseMessage=TEXT,
    requestedBy=TEXT,
    requestedAt=MOMENT,
    startedAt=MAYBE_MOMENT,
    endedAt=MAYBE_MOMENT,
    podsEnded=describe_schema(TEXT, 'How its pods ended: "3 succeeded".'),
)
_LIMIT = object_schema(
    ["name", "limitSeconds", "usedSeconds"],
    name=TEXT,
    limitSeconds=INTEGER,
    usedSeconds={"type": ["integer", "null"]},
    message=describe_schema(TEXT, "Why nothing is counted now."),
)
POD = object_schema(
    ["id", "name", "workloadId", "clusterId", "k8sPhase", "createdAt", "deletedAt", "containers"],
    tenantId=INTEGER,
    id=TEXT,
    name=TEXT,
    workloadId=ID,
    workloadName=TEXT,
    projectId=TEXT,
    projectName=TEXT,
    clusterId=ID,
    priorityClassName=TEXT,
    requestedNodePools=_NODE_POOLS,
    currentNodePool=TEXT,
    requestedResources=object_schema(gpu=object_schema(["request"], request=_MAYBE_NUMBER)),
    allocatedResources=object_schema(gpu=_MAYBE_NUMBER),
    ip=TEXT,
    tolerations=array_schema(
        object_schema(key=TEXT, operator=TEXT, value=TEXT, effect=TEXT, tolerationSeconds=INTEGER)
    ),
    nodeName=TEXT,
    k8sPhase=TEXT,
    k8sPhaseUpdatedAt=MOMENT,
    createdAt=MOMENT,
    updatedAt=MOMENT,
    completedAt=MAYBE_MOMENT,
    deletedAt=describe_schema(MAYBE_MOMENT, "Null while the cluster has it."),
    attempt=describe_schema(INTEGER, "The attempt of the workload that it belongs to."),
    role=describe_schema(TEXT, "master, worker, ... of a distributed workload."),
    rank={"type": ["integer", "null"]},
    status=describe_schema(TEXT, "The phase, or what keeps it from running or ended it."),
    message=describe_schema(TEXT, "Why it has this status."),
    restarts=INTEGER,
    startedAt=MAYBE_MOMENT,
    containers=array_schema(object_schema(name=TEXT, image=TEXT, startedAt=MAYBE_MOMENT)),
)
_CAUSE = object_schema(
    ["action", "pods", "gpus", "takenBy", "isOver"],
    action=enum_schema(*Action),
    pods=describe_schema(INTEGER, "Pods that were taken."),
    gpus=NUMBER,
    takenBy=describe_schema(
        TEXT,
        "The project or workload that got their room; another project where you may not see it, "
        "empty where nobody got it.",
    ),
    nodes=array_schema(TEXT),
    podsBefore=INTEGER,
    podsAfter=describe_schema(INTEGER, "Pods that it went on with; 0 where it did not yet."),
    isOver=describe_schema(BOOLEAN, "Whether it is known how the workload went on."),
    resumedStep={"type": ["integer", "null"]},
    beganAnew=describe_schema(BOOLEAN, "Whether it found no checkpoint."),
    lostSteps={"type": ["integer", "null"]},
    lostSeconds={"type": ["number", "null"]},
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
    cause=describe_schema(_CAUSE, "What took pods from the workload; only events of that have it."),
)
WORKLOAD_DETAILS: Schema = {
    **WORKLOAD,
    "properties": {
        **WORKLOAD["properties"],
        "pendingSchedulingMessages": array_schema(
            object_schema(["userMessage"], nodePool=TEXT, reason=TEXT, userMessage=TEXT)
        ),
        "attempts": describe_schema(array_schema(_ATTEMPT), "The newest first."),
        "limits": array_schema(_LIMIT),
        "findings": OPEN_FINDINGS,
        "radar": RADAR,
        "excludedNodes": describe_schema(
            array_schema(TEXT), "Nodes that it does not use from its next run on."
        ),
        "podChanges": describe_schema(
            array_schema(EVENT),
            "The last changes of how many pods it has, the newest first: what was taken, lost or "
            "scaled.",
        ),
    },
}
_PREPARED: dict[str, Schema] = {
    "preparedUnits": INTEGER,
    "units": INTEGER,
    "percent": INTEGER,
    "secondsLeft": {"type": ["integer", "null"]},
}
_DATA_WORKER = object_schema(
    ["number", "pod", "status", "isReady"],
    number=INTEGER,
    pod=TEXT,
    status=TEXT,
    nodeName=TEXT,
    preparedUnits=INTEGER,
    units=INTEGER,
    unitsPerSecond=_MAYBE_NUMBER,
    isReady=BOOLEAN,
    error=describe_schema(TEXT, "What its loader raised."),
)
_RANK = object_schema(
    ["rank", "countedAt", "waitedSeconds", "computedSeconds", "spanSeconds"],
    rank=INTEGER,
    countedAt=MOMENT,
    waitedSeconds=describe_schema(NUMBER, "What it waited for data, of the last spanSeconds."),
    computedSeconds=NUMBER,
    spanSeconds=NUMBER,
    waitedShare=NUMBER,
    queueDepth=describe_schema(INTEGER, "Batches that were there and not taken yet."),
    elementsPerSecond=NUMBER,
    deliveredElements=INTEGER,
    epoch=INTEGER,
)
DATA_DELIVERY = object_schema(
    ["attempt", "workers", *_PREPARED, "message", "dataWorkers", "ranks", "rankCount"],
    **_PREPARED,
    attempt=INTEGER,
    workers=INTEGER,
    unitsPerSecond=_MAYBE_NUMBER,
    message=TEXT,
    hasStalled=describe_schema(BOOLEAN, "Whether nothing was prepared for 5 minutes."),
    endedEarly=describe_schema(BOOLEAN, "Whether the dataset had fewer units."),
    failure=TEXT,
    readyAt=MAYBE_MOMENT,
    resumedAt=MAYBE_MOMENT,
    dataWorkers=array_schema(_DATA_WORKER),
    ranks=array_schema(_RANK),
    rankCount=INTEGER,
    waitedShare=_MAYBE_NUMBER,
    elementsPerSecond=_MAYBE_NUMBER,
    countedAt=MAYBE_MOMENT,
    isRecent=BOOLEAN,
    waitingMessage=TEXT,
    suggestedWorkers=describe_schema(
        {"type": ["integer", "null"]}, "How many data workers would have covered the waiting."
    ),
)
RECORD = object_schema(
    ["meta", "spec"],
    meta=object_schema(creationTimestamp=MOMENT, type=enum_schema("Event", "PhaseUpdate")),
    spec=object_schema(
        event=EVENT,
        phaseUpdate=object_schema(phase=PHASE, phaseMessage=TEXT),
        scale=object_schema(podsBefore=INTEGER, podsAfter=INTEGER),
    ),
)

"""The schemas of workloads in the description of the API (OpenAPI)."""

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
from workloads.specs import (
    CleanPodPolicy,
    Framework,
    GitAccess,
    LauncherCreation,
    Preemptibility,
    Priority,
    PullPolicy,
    RestartPolicy,
    SeccompProfile,
    TolerationEffect,
    TolerationOperator,
)
from workloads.states import Status

PHASE = enum_schema(*Status)
MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
REFERENCE = object_schema(name=TEXT, key=TEXT)
PAIR = object_schema(["name"], name=TEXT, value=TEXT, exclude=BOOLEAN)
READ_ONLY = describe_schema(
    BOOLEAN, "The default differs: true for nfs and hostPath, false for pvc."
)
EXTENSION = "An extension of Muster"
RANK_0 = describe_schema(BOOLEAN, f"{EXTENSION}: the master (rank 0) may write, the others read.")

VARIABLE = object_schema(
    ["name"],
    name=TEXT,
    value=TEXT,
    secret=REFERENCE,
    configMap=REFERENCE,
    podFieldRef=object_schema(path=TEXT),
    description=describe_schema(TEXT, "Taken, and not kept."),
    exclude=BOOLEAN,
)
COMPUTE = object_schema(
    cpuCoreRequest=NUMBER,
    cpuCoreLimit=NUMBER,
    cpuMemoryRequest=TEXT,
    cpuMemoryLimit=TEXT,
    gpuDevicesRequest=INTEGER,
    gpuRequestType=enum_schema("portion", "memory"),
    gpuPortionRequest=describe_schema(NUMBER, "Of each device, above 0 and at most 1."),
    gpuPortionLimit=describe_schema(NUMBER, "Can only be the request."),
    gpuMemoryRequest=TEXT,
    gpuMemoryLimit=describe_schema(TEXT, "Can only be the request."),
    largeShmRequest=BOOLEAN,
    extendedResources=array_schema(object_schema(resource=TEXT, quantity=TEXT, exclude=BOOLEAN)),
)
CLAIM_INFO = object_schema(
    ["size"],
    size=TEXT,
    storageClass=describe_schema(TEXT, "The cluster's default where it is not given."),
    accessModes=describe_schema(
        object_schema(readWriteOnce=BOOLEAN, readOnlyMany=BOOLEAN, readWriteMany=BOOLEAN),
        "readWriteOnce where none is true.",
    ),
    volumeMode=enum_schema("Filesystem"),
)
STORAGE = object_schema(
    emptyDirVolume=array_schema(
        object_schema(
            name=TEXT,
            path=TEXT,
            medium=enum_schema("Memory"),
            sizeLimit=TEXT,
            readOnly=BOOLEAN,
            writableByRank0Only=RANK_0,
            exclude=BOOLEAN,
        )
    ),
    hostPath=array_schema(
        object_schema(
            name=TEXT,
            path=TEXT,
            mountPath=TEXT,
            readOnly=READ_ONLY,
            mountPropagation=enum_schema("None", "HostToContainer"),
            writableByRank0Only=RANK_0,
            exclude=BOOLEAN,
        )
    ),
    configMapVolume=array_schema(
        object_schema(
            name=TEXT,
            configMap=TEXT,
            mountPath=TEXT,
            subPath=TEXT,
            defaultMode=TEXT,
            exclude=BOOLEAN,
        )
    ),
    secretVolume=array_schema(
        object_schema(name=TEXT, secret=TEXT, mountPath=TEXT, defaultMode=TEXT, exclude=BOOLEAN)
    ),
    pvc=array_schema(
        object_schema(
            name=TEXT,
            claimName=describe_schema(
                TEXT, "Of a claim that exists; Muster names those that it makes."
            ),
            existingPvc=describe_schema(
                BOOLEAN,
                (
                    "False, and so is leaving it out: a claim is made as claimInfo says, and "
                    "goes with the workload."
                ),
            ),
            ephemeral=describe_schema(
                BOOLEAN,
                "Of a claim that is made: each pod has one of its own, which goes with the pod.",
            ),
            claimInfo=CLAIM_INFO,
            path=TEXT,
            readOnly=READ_ONLY,
            writableByRank0Only=RANK_0,
            exclude=BOOLEAN,
        )
    ),
    nfs=array_schema(
        object_schema(
            name=TEXT,
            server=TEXT,
            path=TEXT,
            mountPath=TEXT,
            readOnly=READ_ONLY,
            writableByRank0Only=RANK_0,
            exclude=BOOLEAN,
        )
    ),
    git=array_schema(
        object_schema(
            ["repository", "path"],
            name=TEXT,
            repository=describe_schema(TEXT, "Fetched before the containers start."),
            branch=TEXT,
            revision=describe_schema(TEXT, "A commit or tag; it goes before the branch."),
            path=TEXT,
            secretRef=describe_schema(
                object_schema(name=TEXT, authenticationMethod=enum_schema(*GitAccess)),
                (
                    "Of a private repository: the Secret has username and password, or "
                    "ssh-privatekey and known_hosts."
                ),
            ),
            readOnly=describe_schema(BOOLEAN, f"{EXTENSION}."),
            writableByRank0Only=RANK_0,
            exclude=BOOLEAN,
        )
    ),
    s3=array_schema(
        object_schema(
            ["bucket", "path"],
            name=TEXT,
            bucket=describe_schema(
                TEXT, "Downloaded before the containers start; nothing goes back."
            ),
            prefix=describe_schema(TEXT, f"{EXTENSION}: only what lies below it."),
            path=TEXT,
            url=describe_schema(TEXT, "Of the service; Amazon's where it is not given."),
            accessKeySecret=describe_schema(
                TEXT, "The Secret with AccessKeyId and SecretKey; a public bucket needs none."
            ),
            exclude=BOOLEAN,
        )
    ),
)
SECURITY = object_schema(
    uidGidSource=enum_schema("fromTheImage", "custom"),
    runAsUid=INTEGER,
    runAsGid=INTEGER,
    supplementalGroups=describe_schema(TEXT, "Numbers with commas between them."),
    runAsNonRoot=BOOLEAN,
    readOnlyRootFilesystem=BOOLEAN,
    allowPrivilegeEscalation=BOOLEAN,
    capabilities=array_schema(TEXT),
    hostIpc=BOOLEAN,
    hostNetwork=BOOLEAN,
    seccompProfileType=enum_schema(*SeccompProfile),
)
_POD_FIELDS: dict[str, Schema] = {
    "image": describe_schema(TEXT, "A leading slash is dropped when it is pulled."),
    "imagePullPolicy": enum_schema(*PullPolicy),
    "imagePullSecrets": array_schema(object_schema(name=TEXT, exclude=BOOLEAN)),
    "command": describe_schema(TEXT, "Split at spaces as a shell does."),
    "args": describe_schema(TEXT, "Split at spaces as a shell does."),
    "workingDir": TEXT,
    "environmentVariables": array_schema(VARIABLE),
    "annotations": array_schema(PAIR),
    "labels": array_schema(PAIR),
    "compute": COMPUTE,
    "storage": STORAGE,
    "nodeType": TEXT,
    "nodePools": describe_schema(
        array_schema(TEXT),
        "In the order in which they are tried. `default` alone asks for nothing: any node will do.",
    ),
    "podAffinity": describe_schema(
        object_schema(type=enum_schema("Required", "Preferred"), key=TEXT),
        "The pods together on nodes with the same value of the label `key`.",
    ),
    "tolerations": array_schema(
        object_schema(
            name=TEXT,
            operator=enum_schema(*TolerationOperator),
            key=TEXT,
            value=TEXT,
            effect=enum_schema(*TolerationEffect),
            seconds=INTEGER,
            exclude=BOOLEAN,
        )
    ),
    "security": SECURITY,
}
SPEC = object_schema(
    ["image"],
    **_POD_FIELDS,
    distributedFramework=describe_schema(enum_schema(*Framework), "Of distributed workloads."),
    numWorkers=describe_schema(INTEGER, "Of distributed workloads, beside the master."),
    minReplicas=describe_schema(INTEGER, "Of elastic PyTorch."),
    maxReplicas=describe_schema(INTEGER, "Of elastic PyTorch."),
    maxRestarts=describe_schema(
        INTEGER, f"{EXTENSION}, of elastic PyTorch: each pod that leaves or joins costs one."
    ),
    parameterServers=describe_schema(
        INTEGER, f"{EXTENSION}, of TensorFlow: pods as the workers are, without GPUs."
    ),
    slotsPerWorker=describe_schema(INTEGER, "Of MPI: processes a worker takes."),
    sshAuthMountPath=describe_schema(TEXT, "Of MPI: where root's keys are in the image."),
    mpiLauncherCreationPolicy=describe_schema(
        enum_schema(*LauncherCreation), "Of MPI: when the launcher is made."
    ),
    completions=describe_schema(INTEGER, "Of standard workloads: how many runs."),
    parallelism=describe_schema(INTEGER, "Of standard workloads: how many runs at once."),
    backoffLimit=INTEGER,
    restartPolicy=describe_schema(
        enum_schema(*RestartPolicy),
        "ExitCode is an extension of Muster: codes from 128 are tried again, others are final.",
    ),
    cleanPodPolicy=enum_schema(*CleanPodPolicy),
    terminationGracePeriodSeconds=INTEGER,
    autoDeletionTimeAfterCompletionSeconds=INTEGER,
    priorityClass=enum_schema(*Priority),
    preemptibility=enum_schema(*Preemptibility),
)
MASTER: dict[str, Schema] = {
    "masterSpecSameAsWorker": describe_schema(
        BOOLEAN,
        (
            "True, and so is leaving out masterSpec: the master, chief or launcher is as the "
            "workers are."
        ),
    ),
    "masterSpec": describe_schema(
        object_schema(["image"], **_POD_FIELDS),
        "The master, where it differs. It stands for itself: nothing of spec is taken over.",
    ),
    "noMaster": describe_schema(
        BOOLEAN,
        (
            f"{EXTENSION}: workers only. JAX has no master, with or without it; XGBoost and MPI "
            "always have one."
        ),
    ),
}
SUBMISSION = object_schema(
    ["name", "projectId", "clusterId", "spec"],
    name=TEXT,
    useGivenNameAsPrefix=describe_schema(BOOLEAN, "The name gets a random end."),
    projectId=TEXT,
    clusterId=ID,
    templateId=describe_schema(
        ID, "A template: spec is merged over its values, and may not change what it locks."
    ),
    spec=SPEC,
    **MASTER,
)
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
        gpu=object_schema(request=NUMBER),
        cpu=object_schema(request=NUMBER),
        cpuMemory=object_schema(request=TEXT),
    ),
    "What is asked for.",
)
WORKLOAD = object_schema(
    ["id", "name", "type", "phase", "projectId", "clusterId", "createdAt"],
    id=ID,
    name=TEXT,
    type=enum_schema("Distributed", "Training"),
    distributedFramework=TEXT,
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

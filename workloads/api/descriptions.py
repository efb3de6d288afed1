"""The shapes of workloads in the description of the API (OpenAPI)."""

from projects.api.schemas import (
    FLAG,
    ID,
    MOMENT,
    NUMBER,
    TEXT,
    WHOLE,
    Schema,
    array,
    obj,
    said,
    words,
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
    Seccomp,
    TolerationEffect,
    TolerationOperator,
)
from workloads.states import Status

PHASE = words(*Status)
MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
REFERENCE = obj(name=TEXT, key=TEXT)
PAIR = obj(["name"], name=TEXT, value=TEXT, exclude=FLAG)
READ_ONLY = said(FLAG, "The default differs: true for nfs and hostPath, false for pvc.")
EXTENSION = "An extension of Muster"
RANK_0 = said(FLAG, f"{EXTENSION}: the master (rank 0) may write, the others read.")

VARIABLE = obj(
    ["name"],
    name=TEXT,
    value=TEXT,
    secret=REFERENCE,
    configMap=REFERENCE,
    podFieldRef=obj(path=TEXT),
    description=said(TEXT, "Taken, and not kept."),
    exclude=FLAG,
)
COMPUTE = obj(
    cpuCoreRequest=NUMBER,
    cpuCoreLimit=NUMBER,
    cpuMemoryRequest=TEXT,
    cpuMemoryLimit=TEXT,
    gpuDevicesRequest=WHOLE,
    gpuRequestType=words("portion", "memory"),
    gpuPortionRequest=said(NUMBER, "Of each device, above 0 and at most 1."),
    gpuPortionLimit=said(NUMBER, "Can only be the request."),
    gpuMemoryRequest=TEXT,
    gpuMemoryLimit=said(TEXT, "Can only be the request."),
    largeShmRequest=FLAG,
    extendedResources=array(obj(resource=TEXT, quantity=TEXT, exclude=FLAG)),
)
CLAIM_INFO = obj(
    ["size"],
    size=TEXT,
    storageClass=said(TEXT, "The cluster's default where it is not given."),
    accessModes=said(
        obj(readWriteOnce=FLAG, readOnlyMany=FLAG, readWriteMany=FLAG),
        "readWriteOnce where none is true.",
    ),
    volumeMode=words("Filesystem"),
)
STORAGE = obj(
    emptyDirVolume=array(
        obj(
            name=TEXT,
            path=TEXT,
            medium=words("Memory"),
            sizeLimit=TEXT,
            readOnly=FLAG,
            writableByRank0Only=RANK_0,
            exclude=FLAG,
        )
    ),
    hostPath=array(
        obj(
            name=TEXT,
            path=TEXT,
            mountPath=TEXT,
            readOnly=READ_ONLY,
            mountPropagation=words("None", "HostToContainer"),
            writableByRank0Only=RANK_0,
            exclude=FLAG,
        )
    ),
    configMapVolume=array(
        obj(name=TEXT, configMap=TEXT, mountPath=TEXT, subPath=TEXT, defaultMode=TEXT, exclude=FLAG)
    ),
    secretVolume=array(obj(name=TEXT, secret=TEXT, mountPath=TEXT, defaultMode=TEXT, exclude=FLAG)),
    pvc=array(
        obj(
            name=TEXT,
            claimName=said(TEXT, "Of a claim that exists; Muster names those that it makes."),
            existingPvc=said(
                FLAG,
                (
                    "False, and so is leaving it out: a claim is made as claimInfo says, and "
                    "goes with the workload."
                ),
            ),
            ephemeral=said(
                FLAG,
                "Of a claim that is made: each pod has one of its own, which goes with the pod.",
            ),
            claimInfo=CLAIM_INFO,
            path=TEXT,
            readOnly=READ_ONLY,
            writableByRank0Only=RANK_0,
            exclude=FLAG,
        )
    ),
    nfs=array(
        obj(
            name=TEXT,
            server=TEXT,
            path=TEXT,
            mountPath=TEXT,
            readOnly=READ_ONLY,
            writableByRank0Only=RANK_0,
            exclude=FLAG,
        )
    ),
    git=array(
        obj(
            ["repository", "path"],
            name=TEXT,
            repository=said(TEXT, "Fetched before the containers start."),
            branch=TEXT,
            revision=said(TEXT, "A commit or tag; it goes before the branch."),
            path=TEXT,
            secretRef=said(
                obj(name=TEXT, authenticationMethod=words(*GitAccess)),
                (
                    "Of a private repository: the Secret has username and password, or "
                    "ssh-privatekey and known_hosts."
                ),
            ),
            readOnly=said(FLAG, f"{EXTENSION}."),
            writableByRank0Only=RANK_0,
            exclude=FLAG,
        )
    ),
    s3=array(
        obj(
            ["bucket", "path"],
            name=TEXT,
            bucket=said(TEXT, "Downloaded before the containers start; nothing goes back."),
            prefix=said(TEXT, f"{EXTENSION}: only what lies below it."),
            path=TEXT,
            url=said(TEXT, "Of the service; Amazon's where it is not given."),
            accessKeySecret=said(
                TEXT, "The Secret with AccessKeyId and SecretKey; a public bucket needs none."
            ),
            exclude=FLAG,
        )
    ),
)
SECURITY = obj(
    uidGidSource=words("fromTheImage", "custom"),
    runAsUid=WHOLE,
    runAsGid=WHOLE,
    supplementalGroups=said(TEXT, "Numbers with commas between them."),
    runAsNonRoot=FLAG,
    readOnlyRootFilesystem=FLAG,
    allowPrivilegeEscalation=FLAG,
    capabilities=array(TEXT),
    hostIpc=FLAG,
    hostNetwork=FLAG,
    seccompProfileType=words(*Seccomp),
)
_OF_PODS: dict[str, Schema] = {
    "image": said(TEXT, "A leading slash is dropped when it is pulled."),
    "imagePullPolicy": words(*PullPolicy),
    "imagePullSecrets": array(obj(name=TEXT, exclude=FLAG)),
    "command": said(TEXT, "Split at spaces as a shell does."),
    "args": said(TEXT, "Split at spaces as a shell does."),
    "workingDir": TEXT,
    "environmentVariables": array(VARIABLE),
    "annotations": array(PAIR),
    "labels": array(PAIR),
    "compute": COMPUTE,
    "storage": STORAGE,
    "nodeType": TEXT,
    "nodePools": said(
        array(TEXT),
        "In the order in which they are tried. `default` alone asks for nothing: any node will do.",
    ),
    "podAffinity": said(
        obj(type=words("Required", "Preferred"), key=TEXT),
        "The pods together on nodes with the same value of the label `key`.",
    ),
    "tolerations": array(
        obj(
            name=TEXT,
            operator=words(*TolerationOperator),
            key=TEXT,
            value=TEXT,
            effect=words(*TolerationEffect),
            seconds=WHOLE,
            exclude=FLAG,
        )
    ),
    "security": SECURITY,
}
SPEC = obj(
    ["image"],
    **_OF_PODS,
    distributedFramework=said(words(*Framework), "Of distributed workloads."),
    numWorkers=said(WHOLE, "Of distributed workloads, beside the master."),
    minReplicas=said(WHOLE, "Of elastic PyTorch."),
    maxReplicas=said(WHOLE, "Of elastic PyTorch."),
    maxRestarts=said(
        WHOLE, f"{EXTENSION}, of elastic PyTorch: each pod that leaves or joins costs one."
    ),
    parameterServers=said(
        WHOLE, f"{EXTENSION}, of TensorFlow: pods as the workers are, without GPUs."
    ),
    slotsPerWorker=said(WHOLE, "Of MPI: processes a worker takes."),
    sshAuthMountPath=said(TEXT, "Of MPI: where root's keys are in the image."),
    mpiLauncherCreationPolicy=said(words(*LauncherCreation), "Of MPI: when the launcher is made."),
    completions=said(WHOLE, "Of standard workloads: how many runs."),
    parallelism=said(WHOLE, "Of standard workloads: how many runs at once."),
    backoffLimit=WHOLE,
    restartPolicy=said(
        words(*RestartPolicy),
        "ExitCode is an extension of Muster: codes from 128 are tried again, others are final.",
    ),
    cleanPodPolicy=words(*CleanPodPolicy),
    terminationGracePeriodSeconds=WHOLE,
    autoDeletionTimeAfterCompletionSeconds=WHOLE,
    priorityClass=words(*Priority),
    preemptibility=words(*Preemptibility),
)
MASTER: dict[str, Schema] = {
    "masterSpecSameAsWorker": said(
        FLAG,
        (
            "True, and so is leaving out masterSpec: the master, chief or launcher is as the "
            "workers are."
        ),
    ),
    "masterSpec": said(
        obj(["image"], **_OF_PODS),
        "The master, where it differs. It stands for itself: nothing of spec is taken over.",
    ),
    "noMaster": said(
        FLAG,
        (
            f"{EXTENSION}: workers only. JAX has no master, with or without it; XGBoost and MPI "
            "always have one."
        ),
    ),
}
SUBMISSION = obj(
    ["name", "projectId", "clusterId", "spec"],
    name=TEXT,
    useGivenNameAsPrefix=said(FLAG, "The name gets a random end."),
    projectId=TEXT,
    clusterId=ID,
    templateId=said(
        ID, "A template: spec is merged over its values, and may not change what it locks."
    ),
    spec=SPEC,
    **MASTER,
)
SUBMITTED = obj(
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
    desiredPhase=words("Running", "Stopped", "Deleted"),
    actualPhase=PHASE,
    spec=SPEC,
    **MASTER,
)
_RESOURCES = said(
    obj(gpu=obj(request=NUMBER), cpu=obj(request=NUMBER), cpuMemory=obj(request=TEXT)),
    "What is asked for.",
)
WORKLOAD = obj(
    ["id", "name", "type", "phase", "projectId", "clusterId", "createdAt"],
    id=ID,
    name=TEXT,
    type=words("Distributed", "Training"),
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
    runningPods=WHOLE,
    requestedPods=obj(number=WHOLE, min=WHOLE, max=WHOLE, parallelism=WHOLE, completions=WHOLE),
    workloadRequestedResources=_RESOURCES,
    podsRequestedResources=_RESOURCES,
    allocatedResources=obj(gpu=NUMBER),
    actionsSupport=obj(delete=FLAG, suspend=FLAG),
    conditions=array(obj(["type", "status"], type=TEXT, status=TEXT, reason=TEXT, message=TEXT)),
    totalRunningTimeSeconds=WHOLE,
)
POD = obj(
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
    containers=array(obj(name=TEXT, image=TEXT, startedAt=MAYBE_MOMENT)),
)
EVENT = obj(
    ["createdAt", "type", "clusterId", "message"],
    id=TEXT,
    createdAt=MOMENT,
    type=words("Normal", "Warning"),
    clusterId=ID,
    message=TEXT,
    reason=TEXT,
    source=TEXT,
    involvedObject=obj(uid=TEXT, kind=TEXT, name=TEXT, namespace=TEXT),
)
RECORD = obj(
    ["meta", "spec"],
    meta=obj(creationTimestamp=MOMENT, type=words("Event", "PhaseUpdate")),
    spec=obj(event=EVENT, phaseUpdate=obj(phase=PHASE, phaseMessage=TEXT)),
)

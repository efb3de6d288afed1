"""How the API describes what it takes and tells about clusters and nodes."""

from projects.api.schemas import FLAG, ID, MOMENT, NUMBER, TEXT, WHOLE, array, obj, said, words

ONE_WAY = "Give one way to reach it: kubeconfig, server and token (and ca), or inCluster: true."
NOT_INSIDE = (
    "Muster does not run in a cluster, or without a service account. Give a kubeconfig, or server "
    "and token."
)

_WAYS = {
    "kubeconfig": said(TEXT, "The text of a kubeconfig with its data inline."),
    "server": said(TEXT, "The address of the API server, with a token."),
    "token": said(TEXT, "Of a service account; stored encrypted, shown nowhere."),
    "ca": said(TEXT, "The PEM text of the authority that signed the server's certificate."),
    "inCluster": said(FLAG, "The cluster that Muster itself runs in."),
}
CONNECTION = obj(["name"], name=TEXT, **_WAYS)
CHANGE = obj(
    name=TEXT,
    enabled=FLAG,
    prometheusUrl=said(
        TEXT, "The Prometheus that has the figures of DCGM's exporter; empty asks none."
    ),
    **_WAYS,
)
PREREQUISITE = obj(
    ["title", "state"],
    title=TEXT,
    state=words("here", "missing", "unneeded", "unknown"),
    message=TEXT,
    install=said(TEXT, "The command that brings it."),
    isRequired=FLAG,
)
RIGHT = obj(
    ["verb", "resource"], verb=TEXT, resource=said(TEXT, "As RBAC spells it: pods/log, jobs.batch.")
)
TRIAL = obj(
    ["connected"],
    connected=FLAG,
    message=said(TEXT, "Why there is no connection."),
    version=TEXT,
    platform=TEXT,
    nodes={"type": ["integer", "null"]},
    prerequisites=array(PREREQUISITE),
    missingPermissions=array(RIGHT),
    permissionsSkipped=said(TEXT, "Why rights were not checked, where they were not."),
)
DETAILS = obj(
    ["uuid", "name", "status"],
    uuid=ID,
    name=TEXT,
    version=TEXT,
    platform=TEXT,
    enabled=FLAG,
    status=obj(["state"], state=TEXT, message=TEXT),
    prerequisites=array(PREREQUISITE),
    missingPermissions=array(RIGHT),
    probedAt={"type": ["string", "null"], "format": "date-time"},
    permissionsCheckedAt={"type": ["string", "null"], "format": "date-time"},
)
NODE = obj(
    ["name", "clusterUuid", "status"],
    name=TEXT,
    clusterUuid=ID,
    clusterName=TEXT,
    status=words("Ready", "NotReady", "SchedulingDisabled"),
    statusReason=TEXT,
    roles=array(TEXT),
    nodePool=TEXT,
    gpuInfo=obj(
        gpuType=TEXT,
        gpuCount=said(NUMBER, "Devices that it offers."),
        gpuMemoryMib=WHOLE,
        allocated=NUMBER,
        free=NUMBER,
        unhealthy=NUMBER,
    ),
    cpu=obj(total=NUMBER, allocated=NUMBER),
    memoryBytes=obj(total=WHOLE, allocated=WHOLE),
    pods=said(WHOLE, "All of them, whoever made them."),
    taints=array(obj(key=TEXT, value=TEXT, effect=TEXT)),
    updatedAt=MOMENT,
)

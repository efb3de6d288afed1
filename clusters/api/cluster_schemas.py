"""The OpenAPI schemas of what the API takes and returns about clusters and nodes."""

from projects.api.schemas import (
    BOOLEAN,
    ID,
    INTEGER,
    MOMENT,
    NUMBER,
    TEXT,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)

ONE_WAY = "Give one way to reach it: kubeconfig, server and token (and ca), or inCluster: true."
NOT_INSIDE = (
    "Muster does not run in a cluster, or without a service account. Give a kubeconfig, or server "
    "and token."
)

_WAYS = {
    "kubeconfig": describe_schema(TEXT, "The text of a kubeconfig with its data inline."),
    "server": describe_schema(TEXT, "The address of the API server, with a token."),
    "token": describe_schema(TEXT, "Of a service account; stored encrypted, shown nowhere."),
    "ca": describe_schema(
        TEXT, "The PEM text of the authority that signed the server's certificate."
    ),
    "inCluster": describe_schema(BOOLEAN, "The cluster that Muster itself runs in."),
}
CONNECTION = object_schema(["name"], name=TEXT, **_WAYS)
CHANGE = object_schema(
    name=TEXT,
    enabled=BOOLEAN,
    prometheusUrl=describe_schema(
        TEXT, "The Prometheus that has the figures of DCGM's exporter; empty asks none."
    ),
    **_WAYS,
)
PREREQUISITE = object_schema(
    ["title", "state"],
    title=TEXT,
    state=enum_schema("here", "missing", "unneeded", "unknown"),
    message=TEXT,
    install=describe_schema(TEXT, "The command that brings it."),
    isRequired=BOOLEAN,
)
RIGHT = object_schema(
    ["verb", "resource"],
    verb=TEXT,
    resource=describe_schema(TEXT, "As RBAC spells it: pods/log, jobs.batch."),
)
TRIAL = object_schema(
    ["connected"],
    connected=BOOLEAN,
    message=describe_schema(TEXT, "Why there is no connection."),
    version=TEXT,
    platform=TEXT,
    nodes={"type": ["integer", "null"]},
    prerequisites=array_schema(PREREQUISITE),
    missingPermissions=array_schema(RIGHT),
    permissionsSkipped=describe_schema(TEXT, "Why rights were not checked, where they were not."),
)
DETAILS = object_schema(
    ["uuid", "name", "status"],
    uuid=ID,
    name=TEXT,
    version=TEXT,
    platform=TEXT,
    enabled=BOOLEAN,
    status=object_schema(["state"], state=TEXT, message=TEXT),
    prerequisites=array_schema(PREREQUISITE),
    missingPermissions=array_schema(RIGHT),
    probedAt={"type": ["string", "null"], "format": "date-time"},
    permissionsCheckedAt={"type": ["string", "null"], "format": "date-time"},
)
NODE = object_schema(
    ["name", "clusterUuid", "status"],
    name=TEXT,
    clusterUuid=ID,
    clusterName=TEXT,
    status=enum_schema("Ready", "NotReady", "SchedulingDisabled"),
    statusReason=TEXT,
    roles=array_schema(TEXT),
    nodePool=TEXT,
    gpuInfo=object_schema(
        gpuType=TEXT,
        gpuCount=describe_schema(NUMBER, "Devices that it offers."),
        gpuMemoryMib=INTEGER,
        allocated=NUMBER,
        free=NUMBER,
        unhealthy=NUMBER,
    ),
    cpu=object_schema(total=NUMBER, allocated=NUMBER),
    memoryBytes=object_schema(total=INTEGER, allocated=INTEGER),
    pods=describe_schema(INTEGER, "All of them, whoever made them."),
    taints=array_schema(object_schema(key=TEXT, value=TEXT, effect=TEXT)),
    updatedAt=MOMENT,
)

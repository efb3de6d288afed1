"""Bodies of requests about clusters, and the OpenAPI schemas of answers about them and nodes."""

from typing import Annotated

from msgspec import structs

from clusters.models import ConnectionWay
from console.rest_bodies import RestBody, describe_field
from projects.api.schemas import (
    BOOLEAN,
    CLUSTER,
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


class ConnectionBody(RestBody):
    """A cluster and the way to reach it."""

    name: str | None = None
    kubeconfig: Annotated[
        str | None, describe_field("The text of a kubeconfig with its data inline.")
    ] = None
    server: Annotated[
        str | None, describe_field("The address of the API server, with a token.")
    ] = None
    token: Annotated[
        str | None, describe_field("Of a service account; stored encrypted, shown nowhere.")
    ] = None
    ca: Annotated[
        str | None,
        describe_field("The PEM text of the authority that signed the server's certificate."),
    ] = None
    in_cluster: Annotated[
        bool | None, describe_field("The cluster that Muster itself runs in.")
    ] = None

    def build_form_data(self) -> dict[str, str]:
        """Return what the body gives as the form's data, with the way that it means."""
        values = structs.asdict(self).items()
        form_data = {name: value for name, value in values if isinstance(value, str)}
        if self.in_cluster:
            form_data["way"] = ConnectionWay.INSIDE.value
        elif "kubeconfig" in form_data:
            form_data["way"] = ConnectionWay.KUBECONFIG.value
        elif form_data.keys() & {"server", "token", "ca"}:
            form_data["way"] = ConnectionWay.TOKEN.value
        return form_data


class ClusterChange(ConnectionBody):
    """What is changed of a cluster."""

    enabled: bool | None = None
    prometheus_url: Annotated[
        str | None,
        describe_field("The Prometheus that has the figures of DCGM's exporter; empty asks none."),
    ] = None
    prometheus_matcher: Annotated[
        str | None,
        describe_field(
            'The label matchers of this cluster\'s series, where it has several: cluster="prod-1".'
        ),
    ] = None
    prometheus_way: Annotated[
        str | None,
        describe_field(
            "How Muster signs in to it: none, basic, bearer or certificate; stored, which is so "
            "where it is left out, keeps what there is."
        ),
    ] = None
    prometheus_user: str | None = None
    prometheus_password: Annotated[
        str | None, describe_field("Stored encrypted, as all that signs in; shown nowhere.")
    ] = None
    prometheus_token: str | None = None
    prometheus_certificate: Annotated[
        str | None, describe_field("The client's certificate as PEM text, with its key.")
    ] = None
    prometheus_key: str | None = None
    prometheus_ca: Annotated[
        str | None, describe_field("The PEM text of who signed its certificate.")
    ] = None
    prometheus_headers: Annotated[
        str | None, describe_field("Sent with every request, one a line, as Name: value.")
    ] = None


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
SAME_AS = describe_schema(
    array_schema(TEXT),
    "Names of clusters that lead to the same API server, as the uid of its namespace kube-system "
    "says; while that is not known, of those with the same address. Use one of them.",
)
CREATED = object_schema(CLUSTER["required"], **CLUSTER["properties"], sameAs=SAME_AS)
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
    sameAs=SAME_AS,
)
DETAILS = object_schema(
    ["uuid", "name", "status"],
    **CLUSTER["properties"],
    prerequisites=array_schema(PREREQUISITE),
    missingPermissions=array_schema(RIGHT),
    sameAs=SAME_AS,
    probedAt={"type": ["string", "null"], "format": "date-time"},
    permissionsCheckedAt={"type": ["string", "null"], "format": "date-time"},
)
NODE = object_schema(
    ["id", "name", "clusterUuid", "status"],
    id=TEXT,
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

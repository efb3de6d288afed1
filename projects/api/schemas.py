"""The words in which the API is described (OpenAPI): small builders, and the shapes that several
rooms use.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from projects.api.base import FURTHEST, MOST

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
ID: Schema = {"type": "string", "format": "uuid"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}

_MEANINGS = {
    400: (
        "Something of the request cannot be understood or is not valid; `details` names the fields."
    ),
    401: "No access token, or one that is not good any more.",
    403: "Seen, but not yours to change; the message says who can.",
    404: "There is no such thing among those that you may see.",
    409: (
        "It conflicts with what is there now: a name that is taken, or a state that does not allow "
        "it."
    ),
    413: "The body is too large.",
    429: "Too many failed attempts; the header Retry-After says how long to wait.",
}


def obj(required: Iterable[str] = (), **properties: Schema) -> Schema:
    """An object with these properties."""
    named = sorted(required)
    return {"type": "object", "properties": properties} | ({"required": named} if named else {})


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def said(schema: Schema, description: str) -> Schema:
    """The schema with a description."""
    return schema | {"description": description}


def words(*values: str) -> Schema:
    """A text out of a few."""
    return {"type": "string", "enum": list(values)}


def content(schema: Schema) -> Any:
    """A JSON body."""
    return {"application/json": schema}


def answer(schema: Schema, description: str = "") -> OpenApiResponse:
    return OpenApiResponse(response=schema, description=description)


def errors(*codes: int) -> dict[int, OpenApiResponse]:
    """The refusals of an operation, all in one shape."""
    return {code: answer(ERROR, _MEANINGS[code]) for code in codes}


def items(name: str, schema: Schema) -> Schema:
    """A list's body."""
    return obj(
        [name],
        next=said(WHOLE, "The offset of the items after these; missing at the end."),
        **{name: array(schema)},
    )


def parameter(name: str, schema: Schema, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, schema, description=description)


def paging() -> list[OpenApiParameter]:
    return [
        parameter(
            "offset", WHOLE | {"minimum": 0, "maximum": FURTHEST}, "How many items to pass over."
        ),
        parameter(
            "limit",
            WHOLE | {"minimum": 1, "maximum": MOST, "default": 50},
            "How many items to answer with at most.",
        ),
    ]


def filters(fields: Mapping[str, Any]) -> list[OpenApiParameter]:
    """The parameters of a count, and of a list, with these fields to filter by."""
    conditions = "; ".join(
        f"{name} ({' '.join(field.operators)})" for name, field in fields.items()
    )
    return [
        parameter(
            "filterBy",
            TEXT,
            (
                "Comma-joined conditions, all of which hold: a field, an operator, a value. "
                f"Fields: {conditions}."
            ),
        ),
        parameter("search", TEXT, "Text that a name contains."),
    ]


def list_parameters(fields: Mapping[str, Any]) -> list[OpenApiParameter]:
    """The parameters of a list with these fields to filter and sort by."""
    return [
        *paging(),
        parameter("sortBy", words(*fields), "The field to sort by."),
        parameter("sortOrder", words("asc", "desc"), "asc where it is not given."),
        *filters(fields),
    ]


ERROR = obj(
    ["code", "message"],
    code=said(WHOLE, "The HTTP status."),
    message=said(TEXT, "What happened and what to do, for a person."),
    details=said(
        array(obj(["field", "message"], field=TEXT, message=TEXT)),
        "What is wrong with which field, where that is known.",
    ),
)
COUNT = obj(["count"], count=WHOLE)
DONE = obj(["code", "message"], code=WHOLE, message=TEXT)
TOKEN_REQUEST = obj(
    ["grantType"],
    grantType=words("app_token", "client_credentials", "password"),
    clientID=said(TEXT, "Of a service account; app_token also calls it AppId."),
    clientSecret=said(TEXT, "Its secret; app_token also calls it AppSecret."),
    username=TEXT,
    password=TEXT,
)
TOKEN = obj(
    ["accessToken", "expiresIn"],
    accessToken=said(TEXT, "A JWT for the header Authorization: Bearer."),
    tokenType=words("Bearer"),
    expiresIn=said(WHOLE, "Seconds."),
)
_SHARE = obj(
    deserved=said(
        {"type": ["number", "null"]}, "What is the project's own; null is without limit."
    ),
    limit=said(NUMBER, "What it may hold at most; -1 is without limit."),
    overQuotaWeight=said(NUMBER, "Its part of what is idle, against other projects."),
)
PROJECT = obj(
    ["id", "name", "clusterId"],
    id=said(TEXT, "What projectId is elsewhere."),
    name=TEXT,
    clusterId=ID,
    departmentId=TEXT,
    departmentName=TEXT,
    parentId=TEXT,
    namespace=TEXT,
    requestedNamespace=TEXT,
    createdAt=MOMENT,
    status=obj(
        phase=words("Ready", "NotReady"),
        message=TEXT,
        quotaStatus=said(
            obj(allocated=obj(gpu=NUMBER, cpu=NUMBER, memory=NUMBER)),
            "What its workloads hold, as the cluster tells it.",
        ),
    ),
    description=TEXT,
    nodePools=said(array(TEXT), "Those that its workloads may use; none is all of its cluster's."),
    defaultNodePools=said(array(TEXT), "The same."),
    defaultPreemptibility=words("preemptible", "non-preemptible"),
    schedulingRules=said({"type": "object"}, "Its own limits, in seconds; null is without."),
    effective=said(
        obj(schedulingRules={"type": "object"}),
        "The limits that hold: the stricter of its own and its department's.",
    ),
    totalResources=obj(
        gpuQuota={"type": ["number", "null"]},
        cpuQuota={"type": ["number", "null"]},
        memoryQuota={"type": ["number", "null"]},
    ),
    version=said(WHOLE, "Goes up with every change."),
    resources=array(
        obj(
            nodePool=obj(id=TEXT, name=TEXT),
            gpu=said(_SHARE, "In devices."),
            cpu=said(_SHARE, "In millicores."),
            memory=said(
                obj(**_SHARE["properties"], units=words("MB")), "In units of 1,000,000 bytes."
            ),
        )
    ),
)
CLUSTER = obj(
    ["uuid", "name", "status"],
    uuid=ID,
    tenantId=WHOLE,
    name=TEXT,
    createdAt=MOMENT,
    domain=said(TEXT, "The address of its API server."),
    version=TEXT,
    platform=TEXT,
    enabled=said(FLAG, "Whether anything is launched there; one that is not is Disconnected."),
    status=obj(
        ["state"],
        state=words("WaitingToConnect", "Connected", "Disconnected", "MissingPrerequisites"),
        message=TEXT,
    ),
    lastLiveness={"type": ["string", "null"], "format": "date-time"},
)

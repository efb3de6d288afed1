"""Builders of the OpenAPI description, and schemas that several apps use."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from console.rest_schemas import accept_nulls, describe_body
from projects.api.base import MAX_ITEMS, MAX_OFFSET

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
ID: Schema = {"type": "string", "format": "uuid"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}

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
    412: "What If-Match names has been changed since; get it again, and repeat the change.",
    413: "The body is too large.",
    429: "Too many requests, or failed attempts; the header Retry-After says how long to wait.",
    503: "Something that is needed for the answer does not work; the message says what to do.",
}


def object_schema(required: Iterable[str] = (), **properties: Schema) -> Schema:
    """Return the schema of an object with these properties."""
    named = sorted(required)
    return {"type": "object", "properties": properties} | ({"required": named} if named else {})


def array_schema(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def describe_schema(schema: Schema, description: str) -> Schema:
    """Return the schema with a description."""
    return schema | {"description": description}


def enum_schema(*values: str) -> Schema:
    """Return the schema of a text out of these values."""
    return {"type": "string", "enum": list(values)}


def json_content(schema: Schema) -> Any:
    """Return the description of a JSON body that a request has."""
    return {"application/json": accept_nulls(schema)}


def body_content(body_type: type[msgspec.Struct], *required: str) -> Any:
    """Return the description of a JSON body that is read as a struct.

    `required` are fields that are missed later, where the struct leaves them out.
    """
    schema = describe_body(body_type)
    names = sorted({*schema.get("required", ()), *required})
    return json_content(schema | ({"required": names} if names else {}))


def json_response(schema: Schema, description: str = "") -> OpenApiResponse:
    return OpenApiResponse(response=schema, description=description)


def error_responses(*codes: int) -> dict[int, OpenApiResponse]:
    """Return the error responses of an operation, all of one shape.

    Whoever has to sign in may ask too often.
    """
    codes = (*codes, 429) if 401 in codes and 429 not in codes else codes
    return {code: json_response(ERROR, _MEANINGS[code]) for code in codes}


def list_schema(name: str, schema: Schema) -> Schema:
    """Return the schema of a list's body."""
    return object_schema(
        [name],
        next=describe_schema(INTEGER, "The offset of the items after these; missing at the end."),
        **{name: array_schema(schema)},
    )


def query_parameter(
    name: str, schema: Schema, description: str, *, is_required: bool = False
) -> OpenApiParameter:
    return OpenApiParameter(name, schema, required=is_required, description=description)


def paging_parameters() -> list[OpenApiParameter]:
    return [
        query_parameter(
            "offset",
            INTEGER | {"minimum": 0, "maximum": MAX_OFFSET},
            "How many items to pass over.",
        ),
        query_parameter(
            "limit",
            INTEGER | {"minimum": 1, "maximum": MAX_ITEMS, "default": 50},
            "How many items to answer with at most.",
        ),
    ]


def filter_parameters(fields: Mapping[str, Any]) -> list[OpenApiParameter]:
    """Return the parameters that filter a count or a list by these fields."""
    conditions = "; ".join(
        f"{name} ({' '.join(field.operators)})" for name, field in fields.items()
    )
    return [
        query_parameter(
            "filterBy",
            TEXT,
            (
                "Comma-joined conditions, all of which hold: a field, an operator, a value. "
                f"Fields: {conditions}."
            ),
        ),
        query_parameter("search", TEXT, "Text that a name contains."),
    ]


def list_parameters(fields: Mapping[str, Any]) -> list[OpenApiParameter]:
    """Return the parameters of a list that is filtered and sorted by these fields."""
    return [
        *paging_parameters(),
        query_parameter("sortBy", enum_schema(*fields), "The field to sort by."),
        query_parameter("sortOrder", enum_schema("asc", "desc"), "asc where it is not given."),
        *filter_parameters(fields),
    ]


ERROR = object_schema(
    ["code", "message"],
    code=describe_schema(INTEGER, "The HTTP status."),
    message=describe_schema(TEXT, "What happened and what to do, for a person."),
    details=describe_schema(
        array_schema(object_schema(["field", "message"], field=TEXT, message=TEXT)),
        "What is wrong with which field, where that is known.",
    ),
    complianceIssues=describe_schema(
        array_schema(
            object_schema(["field", "details", "rule"], field=TEXT, details=TEXT, rule=TEXT)
        ),
        "What policies forbid.",
    ),
)
COUNT = object_schema(["count"], count=INTEGER)
DONE = object_schema(["code", "message"], code=INTEGER, message=TEXT)
TOKEN = object_schema(
    ["accessToken", "expiresIn"],
    accessToken=describe_schema(TEXT, "A JWT for the header Authorization: Bearer."),
    tokenType=enum_schema("Bearer"),
    expiresIn=describe_schema(INTEGER, "Seconds."),
    refreshToken=describe_schema(TEXT, "Of the grants password and refresh_token."),
)
_SHARE = object_schema(
    deserved=describe_schema(
        {"type": ["number", "null"]}, "What is the project's own; null is without limit."
    ),
    limit=describe_schema(NUMBER, "What it may hold at most; -1 is without limit."),
    overQuotaWeight=describe_schema(NUMBER, "Its part of what is idle, against other projects."),
)
PROJECT = object_schema(
    ["id", "name", "clusterId"],
    id=describe_schema(TEXT, "What projectId is elsewhere."),
    name=TEXT,
    clusterId=ID,
    departmentId=TEXT,
    departmentName=TEXT,
    parentId=TEXT,
    namespace=TEXT,
    requestedNamespace=TEXT,
    createdAt=MOMENT,
    status=object_schema(
        phase=enum_schema("Ready", "NotReady"),
        message=TEXT,
        quotaStatus=describe_schema(
            object_schema(allocated=object_schema(gpu=NUMBER, cpu=NUMBER, memory=NUMBER)),
            "What its workloads hold, as the cluster tells it.",
        ),
    ),
    description=TEXT,
    nodePools=describe_schema(
        array_schema(TEXT), "Those that its workloads may use; none is all of its cluster's."
    ),
    defaultNodePools=describe_schema(array_schema(TEXT), "The same."),
    defaultPreemptibility=enum_schema("preemptible", "non-preemptible"),
    schedulingRules=describe_schema(
        {"type": "object"}, "Its own limits, in seconds; null is without."
    ),
    effective=describe_schema(
        object_schema(schedulingRules={"type": "object"}),
        "The limits that hold: the stricter of its own and its department's.",
    ),
    totalResources=object_schema(
        gpuQuota={"type": ["number", "null"]},
        cpuQuota={"type": ["number", "null"]},
        memoryQuota={"type": ["number", "null"]},
    ),
    version=describe_schema(INTEGER, "Goes up with every change."),
    resources=array_schema(
        object_schema(
            nodePool=object_schema(id=TEXT, name=TEXT),
            gpu=describe_schema(_SHARE, "In devices."),
            cpu=describe_schema(_SHARE, "In millicores."),
            memory=describe_schema(
                object_schema(**_SHARE["properties"], units=enum_schema("MB")),
                "In units of 1,000,000 bytes.",
            ),
        )
    ),
)
CLUSTER = object_schema(
    ["uuid", "name", "status"],
    uuid=ID,
    tenantId=INTEGER,
    name=TEXT,
    createdAt=MOMENT,
    domain=describe_schema(TEXT, "The address of its API server."),
    version=TEXT,
    platform=TEXT,
    enabled=describe_schema(
        BOOLEAN, "Whether anything is launched there; one that is not is Disconnected."
    ),
    status=object_schema(
        ["state"],
        state=enum_schema("WaitingToConnect", "Connected", "Disconnected", "MissingPrerequisites"),
        message=TEXT,
    ),
    lastLiveness={"type": ["string", "null"], "format": "date-time"},
    metrics=object_schema(
        ["lastAt", "message"],
        lastAt=describe_schema(
            {"type": ["string", "null"], "format": "date-time"},
            "When it was measured last what pods and nodes use.",
        ),
        message=describe_schema(TEXT, "Why figures are missing; empty where none are."),
    ),
)

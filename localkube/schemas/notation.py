"""A small notation for schemas written by hand, and the parts that several built-in kinds have in
common.

`x-go` is the name of the Go type, which the real server's decoding errors mention; `x-quantity`
marks a Kubernetes quantity.
"""

from typing import Any

Schema = dict[str, Any]

POD_SPEC: Schema = {"$ref": "pod-spec"}
STRING: Schema = {"type": "string"}
BYTES: Schema = {"type": "string", "format": "byte"}
BOOL: Schema = {"type": "boolean"}
INT32: Schema = {"type": "integer", "format": "int32"}
INT64: Schema = {"type": "integer", "format": "int64"}
TIME: Schema = {"type": "string", "format": "date-time"}
NULL_TIME: Schema = TIME | {"nullable": True}
"""A time that Go writes as null when it is not set."""
INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
QUANTITY: Schema = {"x-kubernetes-int-or-string": True, "x-quantity": True}
ANY: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def record(go: str, **fields: Schema) -> Schema:
    return {"type": "object", "x-go": go, "properties": fields}


def many(items: Schema, *keys: str) -> Schema:
    """A list; with `keys` a list that is a map by them."""
    if not keys:
        return {"type": "array", "items": items}
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


def table(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def unique(items: Schema) -> Schema:
    return {"type": "array", "items": items, "x-kubernetes-list-type": "set"}


def kind(go: str, **fields: Schema) -> Schema:
    """The root of a kind: its own fields beside kind, apiVersion and metadata."""
    return record(go, apiVersion=STRING, kind=STRING, metadata=OBJECT_META, **fields)


TEXTS = table(STRING)
QUANTITIES = table(QUANTITY)

OBJECT_META = record(
    "ObjectMeta",
    name=STRING,
    generateName=STRING,
    namespace=STRING,
    selfLink=STRING,
    uid=STRING,
    resourceVersion=STRING,
    generation=INT64,
    creationTimestamp=TIME,
    deletionTimestamp=TIME,
    deletionGracePeriodSeconds=INT64,
    labels=TEXTS,
    annotations=TEXTS,
    ownerReferences=many(
        record(
            "OwnerReference",
            apiVersion=STRING,
            kind=STRING,
            name=STRING,
            uid=STRING,
            controller=BOOL,
            blockOwnerDeletion=BOOL,
        ),
        "uid",
    ),
    finalizers=unique(STRING),
    managedFields=many(
        record(
            "ManagedFieldsEntry",
            manager=STRING,
            operation=STRING,
            apiVersion=STRING,
            time=TIME,
            fieldsType=STRING,
            fieldsV1=ANY,
            subresource=STRING,
        )
    ),
)

CONDITION = record(
    "Condition",
    type=STRING,
    status=STRING,
    observedGeneration=INT64,
    lastProbeTime=NULL_TIME,
    lastHeartbeatTime=NULL_TIME,
    lastTransitionTime=NULL_TIME,
    reason=STRING,
    message=STRING,
)
CONDITIONS = many(CONDITION, "type")

OBJECT_REFERENCE = record(
    "ObjectReference",
    kind=STRING,
    namespace=STRING,
    name=STRING,
    uid=STRING,
    apiVersion=STRING,
    resourceVersion=STRING,
    fieldPath=STRING,
)
NAMED = record("LocalObjectReference", name=STRING)

LABEL_SELECTOR = record(
    "LabelSelector",
    matchLabels=TEXTS,
    matchExpressions=many(
        record("LabelSelectorRequirement", key=STRING, operator=STRING, values=many(STRING))
    ),
) | {"x-kubernetes-map-type": "atomic"}

POD_TEMPLATE = record("PodTemplateSpec", metadata=OBJECT_META, spec=POD_SPEC)

CONTAINER_STATE = record(
    "ContainerState",
    waiting=record("ContainerStateWaiting", reason=STRING, message=STRING),
    running=record("ContainerStateRunning", startedAt=NULL_TIME),
    terminated=record(
        "ContainerStateTerminated",
        exitCode=INT32,
        signal=INT32,
        reason=STRING,
        message=STRING,
        startedAt=NULL_TIME,
        finishedAt=NULL_TIME,
        containerID=STRING,
    ),
)

RESOURCE_REQUIREMENTS = record(
    "ResourceRequirements",
    limits=QUANTITIES,
    requests=QUANTITIES,
    claims=many(record("ResourceClaim", name=STRING, request=STRING)),
)

CONTAINER_STATUSES = many(
    record(
        "ContainerStatus",
        name=STRING,
        state=CONTAINER_STATE,
        lastState=CONTAINER_STATE,
        ready=BOOL,
        restartCount=INT32,
        image=STRING,
        imageID=STRING,
        containerID=STRING,
        started=BOOL,
        allocatedResources=QUANTITIES,
        allocatedResourcesStatus=many(ANY),
        resources=RESOURCE_REQUIREMENTS,
        volumeMounts=many(
            record(
                "VolumeMountStatus",
                name=STRING,
                mountPath=STRING,
                readOnly=BOOL,
                recursiveReadOnly=STRING,
            ),
            "mountPath",
        ),
        user=ANY,
        stopSignal=STRING,
    )
)

"""A small notation for schemas written by hand, and the parts that several built-in kinds share.

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
NULLABLE_TIME: Schema = TIME | {"nullable": True}
"""A time that Go writes as null when it is not set."""
INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
QUANTITY: Schema = {"x-kubernetes-int-or-string": True, "x-quantity": True}
ANY: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def object_schema(go_type: str, **fields: Schema) -> Schema:
    return {"type": "object", "x-go": go_type, "properties": fields}


def list_schema(items: Schema, *keys: str) -> Schema:
    """Build the schema of a list.

    With `keys` the list is a map by them.
    """
    if not keys:
        return {"type": "array", "items": items}
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


def map_schema(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def set_schema(items: Schema) -> Schema:
    return {"type": "array", "items": items, "x-kubernetes-list-type": "set"}


def kind_schema(go_type: str, **fields: Schema) -> Schema:
    """Build the root of a kind: its own fields beside kind, apiVersion and metadata."""
    return object_schema(go_type, apiVersion=STRING, kind=STRING, metadata=OBJECT_META, **fields)


STRING_MAP = map_schema(STRING)
QUANTITY_MAP = map_schema(QUANTITY)

OBJECT_META = object_schema(
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
    labels=STRING_MAP,
    annotations=STRING_MAP,
    ownerReferences=list_schema(
        object_schema(
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
    finalizers=set_schema(STRING),
    managedFields=list_schema(
        object_schema(
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

CONDITION = object_schema(
    "Condition",
    type=STRING,
    status=STRING,
    observedGeneration=INT64,
    lastProbeTime=NULLABLE_TIME,
    lastHeartbeatTime=NULLABLE_TIME,
    lastTransitionTime=NULLABLE_TIME,
    reason=STRING,
    message=STRING,
)
CONDITIONS = list_schema(CONDITION, "type")

OBJECT_REFERENCE = object_schema(
    "ObjectReference",
    kind=STRING,
    namespace=STRING,
    name=STRING,
    uid=STRING,
    apiVersion=STRING,
    resourceVersion=STRING,
    fieldPath=STRING,
)
LOCAL_OBJECT_REFERENCE = object_schema("LocalObjectReference", name=STRING)

LABEL_SELECTOR = object_schema(
    "LabelSelector",
    matchLabels=STRING_MAP,
    matchExpressions=list_schema(
        object_schema(
            "LabelSelectorRequirement", key=STRING, operator=STRING, values=list_schema(STRING)
        )
    ),
) | {"x-kubernetes-map-type": "atomic"}

POD_TEMPLATE = object_schema("PodTemplateSpec", metadata=OBJECT_META, spec=POD_SPEC)

CONTAINER_STATE = object_schema(
    "ContainerState",
    waiting=object_schema("ContainerStateWaiting", reason=STRING, message=STRING),
    running=object_schema("ContainerStateRunning", startedAt=NULLABLE_TIME),
    terminated=object_schema(
        "ContainerStateTerminated",
        exitCode=INT32,
        signal=INT32,
        reason=STRING,
        message=STRING,
        startedAt=NULLABLE_TIME,
        finishedAt=NULLABLE_TIME,
        containerID=STRING,
    ),
)

RESOURCE_REQUIREMENTS = object_schema(
    "ResourceRequirements",
    limits=QUANTITY_MAP,
    requests=QUANTITY_MAP,
    claims=list_schema(object_schema("ResourceClaim", name=STRING, request=STRING)),
)

CONTAINER_STATUSES = list_schema(
    object_schema(
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
        allocatedResources=QUANTITY_MAP,
        allocatedResourcesStatus=list_schema(ANY),
        resources=RESOURCE_REQUIREMENTS,
        volumeMounts=list_schema(
            object_schema(
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

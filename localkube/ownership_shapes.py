"""Ownership shapes: which maps and lists of a schema are owned piece by piece, and which as a
whole.

Fields and items that a shape does not name are plain: a record of fields, or a list that is one
value.
"""

from dataclasses import dataclass, field
from typing import Any

from localkube.metadata import Object

JsonSchema = dict[str, Any]


@dataclass(slots=True, eq=False)
class Shape:
    """The ownership rules of one place in an object.

    Only maps have fields or values, only lists have items.
    """

    fields: dict[str, "Shape"] = field(default_factory=dict)
    values: "Shape | None" = None
    """The shape under any key that is no field.

    The place is then a map, whose keys are owned one by one.
    """
    items: "Shape | None" = None
    """The shape of the items of a list that is owned item by item.

    The items are told apart by `keys`, or are scalars and stand for themselves.
    """
    keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = field(default_factory=dict)
    atomic: bool = False

    def get_child(self, key: str) -> "Shape":
        return self.fields.get(key) or self.values or PLAIN

    def is_map_key(self, key: str) -> bool:
        """Return whether `key` is a key of a map, and not a field of a record."""
        return self.values is not None and key not in self.fields

    @property
    def is_plain(self) -> bool:
        return not self.fields and self.values is None and self.items is None and not self.atomic


PLAIN = Shape()
ATOMIC = Shape(atomic=True)
FREE_FORM = Shape()
"""Free-form content: every map is owned key by key, every list as a whole."""
FREE_FORM.values = FREE_FORM

METADATA = Shape(
    fields={
        "labels": Shape(values=PLAIN),
        "annotations": Shape(values=PLAIN),
        "finalizers": Shape(items=PLAIN),
        "ownerReferences": Shape(items=ATOMIC, keys=("uid",)),
    }
)

_ATOMIC_GO_TYPES = frozenset(
    (
        "ObjectReference",
        "LocalObjectReference",
        "TypedLocalObjectReference",
        "SecretReference",
        "LabelSelector",
    )
)
"""Go types of the core API that say `+structType=atomic` (k8s.io/api `types.go`).

Our own schemas name the Go type as `x-go`.
"""

_NODE_INFO = (
    *(
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
    ),
    *("machineID", "operatingSystem", "osImage", "systemUUID"),
)

_ZERO_VALUES: dict[tuple[str, str], Object] = {
    ("v1", "Pod"): {"spec": {"containers": None}, "status": {}},
    ("v1", "Namespace"): {"spec": {}, "status": {}},
    ("v1", "Node"): {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
        },
    },
    ("v1", "Service"): {"spec": {}, "status": {"loadBalancer": {}}},
    ("v1", "Event"): {
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
    }
    | {"reportingComponent": "", "reportingInstance": ""},
    ("events.k8s.io/v1", "Event"): {"eventTime": None, "regarding": {}, "deprecatedSource": {}}
    | {"deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None},
    ("batch/v1", "Job"): {
        "spec": {"template": {"metadata": {}, "spec": {"containers": None}}},
        "status": {},
    },
    ("coordination.k8s.io/v1", "Lease"): {"spec": {}},
}

_cached_shapes: dict[int, tuple[JsonSchema, Shape]] = {}
_MAX_CACHED_SHAPES = 100


def get_zero_value(obj: Object) -> Object:
    """Return what Go writes for an empty object of this kind.

    These fields are always there, so nobody owns them for having set them.
    """
    return _ZERO_VALUES.get((str(obj.get("apiVersion")), str(obj.get("kind"))), {})


def get_shape(schema: JsonSchema | None) -> Shape:
    """Return the shape of whole objects with this schema; None is free-form.

    It is computed once per schema object, which must not change.
    """
    if schema is None:
        return _UNKNOWN_SHAPE
    cached = _cached_shapes.get(id(schema))
    if cached and cached[0] is schema:
        return cached[1]
    shape = _compile_shape(schema, {})
    if shape.is_plain:
        shape = Shape()
    shape.fields = shape.fields | {"metadata": METADATA}
    if len(_cached_shapes) >= _MAX_CACHED_SHAPES:
        _cached_shapes.clear()
    _cached_shapes[id(schema)] = (schema, shape)
    return shape


def _compile_shape(schema: JsonSchema, compiled: dict[int, Shape]) -> Shape:
    """Compile a schema into a shape.

    `compiled` keeps the shapes of parts that a schema shares, by identity; the schema itself keeps
    these ids valid meanwhile.
    """
    if id(schema) not in compiled:
        compile_part = _compile_list if schema.get("type") == "array" else _compile_map
        compiled[id(schema)] = compile_part(schema, compiled)
    return compiled[id(schema)]


def _compile_map(schema: JsonSchema, compiled: dict[int, Shape]) -> Shape:
    if schema.get("x-kubernetes-map-type") == "atomic" or schema.get("x-go") in _ATOMIC_GO_TYPES:
        return ATOMIC
    fields = {
        key: _compile_shape(part, compiled)
        for key, part in (schema.get("properties") or {}).items()
    }
    if schema.get("x-kubernetes-embedded-resource"):
        fields["metadata"] = METADATA
    extra = schema.get("additionalProperties")
    values: Shape | None = None
    if isinstance(extra, dict):
        values = _compile_shape(extra, compiled)
    elif extra or schema.get("x-kubernetes-preserve-unknown-fields"):
        values = FREE_FORM
    if values is None and all(part is PLAIN for part in fields.values()):
        return PLAIN
    return Shape(fields=fields, values=values)


def _compile_list(schema: JsonSchema, compiled: dict[int, Shape]) -> Shape:
    items = schema.get("items") or {}
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = tuple(sorted(schema.get("x-kubernetes-list-map-keys") or ()))
            properties = items.get("properties") or {}
            defaults = {
                key: properties[key]["default"]
                for key in keys
                if "default" in properties.get(key, {})
            }
            return Shape(items=_compile_shape(items, compiled), keys=keys, key_defaults=defaults)
        case "set":
            return Shape(items=PLAIN)
        case _:
            return PLAIN


_UNKNOWN_SHAPE = Shape(fields={"metadata": METADATA}, values=FREE_FORM)

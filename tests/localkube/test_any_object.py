"""Whatever a client sends ends as a stored object or a refusal, never as an exception."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from localkube import resources, schemas
from localkube.resources.resource import Resource

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
JUNK = st.one_of(
    SCALARS,
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just([{}]),
    st.just({"a": None}),
    st.just({"a": {}}),
)
WRITABLE = [resource for resource in resources.list_served() if resource.schema]


def mix_with_junk(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return these values, and junk one time in thirty.

    With more junk hardly any object would decode.
    """
    return st.integers(0, 29).flatmap(lambda n: JUNK if n == 29 else values)


def draw_schema_values(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Return values of the form of a schema, with junk here and there."""
    kind, either = schema.get("type"), schema.get("x-kubernetes-int-or-string")
    if depth > 6 or kind is None or either:
        return mix_with_junk(st.sampled_from(["1", "500m", "1Gi", 2, -1]))
    if "properties" in schema:
        parts = {
            name: draw_schema_values(part, depth + 1) for name, part in schema["properties"].items()
        }
        return mix_with_junk(
            st.lists(st.sampled_from(sorted(parts)), max_size=5, unique=True).flatmap(
                _build_fixed_dictionaries(parts)
            )
        )
    if "additionalProperties" in schema:
        return mix_with_junk(
            st.dictionaries(
                st.text(max_size=4),
                draw_schema_values(schema["additionalProperties"], depth + 1),
                max_size=2,
            )
        )
    if kind == "array":
        return mix_with_junk(
            st.lists(draw_schema_values(schema.get("items", {}), depth + 1), max_size=2)
        )
    typical = {
        "string": st.text(max_size=4),
        "integer": st.integers(-2, 70_000),
        "boolean": st.booleans(),
    }
    return mix_with_junk(typical.get(kind, JUNK))


def _build_fixed_dictionaries(parts: dict[str, st.SearchStrategy[Any]]) -> Any:
    return lambda names: st.fixed_dictionaries({name: parts[name] for name in names})


def decode_and_check(resource: Resource, obj: dict[str, Any]) -> bool:
    """Decode, prune, set defaults and check as a create does; return whether it is accepted."""
    if resources.find_decode_error(resource, obj):
        return False
    schemas.load_schema(resource.schema).prune(obj)
    resource.set_defaults(obj)
    if resources.find_admission_refusal(resource, obj) or resources.check_object(
        resource, obj, None
    ):
        return False
    again = copy.deepcopy(obj)
    resource.set_defaults(again)
    assert again == obj, "defaults are not put in once"
    assert resources.check_object(resource, again, obj) == []
    for column in resource.columns:
        column.cell(obj)
    for read in resource.field_selectors.values():
        assert isinstance(read(obj if resource.to_stored is None else resource.to_stored(obj)), str)
    return True


@settings(max_examples=100)
@given(st.data())
def test_any_object_is_stored_or_refused(data: st.DataObject) -> None:
    resource = data.draw(st.sampled_from(WRITABLE))
    root = schemas.load_schema(resource.schema).root
    parts = {
        name: part
        for name, part in root["properties"].items()
        if name not in ("kind", "apiVersion", "metadata")
    }
    body = {
        name: data.draw(draw_schema_values(part))
        for name, part in parts.items()
        if data.draw(st.booleans())
    }
    if resource.has_status:
        body.pop("status", None)
    metadata = {"name": "x", "uid": "1", "creationTimestamp": "2026-11-21T00:00:00Z"}
    decode_and_check(
        resource,
        {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata} | body,
    )


@settings(max_examples=100)
@given(draw_schema_values(schemas.load_schema("pods").root["properties"]["metadata"]))
def test_any_metadata_is_stored_or_refused(metadata: Any) -> None:
    if isinstance(metadata, dict):
        # What the verbs have looked at before.
        for part in ("name", "namespace", "generateName"):
            metadata.pop(part, None)
        decode_and_check(resources.CONFIGMAPS, {"metadata": copy.deepcopy(metadata)})
        decode_and_check(
            resources.PYTORCHJOBS, {"metadata": metadata, "spec": {"pytorchReplicaSpecs": {}}}
        )


GOOD_POD: dict[str, Any] = {
    "initContainers": [{"name": "first", "image": "x", "restartPolicy": "Always"}],
    "containers": [
        {
            "name": "main",
            "image": "x:1",
            "command": ["a"],
            "env": [
                {"name": "A", "value": "b"},
                {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
            "resources": {
                "limits": {"cpu": "1", "nvidia.com/gpu": 1},
                "requests": {"memory": "1Gi"},
            },
            "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a"}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
        }
    ],
    "volumes": [
        {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}},
    ],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "restartPolicy": "Never",
}
GOOD: list[tuple[Resource, dict[str, Any]]] = [
    (resources.PODS, {"spec": GOOD_POD}),
    (resources.JOBS, {"spec": {"template": {"spec": GOOD_POD}, "completions": 2}}),
    (
        resources.SERVICES,
        {
            "spec": {
                "ports": [{"port": 80, "name": "a", "targetPort": "http"}],
                "selector": {"a": "b"},
            }
        },
    ),
    (
        resources.PYTORCHJOBS,
        {
            "spec": {
                "pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": GOOD_POD}}}
            }
        },
    ),
]


def list_places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a value that holds something: the dict or list, and the key."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [(value, key) for key, _ in items] + [
        place for _, item in items for place in list_places(item)
    ]


@settings(max_examples=300)
@given(st.sampled_from(GOOD), st.data())
def test_a_good_object_with_one_part_spoilt_is_stored_or_refused(
    good: tuple[Resource, dict[str, Any]], data: st.DataObject
) -> None:
    resource, body = good[0], copy.deepcopy(good[1])
    holder, key = data.draw(st.sampled_from(list_places(body)))
    holder[key] = data.draw(JUNK)
    metadata = {"name": "x", "uid": "1", "creationTimestamp": "2026-11-21T00:00:00Z"}
    decode_and_check(
        resource,
        {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata} | body,
    )


def test_the_good_objects_are_good() -> None:
    for resource, body in GOOD:
        metadata = {"name": "x", "uid": "1", "creationTimestamp": "2026-11-21T00:00:00Z"}
        assert decode_and_check(
            resource, {"kind": resource.kind, "metadata": metadata} | copy.deepcopy(body)
        ), resource.kind

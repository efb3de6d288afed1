"""Where the variables and the files of a pod may come from: what the kubelet could only stumble
over is refused.
"""

from typing import Any

import pytest

from localkube.resources import JOBS, PODS
from tests.localkube.resource_objects import build_object, container, find_causes, find_texts, pod

Object = dict[str, Any]

AT = "spec.volumes[0]"
SOURCE = f"{AT}.projected.sources[0]"
ITEMS = [
    ({"path": "a"}, "key: Required value"),
    ({"key": "a"}, "path: Required value"),
    ({"key": "a", "path": "/a"}, 'path: Invalid value: "/a": must be a relative path'),
    (
        {"key": "a", "path": "a/../../b"},
        "path: Invalid value: \"a/../../b\": must not contain '..'",
    ),
]


def find_volume_texts(**source: Any) -> list[str]:
    return find_texts(PODS, pod(volumes=[{"name": "v"} | source]))


@pytest.mark.parametrize(("item", "text"), ITEMS)
def test_an_item_has_a_key_and_a_path_within_the_volume(item: Object, text: str) -> None:
    assert find_volume_texts(configMap={"name": "c", "items": [item]}) == [
        f"{AT}.configMap.items[0].{text}"
    ]
    assert find_volume_texts(secret={"secretName": "s", "items": [item]}) == [
        f"{AT}.secret.items[0].{text}"
    ]
    assert find_volume_texts(
        projected={"sources": [{"secret": {"name": "s", "items": [item]}}]}
    ) == [f"{SOURCE}.secret.items[0].{text}"]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ({}, []),
        ({"configMap": {"name": "c"}}, []),
        ({"configMap": {}}, [f"{SOURCE}.configMap.name: Required value"]),
        ({"secret": {}}, [f"{SOURCE}.secret.name: Required value"]),
        (
            {"configMap": {"name": "c"}, "secret": {"name": "s"}},
            [f"{SOURCE}: Forbidden: may not specify more than 1 volume type per source"],
        ),
    ],
)
def test_a_projected_source_is_one_and_has_a_name(source: Object, texts: list[str]) -> None:
    assert find_volume_texts(projected={"sources": [source]}) == texts


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({}, ": Required value: one of fieldRef and resourceFieldRef is required"),
        ({"fieldRef": {}}, ".fieldRef.fieldPath: Required value"),
        (
            {"resourceFieldRef": {"resource": "limits.cpu"}},
            ".resourceFieldRef.containerName: Required value",
        ),
        (
            {"resourceFieldRef": {"containerName": "main"}},
            ".resourceFieldRef.resource: Required value",
        ),
    ],
)
def test_a_file_of_the_downward_api_says_what_it_holds(item: Object, text: str) -> None:
    source = {"items": [item | {"path": "a"}]}
    at = "downwardAPI.items[0]"
    assert find_volume_texts(downwardAPI=source) == [f"{AT}.{at}{text}"]
    assert find_volume_texts(projected={"sources": [{"downwardAPI": source}]}) == [
        f"{SOURCE}.{at}{text}"
    ]


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ({}, "resource: Required value"),
        ({"resource": "limits.bogus"}, 'resource: Unsupported value: "limits.bogus": supported'),
    ],
)
def test_a_variable_takes_a_resource_that_there_is(ref: Object, text: str) -> None:
    variable = {"name": "A", "valueFrom": {"resourceFieldRef": ref}}
    [found] = find_texts(PODS, container(env=[variable]))
    assert found.startswith(f"spec.containers[0].env[0].valueFrom.resourceFieldRef.{text}")


@pytest.mark.parametrize("resource", ["requests.cpu", "limits.memory", "limits.hugepages-2Mi"])
def test_a_variable_may_take_what_containers_have(resource: str) -> None:
    variable = {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": resource}}}
    assert find_texts(PODS, container(env=[variable])) == []


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({}, ': Invalid value: "": must specify one of: `configMapRef` or `secretRef`'),
        ({"configMapRef": {}}, ".configMapRef.name: Required value"),
        (
            {"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}},
            ': Invalid value: "": may not have more than one field specified at a time',
        ),
    ],
)
def test_variables_come_from_one_named_source(source: Object, text: str) -> None:
    assert find_texts(PODS, container(envFrom=[source])) == [f"spec.containers[0].envFrom[0]{text}"]


def test_what_was_stored_before_these_rules_still_gets_its_status() -> None:
    item = {"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu"}}
    spec = pod(volumes=[{"name": "v", "downwardAPI": {"items": [item]}}])["spec"]
    template = {"spec": spec | {"restartPolicy": "Never"}}
    old_pod, old_job = (
        build_object(PODS, spec=spec),
        build_object(JOBS, spec={"template": template}),
    )
    for resource, old in ((PODS, old_pod), (JOBS, old_job)):
        assert find_causes(resource, old)
        assert find_causes(resource, old | {"status": {"startTime": None}}, old) == []

"""Changing a part of an object: merge patch, JSON patch, and strategic merge patch where a kind has
it.
"""

import pytest

from tests.conformance.api import JSON, JSON_PATCH, MERGE, STRATEGIC, Api, Object
from tests.conformance.samples import (
    CONFIGMAPS,
    PODS,
    PYTORCHJOBS,
    SERVICES,
    Kind,
    configmap,
    create,
    create_pod,
    pod,
    pytorchjob,
    sample,
    service,
)

CUSTOM_PATCHES = (
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


@pytest.fixture
def config(api: Api, namespace: str) -> str:
    """The path of a config map with the data a and b."""
    create(api, CONFIGMAPS, namespace, configmap("cm", a="1", b="2"))
    return CONFIGMAPS.path(namespace, "cm")


@pytest.fixture
def training(api: Api, namespace: str) -> str:
    """The path of a job with a label."""
    create(api, PYTORCHJOBS, namespace, pytorchjob("job", labels={"team": "a"}))
    return PYTORCHJOBS.path(namespace, "job")


def test_a_merge_patch_adds_changes_and_removes(api: Api, config: str) -> None:
    patched = api.patch(config, {"data": {"a": None, "b": "3", "c": "4"}}).ok()
    assert patched["data"] == {"b": "3", "c": "4"}


def test_a_merge_patch_reaches_deep_into_a_custom_object(api: Api, training: str) -> None:
    patched = api.patch(training, {"spec": {"runPolicy": {"suspend": True}}}).ok()
    assert patched["spec"]["runPolicy"]["suspend"] is True
    assert patched["spec"]["runPolicy"]["cleanPodPolicy"] == "None"
    assert patched["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 3


def test_a_merge_patch_replaces_lists_whole(api: Api, training: str) -> None:
    container = {"name": "pytorch", "image": "train:2"}
    worker = {"template": {"spec": {"containers": [container]}}}
    patched = api.patch(training, {"spec": {"pytorchReplicaSpecs": {"Worker": worker}}}).ok()
    assert patched["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] == [
        container
    ]


def test_an_empty_merge_patch_changes_nothing(api: Api, config: str) -> None:
    before = api.get(config).ok()
    assert (
        api.patch(config, {}).ok()["metadata"]["resourceVersion"]
        == before["metadata"]["resourceVersion"]
    )


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=lambda kind: kind.plural)
def test_a_merge_patch_with_a_stale_version_is_a_conflict(
    api: Api, namespace: str, kind: Kind
) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    path = kind.path(namespace, "one")
    api.patch(path, {"metadata": {"labels": {"a": "1"}}}).ok()
    stale = {
        "metadata": {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"a": "2"}}
    }
    refusal = api.patch(path, stale).expect_refusal(409, "Conflict")
    assert refusal["message"].endswith(
        "the object has been modified; please apply your changes to the latest version and try "
        "again"
    )
    assert refusal["details"] == kind.details("one")


def test_a_merge_patch_with_the_current_version_is_taken(api: Api, config: str) -> None:
    version = api.get(config).ok()["metadata"]["resourceVersion"]
    patched = api.patch(config, {"metadata": {"resourceVersion": version}, "data": {"a": "9"}}).ok()
    assert patched["data"]["a"] == "9"


@pytest.mark.parametrize("content_type", [MERGE, JSON_PATCH, STRATEGIC])
def test_what_is_not_there_cannot_be_patched(api: Api, namespace: str, content_type: str) -> None:
    body: list[Object] | Object = [] if content_type == JSON_PATCH else {}
    refusal = api.patch(CONFIGMAPS.path(namespace, "nope"), body, content_type).expect_refusal(
        404, "NotFound"
    )
    assert refusal["message"] == 'configmaps "nope" not found'
    assert refusal["details"] == {"name": "nope", "kind": "configmaps"}


def test_a_json_patch_does_its_operations_in_order(api: Api, config: str) -> None:
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "x"},
        {"op": "copy", "from": "/data/a", "path": "/data/c"},
        {"op": "move", "from": "/data/b", "path": "/data/d"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/example.com~1note", "value": "slash"},
    ]
    patched = api.patch(config, operations, JSON_PATCH).ok()
    assert patched["data"] == {"a": "x", "c": "x", "d": "2"}
    assert patched["metadata"]["annotations"] == {"example.com/note": "slash"}


def test_a_json_patch_works_on_lists(api: Api, training: str) -> None:
    base = "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/command"
    operations = [
        {"op": "add", "path": f"{base}/-", "value": "--epochs=2"},
        {"op": "remove", "path": f"{base}/0"},
    ]
    patched = api.patch(training, operations, JSON_PATCH).ok()
    container = patched["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][
        0
    ]
    assert container["command"] == ["train.py", "--epochs=2"]


def test_a_negative_index_counts_from_the_end_of_a_list(api: Api, training: str) -> None:
    base = "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/-1/command"
    operations = [
        {"op": "replace", "path": f"{base}/-1", "value": "test.py"},
        {"op": "add", "path": f"{base}/-1", "value": "--epochs=2"},
    ]
    patched = api.patch(training, operations, JSON_PATCH).ok()
    container = patched["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][
        0
    ]
    assert container["command"] == ["torchrun", "test.py", "--epochs=2"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/name", "value": "somebody-else"},
        {"op": "remove", "path": "/metadata/labels/nope"},
        {"op": "replace", "path": "/spec/no/such", "value": 1},
        {"op": "add", "path": "/spec/no/such/parent", "value": 1},
    ],
    ids=lambda operation: operation["op"],
)
def test_a_json_patch_that_does_not_fit_changes_nothing(
    api: Api, training: str, operation: Object
) -> None:
    label = {"op": "add", "path": "/metadata/labels/first", "value": "yes"}
    refusal = api.patch(training, [label, operation], JSON_PATCH).expect_refusal(422, "Invalid")
    assert refusal["message"] == "the server rejected our request due to an error in our request"
    assert refusal["details"] == {}
    assert api.get(training).ok()["metadata"]["labels"] == {"team": "a"}


def test_a_json_patch_may_replace_what_was_not_there(api: Api, config: str) -> None:
    patched = api.patch(
        config, [{"op": "replace", "path": "/data/c", "value": "3"}], JSON_PATCH
    ).ok()
    assert patched["data"] == {"a": "1", "b": "2", "c": "3"}


def test_a_json_patch_is_a_list_of_operations(api: Api, config: str) -> None:
    api.patch(config, {"op": "add", "path": "/data/c", "value": "1"}, JSON_PATCH).expect_refusal(
        400, "BadRequest"
    )


def test_a_custom_object_has_no_strategic_merge(api: Api, training: str) -> None:
    refusal = api.patch(training, {"metadata": {"labels": {"x": "y"}}}, STRATEGIC).expect_refusal(
        415, "UnsupportedMediaType"
    )
    assert refusal["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{CUSTOM_PATCHES}"
    )
    assert "details" not in refusal


@pytest.mark.parametrize("media", [JSON, "text/plain", "application/yaml"])
def test_what_is_no_patch_is_refused(api: Api, config: str, training: str, media: str) -> None:
    refusal = api.patch(config, {"data": {}}, media).expect_refusal(415, "UnsupportedMediaType")
    assert (refusal["message"], refusal["details"]) == ("415: Unsupported Media Type", {})
    assert (
        CUSTOM_PATCHES
        in api.patch(training, {"metadata": {}}, media).expect_refusal(415, "UnsupportedMediaType")[
            "message"
        ]
    )


def test_a_strategic_patch_merges_maps_and_removes_with_null(api: Api, config: str) -> None:
    patched = api.patch(
        config, {"data": {"a": None, "c": "3"}, "metadata": {"labels": {"x": "y"}}}, STRATEGIC
    ).ok()
    assert patched["data"] == {"b": "2", "c": "3"}
    assert patched["metadata"]["labels"] == {"x": "y"}


def test_a_strategic_patch_finds_containers_by_their_name(api: Api, namespace: str) -> None:
    containers = [
        {"name": "main", "image": "train:1", "command": ["a"]},
        {"name": "side", "image": "side:1"},
    ]
    create_pod(api, namespace, pod(containers=containers))
    patch = {"spec": {"containers": [{"name": "side", "image": "side:2"}]}}
    patched = api.patch(PODS.path(namespace, "pod"), patch, STRATEGIC).ok()
    assert [(c["name"], c["image"]) for c in patched["spec"]["containers"]] == [
        ("main", "train:1"),
        ("side", "side:2"),
    ]
    assert patched["spec"]["containers"][0]["command"] == ["a"]


def test_a_strategic_patch_of_kubectl_apply_may_order_lists(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "main"}],
            "containers": [{"name": "main", "image": "train:2"}],
        }
    }
    patched = api.patch(PODS.path(namespace, "pod"), patch, STRATEGIC).ok()
    assert [container["image"] for container in patched["spec"]["containers"]] == ["train:2"]


def test_a_strategic_patch_adds_to_and_deletes_from_a_keyed_list(api: Api, namespace: str) -> None:
    create(api, SERVICES, namespace, service())
    path = SERVICES.path(namespace, "svc")
    patched = api.patch(path, {"spec": {"ports": [{"name": "second", "port": 80}]}}, STRATEGIC).ok()
    assert {port["port"] for port in patched["spec"]["ports"]} == {23456, 80}
    patched = api.patch(
        path, {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}, STRATEGIC
    ).ok()
    assert [port["port"] for port in patched["spec"]["ports"]] == [23456]


def test_a_strategic_patch_can_replace_a_map(api: Api, config: str) -> None:
    patched = api.patch(config, {"data": {"$patch": "replace", "only": "this"}}, STRATEGIC).ok()
    assert patched["data"] == {"only": "this"}


def test_a_strategic_patch_adds_finalizers_and_takes_them_away(api: Api, config: str) -> None:
    api.patch(config, {"metadata": {"finalizers": ["example.com/a"]}}, STRATEGIC).ok()
    patched = api.patch(config, {"metadata": {"finalizers": ["example.com/b"]}}, STRATEGIC).ok()
    assert set(patched["metadata"]["finalizers"]) == {"example.com/a", "example.com/b"}
    removal = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}
    }
    assert "finalizers" not in api.patch(config, removal, STRATEGIC).ok()["metadata"]


def test_a_pod_keeps_what_may_not_change(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    path = PODS.path(namespace, "pod")
    refusal = api.patch(path, {"spec": {"restartPolicy": "Always"}}, STRATEGIC).expect_refusal(
        422, "Invalid"
    )
    (cause,) = refusal["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "spec")
    assert "pod updates may not change fields other than" in cause["message"]
    assert api.get(path).ok()["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("content_type", [MERGE, JSON_PATCH, STRATEGIC])
def test_a_patch_must_be_json(api: Api, config: str, content_type: str) -> None:
    api.patch(config, b'{"data":', content_type).expect_refusal(400, "BadRequest")


def test_a_patch_may_not_break_the_schema(api: Api, training: str) -> None:
    refusal = api.patch(
        training, {"spec": {"runPolicy": {"backoffLimit": "three"}}}
    ).expect_refusal(422, "Invalid")
    assert "spec.runPolicy.backoffLimit" in [
        cause["field"] for cause in refusal["details"]["causes"]
    ]

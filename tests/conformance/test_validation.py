"""fieldValidation: what happens to fields that a kind does not have, and how its user learns of
it.
"""

import pytest

from tests.conformance.api import STRATEGIC, Api, Object
from tests.conformance.samples import (
    CONFIGMAPS,
    PODS,
    PYTORCHJOBS,
    QUEUES,
    configmap,
    create,
    create_pod,
    pod,
    pytorchjob,
    queue,
)

UNKNOWN = ["spec.pytorchReplicaSpecs.Worker.replica", "spec.unknownField"]
WARNINGS = [f'unknown field "{path}"' for path in UNKNOWN]


def odd_job() -> Object:
    obj = pytorchjob("odd")
    obj["spec"]["unknownField"] = 1
    obj["spec"]["pytorchReplicaSpecs"]["Worker"]["replica"] = 2
    return obj


def odd_pod() -> Object:
    return pod(
        "odd", unknownField=1, containers=[{"name": "main", "image": "train:1", "comand": ["a"]}]
    )


@pytest.mark.parametrize("validation", [None, "Warn"], ids=["unset", "warn"])
def test_unknown_fields_of_a_custom_object_are_dropped_with_warnings(
    api: Api, namespace: str, validation: str | None
) -> None:
    answer = api.post(PYTORCHJOBS.path(namespace), odd_job(), fieldValidation=validation)
    assert answer.ok(201)["spec"] == pytorchjob()["spec"]
    assert answer.warnings == WARNINGS


def test_unknown_fields_of_a_custom_object_are_dropped_in_silence(api: Api, namespace: str) -> None:
    answer = api.post(PYTORCHJOBS.path(namespace), odd_job(), fieldValidation="Ignore")
    assert answer.ok(201)["spec"] == pytorchjob()["spec"]
    assert answer.warnings == []


def test_unknown_fields_of_a_custom_object_are_refused(api: Api, namespace: str) -> None:
    refusal = api.post(
        PYTORCHJOBS.path(namespace), odd_job(), fieldValidation="Strict"
    ).expect_refusal(400, "BadRequest")
    named = ", ".join(WARNINGS)
    assert refusal["message"] == (
        'PyTorchJob in version "v1" cannot be handled as a PyTorchJob: strict decoding error: '
        f"{named}"
    )
    api.get(PYTORCHJOBS.path(namespace, "odd")).expect_refusal(404, "NotFound")


def test_unknown_fields_of_a_pod_are_dropped_with_warnings(api: Api, pods_namespace: str) -> None:
    answer = api.post(PODS.path(pods_namespace), odd_pod())
    made = answer.ok(201)
    assert "unknownField" not in made["spec"]
    assert "comand" not in made["spec"]["containers"][0]
    assert set(answer.warnings) == {
        'unknown field "spec.containers[0].comand"',
        'unknown field "spec.unknownField"',
    }


def test_unknown_fields_of_a_pod_are_refused(api: Api, namespace: str) -> None:
    refusal = api.post(PODS.path(namespace), odd_pod(), fieldValidation="Strict").expect_refusal(
        400, "BadRequest"
    )
    start = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
    assert refusal["message"].startswith(start)
    named = refusal["message"].removeprefix(start).split(", ")
    assert set(named) == {
        'unknown field "spec.containers[0].comand"',
        'unknown field "spec.unknownField"',
    }


def test_unknown_fields_at_the_top_are_found(api: Api, namespace: str) -> None:
    answer = api.post(CONFIGMAPS.path(namespace), configmap() | {"dada": {}})
    assert "dada" not in answer.ok(201)
    assert answer.warnings == ['unknown field "dada"']


def test_unknown_fields_of_metadata_are_found(api: Api, namespace: str) -> None:
    obj = configmap()
    obj["metadata"]["label"] = {"a": "b"}
    api.post(CONFIGMAPS.path(namespace), obj, fieldValidation="Strict").expect_refusal(
        400, "BadRequest"
    )
    answer = api.post(CONFIGMAPS.path(namespace), obj)
    assert "label" not in answer.ok(201)["metadata"]
    assert answer.warnings == ['unknown field "metadata.label"']


def test_a_field_given_twice_is_found(api: Api, namespace: str) -> None:
    body = (
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"},'
        b'"data":{"a":"1"},"data":{"b":"2"}}'
    )
    refusal = api.post(CONFIGMAPS.path(namespace), body, fieldValidation="Strict").expect_refusal(
        400, "BadRequest"
    )
    assert 'strict decoding error: duplicate field "data"' in refusal["message"]
    answer = api.post(CONFIGMAPS.path(namespace), body)
    assert answer.ok(201)["data"] == {"b": "2"}
    assert answer.warnings == ['duplicate field "data"']
    patch = b'{"data":{"a":"1","a":"2"}}'
    path = CONFIGMAPS.path(namespace, "cm")
    answer = api.patch(path, patch, fieldValidation="Ignore")
    assert answer.ok()["data"] == {"a": "2", "b": "2"}
    assert answer.warnings == []
    assert api.patch(path, patch).warnings == ['duplicate field "data.a"']


def test_replacing_is_validated_too(api: Api, namespace: str) -> None:
    made = create(api, PYTORCHJOBS, namespace, pytorchjob())
    made["spec"]["unknownField"] = 1
    path = PYTORCHJOBS.path(namespace, "job")
    refusal = api.put(path, made, fieldValidation="Strict").expect_refusal(400, "BadRequest")
    assert refusal["message"].endswith('strict decoding error: unknown field "spec.unknownField"')
    answer = api.put(path, made)
    assert "unknownField" not in answer.ok()["spec"]
    assert answer.warnings == ['unknown field "spec.unknownField"']


def test_a_merge_patch_is_validated_too(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job")
    patch = {"spec": {"unknownField": 1}}
    refusal = api.patch(path, patch, fieldValidation="Strict").expect_refusal(422, "Invalid")
    assert 'strict decoding error: unknown field "spec.unknownField"' in refusal["message"]
    answer = api.patch(path, patch)
    assert "unknownField" not in answer.ok()["spec"]
    assert answer.warnings == ['unknown field "spec.unknownField"']


def test_a_strategic_patch_is_validated_too(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    patch = {"spec": {"unknownField": 1}}
    answer = api.patch(PODS.path(namespace, "pod"), patch, STRATEGIC, fieldValidation="Strict")
    assert answer.status in (400, 422)
    assert 'unknown field "spec.unknownField"' in answer.json()["message"]


def test_maps_of_anything_take_any_key(api: Api, namespace: str) -> None:
    obj = pytorchjob()
    obj["spec"]["pytorchReplicaSpecs"]["Trainer"] = obj["spec"]["pytorchReplicaSpecs"]["Worker"]
    answer = api.post(PYTORCHJOBS.path(namespace), obj, fieldValidation="Strict", dryRun="All")
    assert "Trainer" in answer.ok(201)["spec"]["pytorchReplicaSpecs"]


def test_the_schema_alone_takes_what_makes_no_sense(api: Api, namespace: str) -> None:
    obj = pytorchjob()
    obj["spec"]["pytorchReplicaSpecs"]["Worker"] |= {
        "restartPolicy": "Whenever",
        "template": {"spec": {"containers": []}},
    }
    answer = api.post(PYTORCHJOBS.path(namespace), obj, fieldValidation="Strict", dryRun="All")
    if answer.status in (400, 403, 422):
        pytest.skip("an admission webhook of the operator checks jobs on this cluster")
    assert answer.ok(201)["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] == "Whenever"


def test_numbers_of_a_queue_may_be_fractions_but_not_words(api: Api, unique: str) -> None:
    obj = queue(unique)
    obj["spec"]["resources"]["gpu"]["quota"] = 0.5
    api.post(QUEUES.path(), obj, fieldValidation="Strict", dryRun="All").ok(201)
    obj["spec"]["resources"]["gpu"]["quota"] = "half"
    refusal = api.post(QUEUES.path(), obj, dryRun="All").expect_refusal(422, "Invalid")
    assert "spec.resources.gpu.quota" in [cause["field"] for cause in refusal["details"]["causes"]]


def test_a_schema_may_name_the_only_values(api: Api, namespace: str) -> None:
    body = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "one"},
    }
    path = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{namespace}/podgroups"
    refusal = api.post(
        path, body | {"spec": {"preemptibility": "sometimes", "minMember": 0}}
    ).expect_refusal(422, "Invalid")
    causes = {
        cause["field"]: (cause["reason"], cause["message"])
        for cause in refusal["details"]["causes"]
    }
    expected = 'Unsupported value: "sometimes": supported values: "preemptible", "non-preemptible"'
    assert causes["spec.preemptibility"] == ("FieldValueNotSupported", expected)
    assert (
        causes["spec.minMember"][1]
        == "Invalid value: 0: spec.minMember in body should be greater than or equal to 1"
    )


def test_there_are_three_ways_to_validate(api: Api, namespace: str) -> None:
    refusal = api.post(
        CONFIGMAPS.path(namespace), configmap(), fieldValidation="Maybe"
    ).expect_refusal(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["fieldValidation"]

"""Server-side apply: who owns which field, what a conflict says, and what goes when a manager stops
asking for it.
"""

import pytest
import yaml

from tests.conformance.api import APPLY, Api, Object
from tests.conformance.samples import (
    CONFIGMAPS,
    PODGROUPS,
    PYTORCHJOBS,
    QUEUES,
    SECRETS,
    SERVICES,
    Kind,
    configmap,
    create,
    pytorchjob,
    sample,
)

WORKERS = ".spec.pytorchReplicaSpecs.Worker.replicas"


def with_workers(count: int) -> Object:
    obj = pytorchjob()
    obj["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = count
    return obj


def managers(obj: Object) -> dict[str, Object]:
    return {
        entry["manager"]: entry
        for entry in obj["metadata"]["managedFields"]
        if entry["operation"] == "Apply"
    }


@pytest.mark.parametrize(
    "kind", [CONFIGMAPS, SECRETS, SERVICES, PYTORCHJOBS, PODGROUPS], ids=lambda kind: kind.plural
)
def test_applying_what_is_not_there_creates_it(api: Api, namespace: str, kind: Kind) -> None:
    made = api.apply(kind.path(namespace, "one"), sample(kind, "one")).ok(201)
    assert (made["kind"], made["metadata"]["name"], made["metadata"]["namespace"]) == (
        kind.kind,
        "one",
        namespace,
    )
    assert set(managers(made)) == {"console"}
    assert api.get(kind.path(namespace, "one")).ok()["metadata"]["uid"] == made["metadata"]["uid"]


def test_applying_to_one_object_of_old_does_not_create_another(api: Api, namespace: str) -> None:
    path, intent = CONFIGMAPS.path(namespace, "one"), sample(CONFIGMAPS, "one")
    intent["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    refusal = api.apply(path, intent).expect_refusal(409, "Conflict")
    assert "no existing object was found" in refusal["message"]
    del intent["metadata"]["uid"]
    intent["metadata"]["resourceVersion"] = "7"
    api.apply(path, intent).ok(201)


def test_an_object_of_the_cluster_can_be_applied(api: Api, unique: str) -> None:
    path = QUEUES.path(name=unique)
    made = api.apply(path, sample(QUEUES, unique)).ok(201)
    api.delete(path).ok()
    assert made["spec"]["displayName"] == "a queue"


def test_applying_the_same_again_changes_nothing(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace, "job")
    made = api.apply(path, pytorchjob()).ok(201)
    again = api.apply(path, pytorchjob()).ok(200)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_applying_a_change_makes_it(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace, "job")
    api.apply(path, with_workers(3)).ok(201)
    changed = api.apply(path, with_workers(5)).ok()
    assert changed["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 5
    assert changed["metadata"]["generation"] == 2


def test_the_body_may_be_yaml(api: Api, namespace: str) -> None:
    text = yaml.safe_dump(configmap("cm", key="value")).encode()
    made = api.request(
        "PATCH", CONFIGMAPS.path(namespace, "cm"), text, content_type=APPLY, fieldManager="console"
    ).ok(201)
    assert made["data"] == {"key": "value"}


def test_a_field_of_somebody_else_is_a_conflict(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace, "job")
    api.apply(path, with_workers(3)).ok(201)
    refusal = api.apply(path, with_workers(5), manager="other").expect_refusal(409, "Conflict")
    assert refusal["message"] == f'Apply failed with 1 conflict: conflict with "console": {WORKERS}'
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "console"',
        "field": WORKERS,
    }
    assert refusal["details"] == {"causes": [cause]}
    assert api.get(path).ok()["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 3


def test_force_takes_the_field_over(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace, "job")
    api.apply(path, with_workers(3)).ok(201)
    taken = api.apply(path, with_workers(5), manager="other", force="true").ok()
    assert taken["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 5
    owner = {name: workers_owned(entry) for name, entry in managers(taken).items()}
    assert owner == {"console": False, "other": True}


def workers_owned(entry: Object) -> bool:
    return "f:replicas" in entry["fieldsV1"]["f:spec"]["f:pytorchReplicaSpecs"]["f:Worker"]


def test_a_field_written_by_an_update_is_a_conflict_too(api: Api, namespace: str) -> None:
    create(api, CONFIGMAPS, namespace, configmap("cm", a="1"))
    refusal = api.apply(CONFIGMAPS.path(namespace, "cm"), configmap("cm", a="2")).expect_refusal(
        409, "Conflict"
    )
    (cause,) = refusal["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.a")


def test_the_same_value_is_shared(api: Api, namespace: str) -> None:
    path = CONFIGMAPS.path(namespace, "cm")
    api.apply(path, configmap("cm", a="1")).ok(201)
    shared = api.apply(path, configmap("cm", a="1"), manager="other").ok()
    assert set(managers(shared)) == {"console", "other"}


def test_what_a_manager_no_longer_applies_goes(api: Api, namespace: str) -> None:
    path = CONFIGMAPS.path(namespace, "cm")
    api.apply(path, configmap("cm", a="1", b="2")).ok(201)
    assert api.apply(path, configmap("cm", a="1")).ok()["data"] == {"a": "1"}


def test_what_another_manager_holds_as_well_stays(api: Api, namespace: str) -> None:
    path = CONFIGMAPS.path(namespace, "cm")
    api.apply(path, configmap("cm", a="1", b="2")).ok(201)
    api.apply(path, configmap("cm", b="2"), manager="other").ok()
    assert api.apply(path, configmap("cm", a="1")).ok()["data"] == {"a": "1", "b": "2"}


def test_what_others_wrote_is_left_alone(api: Api, namespace: str) -> None:
    path = CONFIGMAPS.path(namespace, "cm")
    api.apply(path, configmap("cm", a="1")).ok(201)
    api.patch(path, {"data": {"mine": "kept"}}).ok()
    assert api.apply(path, configmap("cm", a="2")).ok()["data"] == {"a": "2", "mine": "kept"}


def test_a_label_no_longer_applied_goes(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace, "job")
    api.apply(path, pytorchjob("job", labels={"team": "a", "stage": "b"})).ok(201)
    assert api.apply(path, pytorchjob("job", labels={"team": "a"})).ok()["metadata"]["labels"] == {
        "team": "a"
    }


def test_ports_are_owned_one_by_one(api: Api, namespace: str) -> None:
    path = SERVICES.path(namespace, "svc")
    first, second = sample(SERVICES, "svc"), sample(SERVICES, "svc")
    second["spec"]["ports"] = [{"name": "second", "port": 80}]
    api.apply(path, first).ok(201)
    both = api.apply(path, second, manager="other").ok()
    assert {port["port"] for port in both["spec"]["ports"]} == {23456, 80}
    first["spec"]["ports"] = [{"name": "renamed", "port": 23456}]
    assert {port["name"] for port in api.apply(path, first).ok()["spec"]["ports"]} == {
        "renamed",
        "second",
    }


def test_an_apply_needs_a_field_manager(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace, "job")
    refusal = api.apply(path, pytorchjob(), fieldManager=None).expect_refusal(422, "Invalid")
    assert refusal["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
        "apply patch"
    )
    cause = {
        "reason": "FieldValueRequired",
        "message": "Required value: is required for apply patch",
        "field": "fieldManager",
    }
    assert refusal["details"] == {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause]}


def test_an_apply_may_not_say_who_owns_what(api: Api, namespace: str) -> None:
    made = api.apply(CONFIGMAPS.path(namespace, "cm"), configmap()).ok(201)
    body = configmap()
    body["metadata"]["managedFields"] = made["metadata"]["managedFields"]
    refusal = api.apply(CONFIGMAPS.path(namespace, "cm"), body).expect_refusal(400, "BadRequest")
    assert "metadata.managedFields must be nil" in refusal["message"]


def test_the_name_in_an_apply_is_the_one_of_the_path(api: Api, namespace: str) -> None:
    api.apply(CONFIGMAPS.path(namespace, "a"), configmap("b")).expect_refusal(400, "BadRequest")


def test_applying_a_dry_run_stores_nothing(api: Api, namespace: str) -> None:
    path = CONFIGMAPS.path(namespace, "cm")
    api.apply(path, configmap(), dryRun="All").ok(201)
    api.get(path).expect_refusal(404, "NotFound")


@pytest.mark.parametrize(
    ("kind", "change", "given"),
    [
        (CONFIGMAPS, {"kind": "Secret"}, "/v1, Kind=Secret"),
        (CONFIGMAPS, {"apiVersion": "v2"}, "/v2, Kind=ConfigMap"),
        (PYTORCHJOBS, {"kind": "TFJob", "unknown": 1}, "kubeflow.org/v1, Kind=TFJob"),
        (PYTORCHJOBS, {"apiVersion": "kubeflow.org/v2"}, "kubeflow.org/v2, Kind=PyTorchJob"),
    ],
)
def test_applying_another_kind_or_version_is_refused(
    api: Api, namespace: str, kind: Kind, change: Object, given: str
) -> None:
    path = kind.path(namespace, "one")
    refusal = api.apply(path, sample(kind, "one") | change).expect_refusal(400, "BadRequest")
    assert f"invalid object type: {given}" in refusal["message"]
    api.get(path).expect_refusal(404, "NotFound")


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
def test_applying_unknown_fields_is_refused(api: Api, namespace: str, validation: str) -> None:
    # The server merges by its schema: it cannot drop what that has not.
    path, obj = PYTORCHJOBS.path(namespace, "job"), pytorchjob()
    obj["spec"]["unknownField"] = 1
    answer = api.apply(path, obj, fieldValidation=validation)
    assert answer.status == 500
    assert answer.json()["message"] == (
        f"failed to create typed patch object ({namespace}/job; kubeflow.org/v1, Kind=PyTorchJob): "
        ".spec.unknownField: field not declared in schema"
    )
    api.get(path).expect_refusal(404, "NotFound")
    obj = configmap() | {"dada": {}}
    obj["metadata"]["label"] = {"a": "b"}
    message = api.apply(CONFIGMAPS.path(namespace, "cm"), obj).json()["message"]
    assert f"({namespace}/cm; /v1, Kind=ConfigMap): errors:\n  ." in message
    for field in ("dada", "metadata.label"):
        assert f".{field}: field not declared in schema" in message

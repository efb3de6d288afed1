"""Creating, reading and replacing objects of every kind that Muster uses."""

import base64
import re
from collections.abc import Callable, Sequence

import pytest

from tests.conformance.api import JSON_PATCH, STRATEGIC, Answer, Api
from tests.conformance.samples import (
    CONFIGMAPS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PYTORCHJOBS,
    QUEUES,
    SECRETS,
    SERVICES,
    Kind,
    configmap,
    create,
    create_pod,
    lease,
    names,
    pod,
    pytorchjob,
    sample,
    secret,
    without_bookkeeping,
)

NAMESPACED = [CONFIGMAPS, SECRETS, SERVICES, LEASES, JOBS, PODS, PYTORCHJOBS, PODGROUPS]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RANDOM = "[bcdfghjklmnpqrstvwxz2456789]{5}"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def plural(kind: Kind) -> str:
    return kind.plural


@pytest.mark.parametrize("kind", NAMESPACED, ids=plural)
def test_a_created_object_gets_its_metadata(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    assert (made["apiVersion"], made["kind"]) == (kind.api_version, kind.kind)
    meta = made["metadata"]
    assert (meta["name"], meta["namespace"]) == ("one", namespace)
    assert UUID.fullmatch(meta["uid"])
    assert TIME.fullmatch(meta["creationTimestamp"])
    assert int(meta["resourceVersion"]) > 0


@pytest.mark.parametrize("kind", NAMESPACED, ids=plural)
def test_what_was_created_is_what_is_read(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    read = api.get(kind.path(namespace, "one")).ok()
    assert without_bookkeeping(read) == without_bookkeeping(made)


@pytest.mark.parametrize("kind", NAMESPACED, ids=plural)
def test_a_created_object_is_in_the_lists(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, sample(kind, "one"))
    listing = api.get(kind.path(namespace)).ok()
    assert (listing["apiVersion"], listing["kind"]) == (kind.api_version, f"{kind.kind}List")
    assert "one" in names(listing)
    everywhere = api.get(kind.path(), fieldSelector=f"metadata.namespace={namespace}").ok()
    assert "one" in names(everywhere)
    assert {item["metadata"]["namespace"] for item in everywhere["items"]} == {namespace}


@pytest.mark.parametrize("kind", NAMESPACED, ids=plural)
def test_a_label_can_be_put_on_and_taken_off(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, sample(kind, "one"))
    path = kind.path(namespace, "one")
    labelled = api.patch(path, {"metadata": {"labels": {"stage": "a"}}}).ok()
    assert labelled["metadata"]["labels"]["stage"] == "a"
    cleared = api.patch(path, {"metadata": {"labels": {"stage": None}}}).ok()
    assert "stage" not in cleared["metadata"].get("labels", {})


@pytest.mark.parametrize(
    "kind", [CONFIGMAPS, SECRETS, SERVICES, LEASES, PODS, PYTORCHJOBS], ids=plural
)
def test_a_replaced_object_keeps_its_identity(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    made["metadata"]["annotations"] = {"note": "replaced"}
    replaced = api.put(kind.path(namespace, "one"), made).ok()
    assert replaced["metadata"]["annotations"]["note"] == "replaced"
    for field in ("uid", "creationTimestamp", "name"):
        assert replaced["metadata"][field] == made["metadata"][field]
    assert int(replaced["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


@pytest.mark.parametrize("kind", [CONFIGMAPS, LEASES, PYTORCHJOBS], ids=plural)
def test_a_stale_replacement_is_a_conflict(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    path = kind.path(namespace, "one")
    api.patch(path, {"metadata": {"labels": {"a": "b"}}}).ok()
    refusal = api.put(path, made).expect_refusal(409, "Conflict")
    assert refusal["message"] == (
        f'Operation cannot be fulfilled on {kind.qualified} "one": '
        "the object has been modified; please apply your changes to the latest version and try "
        "again"
    )
    assert refusal["details"] == kind.details("one")


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_replacing_with_the_same_changes_nothing(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    same = api.put(kind.path(namespace, "one"), made).ok()
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_new_object_has_no_version(api: Api, namespace: str, kind: Kind) -> None:
    made = sample(kind, "one")
    made["metadata"]["resourceVersion"] = "7"
    answer = api.post(kind.path(namespace), made)
    assert (answer.status, answer.json()["message"]) == (
        500,
        "resourceVersion should not be set on objects to be created",
    )
    api.get(kind.path(namespace, "one")).expect_refusal(404, "NotFound")
    made["metadata"]["resourceVersion"] = "0"
    api.post(kind.path(namespace), made).ok(201)


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_missing_namespace_and_a_bad_name_come_before_the_version_of_what_is_new(
    api: Api, namespace: str, unique: str, kind: Kind
) -> None:
    made = sample(kind, "one")
    made["metadata"]["resourceVersion"] = "7"
    refusal = api.post(kind.path(unique), made).expect_refusal(404, "NotFound")
    assert refusal["message"] == f'namespaces "{unique}" not found'
    made["metadata"]["name"] = "Bad_Name"
    api.post(kind.path(namespace), made).expect_refusal(422, "Invalid")


def test_an_event_owns_nothing(api: Api, namespace: str) -> None:
    owned = configmap()
    owner = {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}
    owned["metadata"]["ownerReferences"] = [owner]
    refusal = api.post(CONFIGMAPS.path(namespace), owned).expect_refusal(422, "Invalid")
    assert refusal["message"].endswith("/v1, Kind=Event is disallowed from being an owner")
    [cause] = refusal["details"]["causes"]
    assert cause["field"] == "metadata.ownerReferences"


def test_a_built_in_object_may_be_replaced_without_a_version(api: Api, namespace: str) -> None:
    create(api, CONFIGMAPS, namespace, configmap(a="1"))
    replaced = api.put(CONFIGMAPS.path(namespace, "cm"), configmap(a="2")).ok()
    assert replaced["data"] == {"a": "2"}


@pytest.mark.parametrize("kind", [PYTORCHJOBS, LEASES], ids=plural)
def test_custom_objects_and_leases_are_not_replaced_without_a_version(
    api: Api, namespace: str, kind: Kind
) -> None:
    create(api, kind, namespace, sample(kind, "one"))
    refusal = api.put(kind.path(namespace, "one"), sample(kind, "one")).expect_refusal(
        422, "Invalid"
    )
    assert [cause["field"] for cause in refusal["details"]["causes"]] == [
        "metadata.resourceVersion"
    ]
    assert "must be specified for an update" in refusal["message"]


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_replacing_what_is_not_there_is_not_found(api: Api, namespace: str, kind: Kind) -> None:
    refusal = api.put(kind.path(namespace, "one"), sample(kind, "one")).expect_refusal(
        404, "NotFound"
    )
    assert refusal["details"] == kind.details("one")


def test_replacing_somebody_else_of_that_name_is_a_conflict(api: Api, namespace: str) -> None:
    made = create(api, CONFIGMAPS, namespace, configmap())
    made["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    del made["metadata"]["resourceVersion"]
    api.put(CONFIGMAPS.path(namespace, "cm"), made).expect_refusal(409, "Conflict")


def test_the_name_in_a_replacement_is_the_one_of_the_path(api: Api, namespace: str) -> None:
    create(api, CONFIGMAPS, namespace, configmap("a"))
    refusal = api.put(CONFIGMAPS.path(namespace, "a"), configmap("b")).expect_refusal(
        400, "BadRequest"
    )
    assert refusal["message"] == "the name of the object (b) does not match the name on the URL (a)"


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_name_is_generated_from_its_beginning(api: Api, namespace: str, kind: Kind) -> None:
    obj = sample(kind, "")
    obj["metadata"] = {"name": None, "generateName": "gen-"}
    meta = api.post(kind.path(namespace), obj).ok(201)["metadata"]
    assert re.fullmatch(f"gen-{RANDOM}", meta["name"])
    assert meta["generateName"] == "gen-"


def test_a_long_beginning_is_cut_so_that_the_name_fits_a_label(api: Api, namespace: str) -> None:
    obj = configmap() | {"metadata": {"generateName": "a" * 80}}
    name = api.post(CONFIGMAPS.path(namespace), obj).ok(201)["metadata"]["name"]
    assert re.fullmatch("a{58}" + RANDOM, name)


def test_identity_and_times_are_the_servers_to_give(api: Api, namespace: str) -> None:
    obj = configmap()
    obj["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
    }
    meta = api.post(CONFIGMAPS.path(namespace), obj).ok(201)["metadata"]
    assert UUID.fullmatch(meta["uid"])
    assert not meta["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in meta


def test_a_written_secret_text_comes_back_encoded(api: Api, namespace: str) -> None:
    obj = secret() | {"stringData": {"plain": "text"}}
    made = api.post(SECRETS.path(namespace), obj).ok(201)
    assert "stringData" not in made
    assert base64.b64decode(made["data"]["plain"]) == b"text"
    assert made["data"]["token"] == obj["data"]["token"]


def test_a_secret_without_a_type_is_opaque(api: Api, namespace: str) -> None:
    obj = secret()
    del obj["type"]
    assert api.post(SECRETS.path(namespace), obj).ok(201)["type"] == "Opaque"


def test_a_new_namespace_is_active(api: Api, unique: str) -> None:
    made = api.post(NAMESPACES.path(), {"metadata": {"name": unique}}).ok(201)
    api.delete(NAMESPACES.path(name=unique))
    assert (made["kind"], made["metadata"]["labels"]["kubernetes.io/metadata.name"]) == (
        "Namespace",
        unique,
    )
    assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


def test_the_default_namespace_is_there(api: Api) -> None:
    assert {"default", "kube-system"} <= set(names(api.get(NAMESPACES.path()).ok()))


def test_nodes_tell_their_size_and_whether_they_are_ready(api: Api) -> None:
    for node in api.get(NODES.path()).ok()["items"]:
        assert {"cpu", "memory", "pods"} <= set(node["status"]["allocatable"])
        assert "Ready" in [condition["type"] for condition in node["status"]["conditions"]]
        assert "namespace" not in node["metadata"]


def test_a_queue_belongs_to_the_cluster(api: Api, unique: str) -> None:
    made = api.post(QUEUES.path(), sample(QUEUES, unique)).ok(201)
    read = api.get(QUEUES.path(name=unique)).ok()
    api.delete(QUEUES.path(name=unique)).ok()
    assert "namespace" not in made["metadata"]
    assert without_bookkeeping(read)["spec"] == made["spec"]


def test_the_spec_of_a_custom_object_counts_generations(api: Api, namespace: str) -> None:
    assert create(api, PYTORCHJOBS, namespace, pytorchjob())["metadata"]["generation"] == 1
    path = PYTORCHJOBS.path(namespace, "job")
    assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}).ok()["metadata"]["generation"] == 1
    assert (
        api.patch(path, {"spec": {"runPolicy": {"suspend": True}}}).ok()["metadata"]["generation"]
        == 2
    )
    assert (
        api.patch(f"{path}/status", {"status": {"startTime": "2026-01-01T00:00:00Z"}}).ok()[
            "metadata"
        ]["generation"]
        == 2
    )


@pytest.mark.parametrize("kind", [PYTORCHJOBS, PODGROUPS], ids=plural)
def test_the_status_of_a_new_custom_object_is_dropped(api: Api, namespace: str, kind: Kind) -> None:
    obj = sample(kind, "one") | {"status": {"conditions": [{"type": "Made", "status": "True"}]}}
    made = api.post(kind.path(namespace), obj).ok(201)
    assert "status" not in made


def test_the_status_is_not_written_through_the_object(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job")
    api.patch(f"{path}/status", {"status": {"startTime": "2026-01-01T00:00:00Z"}}).ok()
    both = {
        "status": {"startTime": None, "completionTime": "2026-01-02T00:00:00Z"},
        "spec": {"runPolicy": {"suspend": True}},
    }
    patched = api.patch(path, both).ok()
    assert patched["status"] == {"startTime": "2026-01-01T00:00:00Z"}
    assert patched["spec"]["runPolicy"]["suspend"] is True


def test_only_the_status_is_written_through_the_status(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job", "status")
    everything = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"runPolicy": {"suspend": True}},
        "status": {"startTime": "2026-01-01T00:00:00Z"},
    }
    patched = api.patch(path, everything).ok()
    assert patched["status"] == {"startTime": "2026-01-01T00:00:00Z"}
    assert patched["spec"]["runPolicy"]["suspend"] is False
    assert "labels" not in patched["metadata"]


def test_a_status_can_be_replaced_and_read_alone(api: Api, namespace: str) -> None:
    made = create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job", "status")
    made["status"] = {"replicaStatuses": {"Worker": {"active": 3}}}
    replaced = api.put(path, made).ok()
    assert replaced["status"] == made["status"]
    assert api.get(path).ok() == replaced


def test_a_pod_status_is_written_through_the_status(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    patched = api.patch(PODS.path(namespace, "pod", "status"), {"status": {"message": "seen"}}).ok()
    assert patched["status"]["message"] == "seen"
    patched = api.patch(PODS.path(namespace, "pod"), {"status": {"message": "lost"}}).ok()
    assert patched["status"]["message"] == "seen"


def test_writes_are_attributed_to_their_field_manager(api: Api, namespace: str) -> None:
    made = api.post(CONFIGMAPS.path(namespace), configmap(), fieldManager="console").ok(201)
    entry = made["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["fieldsType"]) == (
        "console",
        "Update",
        "FieldsV1",
    )
    assert "f:key" in entry["fieldsV1"]["f:data"]


@pytest.mark.parametrize("sent", [[{}], []])
def test_one_empty_entry_or_none_forgets_who_wrote_what(
    api: Api, namespace: str, sent: list[object]
) -> None:
    made = create(api, CONFIGMAPS, namespace, configmap())
    path = CONFIGMAPS.path(namespace, configmap()["metadata"]["name"])
    replace = {"op": "replace", "path": "/metadata/managedFields", "value": sent}
    ways: Sequence[Callable[[], Answer]] = (
        lambda: api.patch(path, {"metadata": {"managedFields": sent}}),
        lambda: api.patch(path, {"metadata": {"managedFields": sent}}, STRATEGIC),
        lambda: api.patch(path, [replace], JSON_PATCH),
        lambda: api.put(
            path,
            configmap() | {"metadata": {"name": made["metadata"]["name"], "managedFields": sent}},
        ),
    )
    for forget in ways:
        assert "managedFields" not in forget().ok()["metadata"]
        assert (
            "managedFields"
            in api.apply(
                path, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"more": "1"}}
            ).ok()["metadata"]
        )


def test_an_empty_list_of_writers_says_nothing_of_a_custom_object(api: Api, namespace: str) -> None:
    made = create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, made["metadata"]["name"])
    assert (
        api.patch(path, {"metadata": {"managedFields": []}}).ok()["metadata"]["managedFields"]
        == made["metadata"]["managedFields"]
    )


@pytest.mark.parametrize("sent", [None, [{"manager": "x", "operation": "Sometimes"}]])
def test_a_record_of_writes_that_makes_no_sense_is_not_taken_over(
    api: Api, namespace: str, sent: object
) -> None:
    made = create(api, CONFIGMAPS, namespace, configmap())
    path = CONFIGMAPS.path(namespace, configmap()["metadata"]["name"])
    assert (
        api.patch(path, {"metadata": {"managedFields": sent}}).ok()["metadata"]["managedFields"]
        == made["metadata"]["managedFields"]
    )


def test_resource_versions_rise_over_all_objects_of_a_kind(api: Api, namespace: str) -> None:
    versions = [
        int(create(api, LEASES, namespace, lease(f"l{n}"))["metadata"]["resourceVersion"])
        for n in range(3)
    ]
    listed = int(api.get(LEASES.path(namespace)).ok()["metadata"]["resourceVersion"])
    assert versions == sorted(set(versions))
    assert listed >= versions[-1]

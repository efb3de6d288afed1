"""dryRun=All: the answer of the real request, and nothing of it stored."""

import pytest

from tests.conformance.api import Api
from tests.conformance.samples import (
    CONFIGMAPS,
    LEASES,
    PODS,
    PYTORCHJOBS,
    Kind,
    configmap,
    create,
    frame_summary,
    lease,
    names,
    pod,
    pytorchjob,
    sample,
)

EVERY = pytest.mark.parametrize(
    "kind", [CONFIGMAPS, LEASES, PODS, PYTORCHJOBS], ids=lambda kind: kind.plural
)


@EVERY
def test_a_dry_creation_answers_and_stores_nothing(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, sample(kind, "first"))
    made = api.post(kind.path(namespace), sample(kind, "dry"), dryRun="All").ok(201)
    assert made["metadata"]["name"] == "dry"
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    api.get(kind.path(namespace, "dry")).expect_refusal(404, "NotFound")
    api.post(kind.path(namespace), sample(kind, "dry")).ok(201)


def test_a_dry_creation_is_defaulted_like_a_real_one(api: Api, pods_namespace: str) -> None:
    made = api.post(PODS.path(pods_namespace), pod("dry"), dryRun="All").ok(201)
    assert made["spec"]["dnsPolicy"] == "ClusterFirst"
    assert made["status"]["phase"] == "Pending"


def test_a_dry_creation_is_refused_like_a_real_one(api: Api, namespace: str, unique: str) -> None:
    create(api, CONFIGMAPS, namespace, configmap())
    api.post(CONFIGMAPS.path(namespace), configmap(), dryRun="All").expect_refusal(
        409, "AlreadyExists"
    )
    api.post(CONFIGMAPS.path(namespace), configmap("Bad_Name"), dryRun="All").expect_refusal(
        422, "Invalid"
    )
    api.post(CONFIGMAPS.path(unique), configmap(), dryRun="All").expect_refusal(404, "NotFound")


@EVERY
def test_a_dry_patch_answers_and_stores_nothing(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, sample(kind, "one"))
    path = kind.path(namespace, "one")
    before = api.get(path).ok()
    patched = api.patch(path, {"metadata": {"labels": {"dry": "yes"}}}, dryRun="All").ok()
    assert patched["metadata"]["labels"]["dry"] == "yes"
    assert api.get(path).ok() == before


def test_a_dry_replacement_answers_and_stores_nothing(api: Api, namespace: str) -> None:
    made = create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job")
    made["spec"]["runPolicy"]["suspend"] = True
    assert api.put(path, made, dryRun="All").ok()["spec"]["runPolicy"]["suspend"] is True
    stored = api.get(path).ok()
    assert stored["spec"]["runPolicy"]["suspend"] is False
    assert stored["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@EVERY
def test_a_dry_deletion_leaves_the_object(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, sample(kind, "one"))
    path = kind.path(namespace, "one")
    before = api.get(path).ok()
    api.delete(path, dryRun="All").ok()
    assert api.get(path).ok() == before


def test_a_dry_deletion_answers_like_a_real_one(api: Api, namespace: str) -> None:
    made = create(api, PYTORCHJOBS, namespace, pytorchjob())
    answer = api.delete(PYTORCHJOBS.path(namespace, "job"), dryRun="All").ok()
    details = PYTORCHJOBS.details("job") | {"uid": made["metadata"]["uid"]}
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
    api.delete(PYTORCHJOBS.path(namespace, "nope"), dryRun="All").expect_refusal(404, "NotFound")


def test_the_option_of_a_deletion_may_be_in_its_body(api: Api, namespace: str) -> None:
    create(api, LEASES, namespace, lease("one"))
    api.delete(LEASES.path(namespace, "one"), {"dryRun": ["All"]}).ok()
    api.get(LEASES.path(namespace, "one")).ok()


def test_a_dry_deletion_of_a_collection_leaves_it(api: Api, namespace: str) -> None:
    for name in ("a", "b"):
        create(api, LEASES, namespace, lease(name))
    api.delete(LEASES.path(namespace), dryRun="All").ok()
    assert names(api.get(LEASES.path(namespace)).ok()) == ["a", "b"]


def test_nothing_dry_is_watched(api: Api, namespace: str) -> None:
    path = LEASES.path(namespace)
    version = api.get(path).ok()["metadata"]["resourceVersion"]
    with api.watch(path, resourceVersion=version) as watch:
        api.post(path, lease("dry"), dryRun="All").ok(201)
        create(api, LEASES, namespace, lease("wet"))
        api.delete(f"{path}/wet", dryRun="All").ok()
        api.delete(f"{path}/wet").ok()
        assert [frame_summary(frame) for frame in watch.next_frames(2)] == [
            ("ADDED", "wet"),
            ("DELETED", "wet"),
        ]


def test_a_namespace_can_be_made_dry(api: Api, unique: str) -> None:
    api.post("/api/v1/namespaces", {"metadata": {"name": unique}}, dryRun="All").ok(201)
    api.get(f"/api/v1/namespaces/{unique}").expect_refusal(404, "NotFound")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_all_is_the_only_way_to_be_dry(api: Api, namespace: str, method: str) -> None:
    path = LEASES.path(namespace) if method == "POST" else LEASES.path(namespace, "one")
    refusal = api.request(
        method, path, lease("one") if method == "POST" else None, dryRun="Some"
    ).expect_refusal(422, "Invalid")
    assert {cause["field"].split("[")[0] for cause in refusal["details"]["causes"]} == {"dryRun"}

"""Deleting: what is answered, what waits for whom, and who goes along."""

import pytest

from tests.conformance.api import Api, Object, eventually
from tests.conformance.samples import (
    CONFIGMAPS,
    JOBS,
    LEASES,
    NAMESPACES,
    PODS,
    PYTORCHJOBS,
    SECRETS,
    SERVICES,
    Kind,
    configmap,
    create,
    create_pod,
    job,
    lease,
    names,
    pod,
    pytorchjob,
    sample,
    stray_pod,
)

HOLD = "example.com/hold"
SETTLING = 300.0
"""Seconds that controllers may need: those of a real cluster finish the namespaces of all earlier
tests meanwhile.
"""
JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


def plural(kind: Kind) -> str:
    return kind.plural


def build_held(kind: Kind, name: str = "one") -> Object:
    obj = sample(kind, name)
    obj["metadata"]["finalizers"] = [HOLD]
    return obj


def release(api: Api, path: str) -> None:
    api.patch(path, {"metadata": {"finalizers": None}}).ok()


@pytest.mark.parametrize("kind", [CONFIGMAPS, SECRETS, LEASES, PYTORCHJOBS], ids=plural)
@pytest.mark.parametrize(
    "options", [None, {"propagationPolicy": "Background"}, {}], ids=["plain", "background", "empty"]
)
def test_a_deletion_answers_what_was_deleted(
    api: Api, namespace: str, kind: Kind, options: Object | None
) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    answer = api.delete(kind.path(namespace, "one"), options).ok()
    details = kind.details("one") | {"uid": made["metadata"]["uid"]}
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
    api.get(kind.path(namespace, "one")).expect_refusal(404, "NotFound")


@pytest.mark.parametrize("kind", [PODS, SERVICES], ids=plural)
def test_some_kinds_answer_the_deleted_object(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    answer = api.delete(kind.path(namespace, "one")).ok()
    assert (answer["kind"], answer["metadata"]["uid"]) == (kind.kind, made["metadata"]["uid"])
    api.get(kind.path(namespace, "one")).expect_refusal(404, "NotFound")


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_deleting_twice_is_not_found(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, sample(kind, "one"))
    api.delete(kind.path(namespace, "one")).ok()
    refusal = api.delete(kind.path(namespace, "one")).expect_refusal(404, "NotFound")
    assert refusal["message"] == f'{kind.qualified} "one" not found'
    assert refusal["details"] == kind.details("one")


def test_the_policy_can_be_a_parameter(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob())
    assert (
        api.delete(PYTORCHJOBS.path(namespace, "job"), propagationPolicy="Background").ok()[
            "status"
        ]
        == "Success"
    )


def test_a_policy_that_is_none_is_refused(api: Api, namespace: str) -> None:
    create(api, CONFIGMAPS, namespace, configmap())
    refusal = api.delete(
        CONFIGMAPS.path(namespace, "cm"), {"propagationPolicy": "Sometimes"}
    ).expect_refusal(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["propagationPolicy"]


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_body_of_another_kind_deletes_nothing(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace, "one")
    create(api, kind, namespace, sample(kind, "one"))
    answer = api.request("DELETE", path, {"kind": "Pod", "apiVersion": "v1"})
    # A real server cannot convert the body, and calls that an error of its own.
    assert answer.status in (400, 500)
    assert "deletionTimestamp" not in api.get(path).ok()["metadata"]


def test_the_options_may_be_of_any_group(api: Api, namespace: str) -> None:
    create(api, CONFIGMAPS, namespace, configmap())
    options = {"kind": "DeleteOptions", "apiVersion": "apps/v1"}
    api.request("DELETE", CONFIGMAPS.path(namespace, "cm"), options).ok()


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_finalizer_holds_the_object(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, build_held(kind))
    path = kind.path(namespace, "one")
    meta = api.delete(path).ok()["metadata"]
    assert meta["deletionTimestamp"].endswith("Z")
    assert (meta["deletionGracePeriodSeconds"], meta["finalizers"]) == (0, [HOLD])
    assert api.get(path).ok()["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]
    assert api.delete(path).ok()["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]
    release(api, path)
    api.get(path).expect_refusal(404, "NotFound")


def test_a_deletion_of_a_held_job_counts_as_a_generation(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, build_held(PYTORCHJOBS))
    path = PYTORCHJOBS.path(namespace, "one")
    assert api.delete(path).ok()["metadata"]["generation"] == 2
    release(api, path)


def test_no_finalizer_is_added_to_what_is_being_deleted(api: Api, namespace: str) -> None:
    create(api, CONFIGMAPS, namespace, build_held(CONFIGMAPS))
    path = CONFIGMAPS.path(namespace, "one")
    api.delete(path).ok()
    refusal = api.patch(
        path, {"metadata": {"finalizers": [HOLD, "example.com/late"]}}
    ).expect_refusal(422, "Invalid")
    assert {cause["field"] for cause in refusal["details"]["causes"]} == {"metadata.finalizers"}
    release(api, path)


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_name_is_taken_until_its_object_is_gone(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, build_held(kind))
    path = kind.path(namespace, "one")
    api.delete(path).ok()
    refusal = api.post(kind.path(namespace), sample(kind, "one")).expect_refusal(
        409, "AlreadyExists"
    )
    assert refusal["message"] == f'object is being deleted: {kind.qualified} "one" already exists'
    assert refusal["details"] == kind.details("one")
    release(api, path)
    create(api, kind, namespace, sample(kind, "one"))


@pytest.mark.parametrize(
    ("kind", "word"),
    [(CONFIGMAPS, "ConfigMap"), (PYTORCHJOBS, "PyTorchJob.kubeflow.org")],
    ids=["core", "custom"],
)
def test_a_namesake_is_not_deleted(api: Api, namespace: str, kind: Kind, word: str) -> None:
    uid = create(api, kind, namespace, sample(kind, "one"))["metadata"]["uid"]
    other = "00000000-0000-0000-0000-000000000000"
    refusal = api.delete(
        kind.path(namespace, "one"), {"preconditions": {"uid": other}}
    ).expect_refusal(409, "Conflict")
    assert refusal["message"] == (
        f'Operation cannot be fulfilled on {word} "one": the UID in the precondition ({other}) '
        f"does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated"
    )
    assert refusal["details"] == kind.details("one") | {"kind": kind.kind}
    assert (
        api.delete(kind.path(namespace, "one"), {"preconditions": {"uid": uid}}).ok()["status"]
        == "Success"
    )


def test_a_changed_object_is_not_deleted(api: Api, namespace: str) -> None:
    made = create(api, LEASES, namespace, lease("one"))
    path = LEASES.path(namespace, "one")
    changed = api.patch(path, {"metadata": {"labels": {"a": "b"}}}).ok()
    stale = {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    assert (
        "The object might have been modified"
        in api.delete(path, stale).expect_refusal(409, "Conflict")["message"]
    )
    api.delete(
        path, {"preconditions": {"resourceVersion": changed["metadata"]["resourceVersion"]}}
    ).ok()


def test_a_collection_is_deleted_by_label(api: Api, namespace: str) -> None:
    for name, batch in (("a", "p"), ("b", "p"), ("c", "q")):
        create(api, PYTORCHJOBS, namespace, pytorchjob(name, labels={"batch": batch}))
    deleted = api.delete(PYTORCHJOBS.path(namespace), labelSelector="batch=p").ok()
    assert deleted["kind"] == "PyTorchJobList"
    assert names(deleted) == ["a", "b"]
    assert names(api.get(PYTORCHJOBS.path(namespace)).ok()) == ["c"]


def test_a_whole_collection_can_be_deleted(api: Api, namespace: str) -> None:
    for name in ("a", "b"):
        create(api, LEASES, namespace, lease(name))
    api.delete(LEASES.path(namespace)).ok()
    assert names(api.get(LEASES.path(namespace)).ok()) == []


def test_namespaces_are_not_deleted_together(api: Api) -> None:
    api.delete(NAMESPACES.path(), labelSelector="no=such").expect_refusal(405, "MethodNotAllowed")


@pytest.mark.parametrize("name", ["default", "kube-public", "kube-system"])
def test_a_namespace_that_every_cluster_has_is_not_deleted(api: Api, name: str) -> None:
    refusal = api.delete(NAMESPACES.path(name=name)).expect_refusal(403, "Forbidden")
    assert (
        refusal["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    )


def test_a_pod_without_a_node_goes_at_once(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    api.delete(PODS.path(namespace, "pod")).ok()
    api.get(PODS.path(namespace, "pod")).expect_refusal(404, "NotFound")


def test_a_pod_with_a_node_is_given_its_grace_period(api: Api, namespace: str) -> None:
    made = create_pod(api, namespace, stray_pod())
    path = PODS.path(namespace, "pod")
    deleted = api.delete(path).ok()
    assert (deleted["kind"], deleted["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 30)
    assert deleted["metadata"]["deletionTimestamp"] > made["metadata"]["creationTimestamp"]
    assert (
        api.get(path).ok()["metadata"]["deletionTimestamp"]
        == deleted["metadata"]["deletionTimestamp"]
    )
    api.delete(path, {"gracePeriodSeconds": 0}).ok()
    api.get(path).expect_refusal(404, "NotFound")


def test_a_grace_period_can_be_shortened(api: Api, namespace: str) -> None:
    create_pod(api, namespace, stray_pod())
    path = PODS.path(namespace, "pod")
    first = api.delete(path).ok()["metadata"]
    shorter = api.delete(path, gracePeriodSeconds=5).ok()["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    assert shorter["deletionTimestamp"] < first["deletionTimestamp"]
    api.delete(path, gracePeriodSeconds=0).ok()


def test_a_namespace_comes_back_terminating(api: Api, namespace: str) -> None:
    deleted = api.delete(NAMESPACES.path(name=namespace)).ok()
    assert deleted["kind"] == "Namespace"
    assert deleted["status"]["phase"] == "Terminating"
    assert deleted["metadata"]["deletionTimestamp"]


def test_nothing_new_is_made_in_a_terminating_namespace(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, build_held(PYTORCHJOBS))
    api.delete(NAMESPACES.path(name=namespace)).ok()
    refusal = api.post(PYTORCHJOBS.path(namespace), pytorchjob("late")).expect_refusal(
        403, "Forbidden"
    )
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    assert refusal["message"] == f'pytorchjobs.kubeflow.org "late" is forbidden: {why}'
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    assert refusal["details"] == PYTORCHJOBS.details("late") | {"causes": [cause]}
    release(api, PYTORCHJOBS.path(namespace, "one"))


def test_foreground_and_orphan_answer_the_waiting_object(api: Api, namespace: str) -> None:
    for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
        create(api, PYTORCHJOBS, namespace, build_held(PYTORCHJOBS, policy.lower()))
        path = PYTORCHJOBS.path(namespace, policy.lower())
        answer = api.delete(path, {"propagationPolicy": policy}).ok()
        assert (answer["kind"], answer["metadata"]["deletionGracePeriodSeconds"]) == (
            "PyTorchJob",
            0,
        )
        assert set(answer["metadata"]["finalizers"]) == {HOLD, finalizer}
        release(api, path)


def test_a_deleted_batch_job_leaves_its_pods_and_says_so(api: Api, namespace: str) -> None:
    create(api, JOBS, namespace, job("left"))
    answer = api.delete(JOBS.path(namespace, "left"))
    assert answer.ok()["metadata"]["finalizers"] == ["orphan"]
    assert answer.warnings == [JOB_WARNING]
    create(api, JOBS, namespace, job("taken"))
    answer = api.delete(JOBS.path(namespace, "taken"), {"propagationPolicy": "Background"})
    assert (answer.ok()["status"], answer.warnings) == ("Success", [])


def build_owned(name: str, owner: Object, **reference: object) -> Object:
    obj = configmap(name)
    ref = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    obj["metadata"]["ownerReferences"] = [ref | reference]
    return obj


@pytest.fixture
def family(api: Api, namespace: str) -> str:
    """The path of a collection with an owner and one dependent of it that blocks its deletion."""
    owner = create(api, CONFIGMAPS, namespace, configmap("owner"))
    create(
        api,
        CONFIGMAPS,
        namespace,
        build_owned("dependent", owner, blockOwnerDeletion=True, controller=True),
    )
    return CONFIGMAPS.path(namespace)


def is_gone(api: Api, path: str) -> bool:
    return api.get(path).status == 404


@pytest.mark.controllers
def test_dependents_follow_their_owner(api: Api, family: str) -> None:
    api.delete(f"{family}/owner").ok()
    eventually(lambda: is_gone(api, f"{family}/dependent"), within=SETTLING)


@pytest.mark.controllers
def test_a_foreground_deletion_waits_for_the_dependents(api: Api, family: str) -> None:
    api.patch(f"{family}/dependent", {"metadata": {"finalizers": [HOLD]}}).ok()
    api.delete(f"{family}/owner", {"propagationPolicy": "Foreground"}).ok()
    eventually(
        lambda: api.get(f"{family}/dependent").ok()["metadata"].get("deletionTimestamp"),
        within=SETTLING,
    )
    assert api.get(f"{family}/owner").ok()["metadata"]["finalizers"] == ["foregroundDeletion"]
    release(api, f"{family}/dependent")
    eventually(lambda: is_gone(api, f"{family}/owner"), within=SETTLING)


@pytest.mark.controllers
def test_an_orphan_stays_without_an_owner(api: Api, family: str) -> None:
    api.delete(f"{family}/owner", {"propagationPolicy": "Orphan"}).ok()
    eventually(lambda: is_gone(api, f"{family}/owner"), within=SETTLING)
    assert "ownerReferences" not in api.get(f"{family}/dependent").ok()["metadata"]


@pytest.mark.controllers
def test_an_owner_that_never_was_takes_its_dependent_along(api: Api, namespace: str) -> None:
    nobody = {"metadata": {"name": "nobody", "uid": "00000000-0000-0000-0000-000000000001"}}
    create(api, CONFIGMAPS, namespace, build_owned("dependent", nobody))
    eventually(lambda: is_gone(api, CONFIGMAPS.path(namespace, "dependent")), within=SETTLING)


@pytest.mark.controllers
def test_a_deleted_namespace_takes_everything_along(api: Api, namespace: str) -> None:
    create(api, CONFIGMAPS, namespace, configmap())
    create(api, PYTORCHJOBS, namespace, build_held(PYTORCHJOBS))
    api.delete(NAMESPACES.path(name=namespace)).ok()
    eventually(lambda: is_gone(api, CONFIGMAPS.path(namespace, "cm")), within=SETTLING)
    assert api.get(NAMESPACES.path(name=namespace)).ok()["status"]["phase"] == "Terminating"
    release(api, PYTORCHJOBS.path(namespace, "one"))
    eventually(lambda: is_gone(api, NAMESPACES.path(name=namespace)), within=SETTLING)

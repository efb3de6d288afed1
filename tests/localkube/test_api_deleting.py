"""delete, deletecollection and eviction: options from the body or the query, and what comes
back.
"""

from urllib.parse import urlencode

import pytest

from localkube.metadata import Object
from tests.localkube.api_server import Answer, ApiServer, job, pod, uid

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
PODS = "/api/v1/namespaces/team-a/pods"


def test_what_is_gone_at_once_is_answered_with_a_status(api: ApiServer) -> None:
    uid = api.ask("POST", JOBS, job("a")).json["metadata"]["uid"]
    answer = api.ask("DELETE", f"{JOBS}/a")
    details = {"name": "a", "group": "kubeflow.org", "kind": "pytorchjobs", "uid": uid}
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
    assert api.ask("DELETE", f"{JOBS}/a").status == 404


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_what_waits_for_its_dependents_comes_back_itself(
    api: ApiServer, policy: str, finalizer: str
) -> None:
    api.ask("POST", JOBS, job("a"))
    answer = api.ask("DELETE", f"{JOBS}/a", {"propagationPolicy": policy})
    assert answer.json["metadata"]["finalizers"] == [finalizer]
    assert "deletionTimestamp" in answer.json["metadata"]


def test_a_running_pod_gets_its_grace_period(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("p", node="n"))
    assert (
        api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=7").json["metadata"][
            "deletionGracePeriodSeconds"
        ]
        == 7
    )
    assert api.get(f"{PODS}/p").status == 200


@pytest.mark.parametrize(
    ("own_seconds", "query", "seconds"),
    [
        (2**62, "", 10**9),
        (30, f"?gracePeriodSeconds={2**62}", 10**9),
        (-1, "", 1),
        (30, "?gracePeriodSeconds=-1", 1),
    ],
    ids=[
        "the pod asks for longer",
        "the client asks for longer",
        "the pod asks for less than none",
        "the client asks for less than none",
    ],
)
def test_a_grace_period_is_one_that_a_clock_can_show(
    api: ApiServer, own_seconds: int, query: str, seconds: int
) -> None:
    made = pod("p", node="n")
    made["spec"]["terminationGracePeriodSeconds"] = own_seconds
    assert api.ask("POST", PODS, made).status == 201
    answer = api.ask("DELETE", f"{PODS}/p{query}")
    assert answer.status == 200
    assert answer.json["metadata"]["deletionGracePeriodSeconds"] == seconds
    assert api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0").status == 200


def test_a_pod_that_goes_at_once_still_comes_back_itself(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("p", node="n"))
    assert api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}).json["kind"] == "Pod"
    assert api.get(f"{PODS}/p").status == 404


def test_a_dry_run_deletes_nothing(api: ApiServer) -> None:
    api.ask("POST", JOBS, job("a"))
    assert api.ask("DELETE", f"{JOBS}/a?dryRun=All").json["status"] == "Success"
    assert api.ask("DELETE", f"{JOBS}/a", {"dryRun": ["All"]}).json["status"] == "Success"
    assert api.get(f"{JOBS}/a").status == 200


def test_a_precondition_that_does_not_hold_conflicts(api: ApiServer) -> None:
    api.ask("POST", JOBS, job("a"))
    answer = api.ask("DELETE", f"{JOBS}/a", {"preconditions": {"uid": "another"}})
    assert (answer.status, answer.json["details"]["kind"]) == (409, "PyTorchJob")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"propagationPolicy": "Sideways"}, 422),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ({"dryRun": ["Some"]}, 422),
        ({"gracePeriodSeconds": "long"}, 400),
        ({"preconditions": []}, 400),
        ([], 400),
    ],
)
def test_options_that_make_no_sense_are_refused(api: ApiServer, options: object, code: int) -> None:
    api.ask("POST", JOBS, job("a"))
    assert api.ask("DELETE", f"{JOBS}/a", options).status == code
    assert api.get(f"{JOBS}/a").status == 200


def test_a_collection_is_deleted_by_its_selector_and_listed(api: ApiServer) -> None:
    for number in range(150):
        api.ask("POST", JOBS, job(f"p{number:03}", labels={"batch": "p"}))
    api.ask("POST", JOBS, job("kept"))
    answer = api.ask("DELETE", f"{JOBS}?labelSelector=batch%3Dp")
    assert (answer.json["kind"], len(answer.json["items"])) == ("PyTorchJobList", 150)
    assert answer.json["items"][0]["metadata"]["name"] == "p000"
    assert [item["metadata"]["name"] for item in api.get(JOBS).json["items"]] == ["kept"]


def names_of(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json["items"]]


def test_a_collection_is_deleted_page_by_page_past_what_stays(api: ApiServer) -> None:
    for name in "abcde":
        finalizers = ["example.org/wait"] if name < "c" else []
        api.ask("POST", JOBS, job(name, finalizers=finalizers))
    first = api.ask("DELETE", f"{JOBS}?limit=2")
    assert names_of(first) == ["a", "b"]
    assert first.json["metadata"]["remainingItemCount"] == 3
    query = urlencode({"limit": 2, "continue": first.json["metadata"]["continue"]})
    second = api.ask("DELETE", f"{JOBS}?{query}")
    assert names_of(second) == ["c", "d"]
    query = urlencode({"limit": 2, "continue": second.json["metadata"]["continue"]})
    last = api.ask("DELETE", f"{JOBS}?{query}")
    assert (names_of(last), last.json["metadata"].get("continue", "")) == (["e"], "")
    assert names_of(api.get(JOBS)) == ["a", "b"]


def test_a_page_of_a_collection_spares_what_was_made_after_the_first(api: ApiServer) -> None:
    for name in "ac":
        api.ask("POST", JOBS, job(name))
    token = api.ask("DELETE", f"{JOBS}?limit=1").json["metadata"]["continue"]
    for name in "bd":
        api.ask("POST", JOBS, job(name))
    query = urlencode({"continue": token})
    assert names_of(api.ask("DELETE", f"{JOBS}?{query}")) == ["c"]
    assert names_of(api.get(JOBS)) == ["b", "d"]


def test_a_collection_of_a_version_in_the_future_is_not_deleted(api: ApiServer) -> None:
    api.ask("POST", JOBS, job("a"))
    version = int(api.get(JOBS).json["metadata"]["resourceVersion"]) + 1000
    query = urlencode({"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"})
    assert api.ask("DELETE", f"{JOBS}?{query}").status == 504
    assert names_of(api.get(JOBS)) == ["a"]


@pytest.mark.parametrize("path", [f"{JOBS}/a", JOBS], ids=["one", "a collection"])
def test_a_body_that_is_no_delete_options_deletes_nothing(api: ApiServer, path: str) -> None:
    api.ask("POST", JOBS, job("a"))
    answer = api.ask("DELETE", path, {"kind": "Pod", "apiVersion": "v1"})
    assert (answer.status, answer.json["message"]) == (
        400,
        'Pod in version "v1" cannot be handled as a DeleteOptions: the body must be of kind '
        "DeleteOptions",
    )
    assert names_of(api.get(JOBS)) == ["a"]


@pytest.mark.parametrize("version", ["v1", "meta.k8s.io/v1", "kubeflow.org/v1"])
def test_delete_options_of_any_group_delete(api: ApiServer, version: str) -> None:
    api.ask("POST", JOBS, job("a"))
    options = {"kind": "DeleteOptions", "apiVersion": version}
    assert api.ask("DELETE", f"{JOBS}/a", options).status == 200


def test_an_eviction_deletes_a_pod(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("p"))
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "team-a"},
    }
    assert api.ask("POST", f"{PODS}/p/eviction", eviction).status == 201
    assert api.get(f"{PODS}/p").status == 404


def evict(api: ApiServer, name: str, options: Object | None = None, **query: str) -> Answer:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": options,
    }
    return api.ask("POST", f"{PODS}/p/eviction?{urlencode(query)}", eviction)


def test_an_evicted_pod_says_so_until_it_has_ended(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("p", node="localkube"))
    assert evict(api, "p").status == 201
    left = api.get(f"{PODS}/p").json
    assert left["metadata"]["deletionGracePeriodSeconds"] == 30
    (target,) = [c for c in left["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"], target["message"]) == (
        "True",
        "EvictionByEvictionAPI",
        "Eviction API: evicting",
    )


def test_a_dry_run_evicts_nothing(api: ApiServer) -> None:
    made = api.ask("POST", PODS, pod("p", node="localkube")).json
    assert evict(api, "p", dryRun="All").status == 201
    assert evict(api, "p", {"dryRun": ["All"]}).status == 201
    assert api.get(f"{PODS}/p").json == made


def test_an_eviction_keeps_its_preconditions(api: ApiServer) -> None:
    made = api.ask("POST", PODS, pod("p", node="localkube")).json
    for condition in ({"uid": "another"}, {"resourceVersion": "1"}):
        assert evict(api, "p", {"preconditions": condition}).json["reason"] == "Conflict"
    assert api.get(f"{PODS}/p").json == made
    preconditions = {"uid": uid(made), "resourceVersion": made["metadata"]["resourceVersion"]}
    assert evict(api, "p", {"preconditions": preconditions, "gracePeriodSeconds": 7}).status == 201
    assert api.get(f"{PODS}/p").json["metadata"]["deletionGracePeriodSeconds"] == 7


def test_an_eviction_of_another_name_is_refused(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("p"))
    refusal = evict(api, "q")
    assert (refusal.status, refusal.json["message"]) == (
        400,
        "name in URL does not match name in Eviction object",
    )


@pytest.mark.parametrize(
    ("kind", "version"),
    [("Eviction", "foo/v9"), ("Eviction", "v1"), ("Pod", "v1"), ("Eviction", "policy/v1beta2")],
)
def test_what_is_no_eviction_evicts_nobody(api: ApiServer, kind: str, version: str) -> None:
    api.ask("POST", PODS, pod("p"))
    body = {"kind": kind, "apiVersion": version, "metadata": {"name": "p"}}
    answer = api.ask("POST", f"{PODS}/p/eviction", body)
    assert (answer.status, answer.json["message"]) == (
        400,
        f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a Eviction: the '
        "body must be of kind Eviction in policy/v1 or policy/v1beta1",
    )
    assert api.get(f"{PODS}/p").status == 200

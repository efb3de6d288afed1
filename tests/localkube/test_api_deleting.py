"""delete, deletecollection and eviction: options from the body or the query, and what comes
back.
"""

import pytest

from tests.localkube.api_server import ApiServer, job, pod

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


def test_an_eviction_deletes_a_pod(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("p"))
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "team-a"},
    }
    assert api.ask("POST", f"{PODS}/p/eviction", eviction).status == 201
    assert api.get(f"{PODS}/p").status == 404

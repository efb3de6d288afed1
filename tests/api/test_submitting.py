"""Submit, get, stop, run and delete over REST."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.capabilities import Capabilities
from clusters.models import Cluster
from console.errors import UserError
from projects.api.base import LARGEST_BODY
from tests.api.calling import Caller, a_body
from tests.api.submission_bodies import JSON, TUTORIAL
from tests.cast import Cast, a_spec
from workloads import actions, journal
from workloads.models import Workload
from workloads.specs import Framework, decode_spec
from workloads.states import Status

DISTRIBUTED, STANDARD = "/workloads/distributed", "/workloads/trainings"


def end_workload(workload: Workload, status: Status = Status.STOPPED) -> None:
    """As the journal leaves a workload that has come to rest."""
    Workload.objects.filter(pk=workload.pk).update(status=status, ended_at=timezone.now())


def test_the_tutorial_s_curl_opens_a_workload(cast: Cast) -> None:
    ids = {"projectId": str(cast.team_a.pk), "clusterId": str(cast.cluster.pk)}
    answer = Caller(cast.bob)("POST", DISTRIBUTED, TUTORIAL | ids, 202)
    workload = Workload.objects.get()
    assert answer["workloadId"] == str(workload.pk)
    assert (answer["name"], answer["createdBy"], answer["desiredPhase"], answer["actualPhase"]) == (
        "dist-train1",
        "bob",
        "Running",
        "Creating",
    )
    assert decode_spec(workload.spec).pod_count == 3
    assert answer["spec"]["compute"]["gpuPortionRequest"] == 0.1


def test_what_was_submitted_is_shown_as_it_was(cast: Cast) -> None:
    bob, body = Caller(cast.bob), a_body(cast, command="python -c 'print(1)'", backoffLimit=0)
    answer = bob("POST", DISTRIBUTED, body, 202)
    again = bob("GET", f"{DISTRIBUTED}/{answer['workloadId']}")
    assert again == answer
    assert again["spec"].items() >= body["spec"].items()


def test_a_standard_workload_has_its_own_address(cast: Cast) -> None:
    bob, body = (
        Caller(cast.bob),
        a_body(cast) | {"spec": {"image": "python:3.12", "completions": 4, "parallelism": 2}},
    )
    answer = bob("POST", STANDARD, body, 202)
    assert bob("GET", f"{STANDARD}/{answer['workloadId']}")["spec"]["completions"] == 4
    bob("GET", f"{DISTRIBUTED}/{answer['workloadId']}", status=404)
    assert bob("GET", f"/workloads/{answer['workloadId']}")["type"] == "Training"


def test_stop_run_and_delete_are_accepted_and_asked_of_the_journal(cast: Cast) -> None:
    bob = Caller(cast.bob)
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    one = f"{DISTRIBUTED}/{workload.pk}"
    assert bob("POST", f"{one}/suspend", status=202) == {
        "code": 202,
        "message": "train1 is being stopped.",
    }
    assert bob("GET", one)["actualPhase"] == "Stopping"
    assert bob("POST", f"{one}/suspend", status=202)["message"] == (
        "train1 is being stopped already."
    )
    assert "message" in bob("POST", f"{one}/resume", status=409)
    end_workload(workload)
    assert bob("POST", f"{one}/suspend", status=202)["message"] == "train1 was stopped already."
    for message in ("train1 runs again.", "train1 was started already."):
        assert bob("POST", f"{one}/resume", status=202)["message"] == message
    assert bob("GET", f"/workloads/{workload.pk}")["additionalFields"]["attempt"] == 2
    bob("DELETE", one, status=202)
    assert bob("GET", one).items() >= {"actualPhase": "Deleting", "desiredPhase": "Deleted"}.items()
    assert "already" in bob("DELETE", one, status=202)["message"]


def test_a_name_that_is_taken_is_409_and_opens_nothing(cast: Cast) -> None:
    bob = Caller(cast.bob)
    bob("POST", DISTRIBUTED, a_body(cast), 202)
    refused = bob("POST", DISTRIBUTED, a_body(cast), 409)
    assert "is free" in refused["message"]
    assert refused["details"][0]["field"] == "name"
    assert Workload.objects.count() == 1
    bob("POST", DISTRIBUTED, a_body(cast) | {"useGivenNameAsPrefix": True}, 202)


BAD: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": "Train_1"}),
    ("name", {"name": "a" * 51}),
    ("projectId", {"projectId": "4711"}),
    ("projectId", {"projectId": "x" * 100}),
    ("projectId", {"projectId": "9" * 18}),
    ("clusterId", {"clusterId": "elsewhere"}),
    ("spec.image", {"spec": {"distributedFramework": "PyTorch"}}),
    ("spec.distributedFramework", {"spec": {"image": "a"}}),
    ("spec.distributedFramework", {"spec": {"image": "a", "distributedFramework": "Horovod"}}),
    (
        "spec.compute.cpuMemoryRequest",
        {
            "spec": {
                "image": "a",
                "distributedFramework": "PyTorch",
                "compute": {"cpuMemoryRequest": "1GB"},
            }
        },
    ),
    ("masterSpec.image", {"masterSpec": {"image": "not an image"}}),
]


@pytest.mark.parametrize(
    ("field", "changes"), BAD, ids=[f"{field}-{number}" for number, (field, _) in enumerate(BAD)]
)
def test_bad_input_is_400_with_the_field_and_opens_nothing(
    cast: Cast, field: str, changes: dict[str, Any]
) -> None:
    refused = Caller(cast.bob)("POST", DISTRIBUTED, a_body(cast) | changes, 400)
    assert field in [each["field"] for each in refused["details"]]
    assert not Workload.objects.exists()


@pytest.mark.parametrize("framework", Framework)
def test_every_framework_is_launched(cast: Cast, framework: Framework) -> None:
    bob = Caller(cast.bob)
    answer = bob("POST", DISTRIBUTED, a_body(cast, distributedFramework=framework.value), 202)
    assert (Workload.objects.get().framework, answer["spec"]["distributedFramework"]) == (
        framework.value,
        framework.value,
    )
    listed = bob("GET", f"/workloads?filterBy=distributedFramework=={framework.value}")["workloads"]
    assert [each["distributedFramework"] for each in listed] == [framework.value]


def test_what_the_cluster_cannot_do_is_refused_at_its_field(cast: Cast) -> None:
    cast.cluster.capabilities = Capabilities(
        served=frozenset(("kubeflow.org/v1/pytorchjobs",))
    ).to_json()
    cast.cluster.save()
    bob = Caller(cast.bob)
    refused = bob("POST", DISTRIBUTED, a_body(cast, distributedFramework="JAX"), 400)
    assert [each["field"] for each in refused["details"]] == ["spec.distributedFramework"]
    assert "does not serve JAXJob objects" in refused["message"]
    refused = bob("POST", DISTRIBUTED, a_body(cast, compute={"gpuPortionRequest": 0.5}), 400)
    assert [each["field"] for each in refused["details"]] == ["spec.compute.gpuPortionRequest"]
    assert not Workload.objects.exists()


def test_nothing_is_launched_on_a_disabled_cluster(cast: Cast) -> None:
    Cluster.objects.update(is_enabled=False)
    answer = Caller(cast.bob).raw("POST", DISTRIBUTED, a_body(cast))
    assert answer.status_code in (400, 409, 422), answer.content
    assert "is disabled: nothing is launched there" in answer.content.decode()


def test_the_node_pools_that_were_asked_for_are_shown(cast: Cast) -> None:
    bob = Caller(cast.bob)
    bob("POST", DISTRIBUTED, a_body(cast, nodePools=["fast", "slow"]), 202)
    assert bob("GET", "/workloads")["workloads"][0]["requestedNodePools"] == ["fast", "slow"]


def test_a_project_of_others_reads_like_one_that_does_not_exist(cast: Cast) -> None:
    mallory, hidden = Caller(cast.mallory), a_body(cast)
    refused = [
        mallory("POST", DISTRIBUTED, hidden | {"projectId": each}, 400)["message"]
        for each in (str(cast.team_a.pk), "4711")
    ]
    assert refused[0].replace(f"project {cast.team_a.pk} ", "project 4711 ") == refused[1]


def test_a_workload_of_others_reads_like_one_that_does_not_exist(cast: Cast) -> None:
    mallory = Caller(cast.mallory)
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    for key in (workload.pk, uuid.uuid4()):
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/suspend"),
            ("POST", "/resume"),
        ):
            assert (
                mallory(method, f"{DISTRIBUTED}/{key}{path}", status=404)["message"]
                == actions.NOT_FOUND_TEXT
            )
        for path in ("", "/pods", "/events", "/history"):
            assert (
                mallory("GET", f"/workloads/{key}{path}", status=404)["message"]
                == actions.NOT_FOUND_TEXT
            )


def test_a_viewer_looks_on(cast: Cast) -> None:
    vera = Caller(cast.vera)
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    assert vera("GET", f"{DISTRIBUTED}/{workload.pk}")["name"] == "train1"
    assert (
        "it takes L2 researcher" in vera("POST", DISTRIBUTED, a_body(cast, "other"), 403)["message"]
    )
    # Neither what a template of that id has nor what a policy says is told to her.
    from_template = a_body(cast, "other") | {"templateId": str(uuid.uuid4())}
    for body in (from_template, a_body(cast, "other", numWorkers=9)):
        for path in (DISTRIBUTED, f"{DISTRIBUTED}/preflight"):
            assert "it takes L2 researcher" in vera("POST", path, body, 403)["message"]
    for method, path in (("DELETE", ""), ("POST", "/suspend"), ("POST", "/resume")):
        vera(method, f"{DISTRIBUTED}/{workload.pk}{path}", status=403)
    assert Workload.objects.get().status == Status.CREATING


MALFORMED: list[bytes] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"\xff\xfe",
    b'{"name": NaN}',
    b'{"name": 1e999}',
    b'{"name": "\\ud800"}',
    b'{"name": "a\\u0000b"}',
    b'{"\\u0000": 1}',
    b'{"spec": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"[" * 200_000,
    b'{"spec": {"numWorkers": ' + b"9" * 5000 + b"}}",
    b'{"spec": {"numWorkers": ' + b"9" * 400 + b"}}",
]


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_body_is_400(cast: Cast, body: bytes) -> None:
    refused = Caller(cast.bob)("POST", DISTRIBUTED, body, 400)
    assert refused["code"] == 400
    assert refused["message"]


WORDED = [
    (
        b'{"name": "\xff"}',
        "The body is not JSON that can be used: it is not text in UTF-8, by its byte 11.",
    ),
    (
        b'{"spec": {"numWorkers": ' + b"9" * 5000 + b"}}",
        "The body is not JSON that can be used: a number has more than 4,300 digits.",
    ),
]


@pytest.mark.parametrize(("body", "message"), WORDED, ids=["bytes", "digits"])
def test_a_malformed_body_is_refused_in_the_words_of_its_sender(
    cast: Cast, body: bytes, message: str
) -> None:
    assert Caller(cast.bob)("POST", DISTRIBUTED, body, 400)["message"] == message


def test_a_body_that_is_too_large_is_413_and_a_form_is_415(cast: Cast) -> None:
    bob = Caller(cast.bob)
    bob("POST", DISTRIBUTED, b" " * (LARGEST_BODY + 1), 413)
    form = bob.client.post(
        f"/api/v1{DISTRIBUTED}", {"name": "x"}, headers={"authorization": f"Bearer {bob.token}"}
    )
    assert (form.status_code, form.json()["code"]) == (415, 415)
    plain = bob.client.post(
        f"/api/v1{DISTRIBUTED}",
        b"{}",
        content_type="text/plain; charset=utf-8",
        headers={"authorization": f"Bearer {bob.token}"},
    )
    assert plain.json()["message"] == (
        "The body is text/plain, and the API reads JSON. Send JSON, with the header Content-Type: "
        "application/json."
    )


@given(
    st.dictionaries(
        st.sampled_from(["name", "spec", "projectId", "masterSpec", "noMaster", "x"]),
        JSON,
        max_size=4,
    ),
    JSON,
)
@settings(max_examples=60)
def test_no_body_makes_it_fail(cast: Cast, changes: dict[str, Any], spec: Any) -> None:
    body = a_body(cast) | (
        {
            "spec": {
                "image": "a",
                "distributedFramework": "PyTorch",
                "compute": spec,
                "storage": spec,
            }
        }
        | changes
    )
    answer = Caller(cast.bob).raw("POST", DISTRIBUTED, body)
    assert answer.status_code in (202, 400, 409), answer.content


def test_an_address_that_is_not_there_is_404_in_json(cast: Cast) -> None:
    bob = Caller(cast.bob)
    for path in (
        "/",
        "/nothing",
        "/workloads/",
        "/workloads/not-a-uuid",
        "/workloads/distributed/5",
        "/token/",
    ):
        assert bob("GET", path, status=404)["code"] == 404
        assert Caller()("POST", path, {}, status=404)["code"] == 404


def test_a_method_that_an_address_has_not_is_405_and_names_those_that_it_has(cast: Cast) -> None:
    assert Caller(cast.bob)("PUT", "/workloads", {}, status=405)["message"] == (
        "PUT is not possible at this address, which takes GET and HEAD."
    )
    assert Caller(cast.bob)("GET", "/token", status=405)["message"] == (
        "GET is not possible at this address, which takes POST."
    )


def test_a_request_without_a_token_is_401_and_says_where_one_is(cast: Cast) -> None:
    words = (
        "No access token came with this request. Get one from POST /api/v1/token, and send it as "
        "Authorization: Bearer TOKEN."
    )
    assert Caller()("GET", "/workloads", status=401)["message"] == words
    basic = Caller(cast.bob).client.get(
        "/api/v1/workloads", headers={"authorization": "Basic Ym9iOmJvYg=="}
    )
    assert (basic.status_code, basic.json()["message"]) == (401, words)


def test_submitting_takes_a_constant_number_of_queries(cast: Cast) -> None:
    bob = Caller(cast.bob)
    # The first request from an address is recorded, and the first change makes the counter's row.
    bob("POST", DISTRIBUTED, a_body(cast), 202)
    with CaptureQueriesContext(connection) as taken:
        bob("POST", DISTRIBUTED, a_body(cast, "another"), 202)
    assert len(taken) <= 20


def test_many_are_changed_with_a_result_for_each(cast: Cast) -> None:
    mine = [
        journal.create_workload(a_spec(cast.team_a, f"mine{n}"), project=cast.team_a, user=cast.bob)
        for n in range(3)
    ]
    theirs = journal.create_workload(a_spec(cast.team_b), project=cast.team_b, user=cast.mallory)
    end_workload(mine[1], Status.COMPLETED)
    ids = [
        *(str(each.pk) for each in mine),
        str(mine[0].pk),
        str(theirs.pk),
        str(uuid.uuid4()),
        "x",
    ]
    results = actions.apply_bulk_action(ids, "stop", cast.bob)
    assert [each.ok for each in results] == [True, False, True, False, False, False]
    assert [each.text for each in results[3:]] == [actions.NOT_FOUND_TEXT] * 3
    assert [each.name for each in results[:3]] == ["mine0", "mine1", "mine2"]
    assert Workload.objects.get(pk=theirs.pk).status == Status.CREATING
    assert timezone.now() - Workload.objects.get(pk=mine[0].pk).status_at < timedelta(minutes=1)


def test_many_have_a_bound_and_a_known_action(cast: Cast) -> None:
    for ids, action, field in (
        ([str(n) for n in range(101)], "stop", "ids"),
        ([], "explode", "action"),
    ):
        with pytest.raises(UserError) as refused:
            actions.apply_bulk_action(ids, action, cast.bob)
        assert refused.value.field == field

"""Asking the server who one is and what one may do."""

import pytest

from tests.conformance.api import Api, Object

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def access(spec: Object) -> Object:
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": spec,
    }


@pytest.mark.parametrize(
    "spec",
    [
        {
            "resourceAttributes": {
                "namespace": "default",
                "verb": "create",
                "group": "kubeflow.org",
                "resource": "pytorchjobs",
            }
        },
        {"resourceAttributes": {"verb": "list", "resource": "nodes"}},
        {
            "resourceAttributes": {
                "namespace": "default",
                "verb": "get",
                "resource": "pods",
                "subresource": "log",
                "name": "one",
            }
        },
        {"nonResourceAttributes": {"path": "/version", "verb": "get"}},
    ],
    ids=["create", "cluster", "log", "path"],
)
def test_may_i(api: Api, spec: Object) -> None:
    review = api.post(ACCESS, access(spec)).ok(201)
    assert (review["kind"], review["apiVersion"]) == (
        "SelfSubjectAccessReview",
        "authorization.k8s.io/v1",
    )
    assert review["spec"] == spec
    assert review["status"]["allowed"] is True


def test_a_question_about_nothing_is_refused(api: Api) -> None:
    api.post(ACCESS, access({})).expect_refusal(422, "Invalid")


def test_who_am_i(api: Api) -> None:
    review = api.post(
        WHO, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    ).ok(201)
    assert review["kind"] == "SelfSubjectReview"
    user = review["status"]["userInfo"]
    assert user["username"]
    assert "system:authenticated" in user["groups"]


def test_all_that_i_may(api: Api) -> None:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"},
    }
    status = api.post(RULES, body).ok(201)["status"]
    assert any(
        "*" in rule["verbs"] and "*" in rule["resources"] for rule in status["resourceRules"]
    )
    assert isinstance(status["nonResourceRules"], list)
    assert isinstance(status["incomplete"], bool)


def test_nobody_in_particular_may_not_even_ask(anonymous: Api) -> None:
    spec = {"resourceAttributes": {"verb": "list", "resource": "nodes"}}
    anonymous.post(ACCESS, access(spec)).expect_refusal(403, "Forbidden")


def test_a_token_that_nobody_knows_is_nobody(stranger: Api) -> None:
    stranger.post(
        WHO, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    ).expect_refusal(401, "Unauthorized")


def test_a_question_is_not_kept(api: Api) -> None:
    api.get(ACCESS).expect_refusal(405, "MethodNotAllowed")

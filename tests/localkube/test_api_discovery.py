"""What is served: discovery, OpenAPI, reviews of rights and tokens, and measured usage."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from localkube import KUBERNETES_VERSION
from localkube.resources import NODES, PODS, REGISTRY
from tests.localkube.api_server import TOKEN, ApiServer, pod, uid, usage

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
OWNER = "the owner of this cluster may do everything"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def test_core_and_groups_are_told(api: ApiServer) -> None:
    assert api.get("/api").json["versions"] == ["v1"]
    groups = {
        group["name"]: group["preferredVersion"]["groupVersion"]
        for group in api.get("/apis").json["groups"]
    }
    assert groups["kubeflow.org"] == "kubeflow.org/v1"
    assert groups["scheduling.run.ai"] == "scheduling.run.ai/v2"
    assert {"metrics.k8s.io", "authorization.k8s.io", "authentication.k8s.io"} <= set(groups)


@pytest.mark.parametrize("resource", REGISTRY, ids=lambda resource: resource.key)
def test_every_resource_is_told_and_answers(api: ApiServer, resource: object) -> None:
    group, version = resource.group, resource.version  # type: ignore[attr-defined]
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    listed = {line["name"]: line for line in api.get(root).json["resources"]}
    line = listed[resource.plural]  # type: ignore[attr-defined]
    assert "list" in line["verbs"]
    assert api.get(f"{root}/{line['name']}").json["kind"] == f"{line['kind']}List"
    assert api.get(f"{root}/{line['name']}", accept=TABLE).json["kind"] == "Table"


def test_subresources_say_what_they_speak(api: ApiServer) -> None:
    listed = {line["name"]: line for line in api.get("/apis/kubeflow.org/v1").json["resources"]}
    scale = listed["pytorchjobs/scale"]
    assert (scale["group"], scale["version"], scale["kind"], scale["verbs"]) == (
        "autoscaling",
        "v1",
        "Scale",
        ["get", "patch", "update"],
    )


@pytest.mark.parametrize(("accept", "version"), [(V2, "v2"), (V2BETA1, "v2beta1")])
def test_the_aggregated_form_is_cached_by_its_tag(
    api: ApiServer, accept: str, version: str
) -> None:
    answer = api.get("/apis", accept=accept)
    assert (
        answer.headers["content-type"]
        == f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    )
    assert answer.json["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    unchanged = api.get("/apis", accept=accept, if_none_match=answer.headers["etag"])
    assert (unchanged.status, unchanged.body) == (304, b"")


def test_openapi_says_that_the_server_validates(api: ApiServer) -> None:
    index = api.get("/openapi/v3").json["paths"]
    document = api.get(index["apis/kubeflow.org/v1"]["serverRelativeURL"]).json
    operation = document["paths"][
        "/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/{name}"
    ]["patch"]
    assert operation["x-kubernetes-group-version-kind"]["kind"] == "PyTorchJob"
    assert "fieldValidation" in {parameter["name"] for parameter in operation["parameters"]}


def test_openapi_has_a_document_for_every_group(api: ApiServer) -> None:
    index = api.get("/openapi/v3").json["paths"]
    assert {api.get(entry["serverRelativeURL"]).status for entry in index.values()} == {200}
    assert api.get("/openapi/v3/apis/nosuch/v1").status == 404
    assert api.get("/openapi/v2").json["swagger"] == "2.0"


def test_openapi_comes_as_kubectl_wants_it_for_lists(api: ApiServer) -> None:
    name = "application/com.github.proto-openapi.spec.v2{}v1.0+protobuf"
    answer = api.get("/openapi/v2", accept=name.format("@"))
    assert (answer.status, answer.headers["content-type"]) == (200, name.format("."))
    version = KUBERNETES_VERSION.encode()
    info = b"\x0a\x09localkube\x12" + bytes([len(version)]) + version
    assert answer.body == b"\x0a\x032.0\x12" + bytes([len(info)]) + info


def test_the_administrator_may_do_everything(api: ApiServer) -> None:
    spec = {
        "resourceAttributes": {
            "namespace": "team-a",
            "verb": "create",
            "group": "kubeflow.org",
            "resource": "pytorchjobs",
        }
    }
    answer = api.ask(
        "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec}
    )
    assert (answer.status, answer.json["status"]["allowed"], answer.json["spec"]) == (
        201,
        True,
        spec,
    )


def test_somebody_else_may_not_but_may_ask(api: ApiServer) -> None:
    body = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    answer = api.ask(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        body,
        impersonate_user="bob",
    )
    assert (answer.status, answer.json["status"]) == (201, {"allowed": False})


def test_an_access_review_about_nothing_is_invalid(api: ApiServer) -> None:
    assert (
        api.ask(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}
        ).status
        == 422
    )


def test_one_can_ask_who_one_is_and_what_one_may(api: ApiServer) -> None:
    me = api.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).json["status"][
        "userInfo"
    ]
    assert (me["username"], "system:masters" in me["groups"]) == ("localkube-admin", True)
    assert me["uid"] == "localkube-admin"
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    other = api.ask("POST", path, {}, impersonate_user="bob").json["status"]["userInfo"]
    assert other == {"username": "bob", "groups": ["system:authenticated"]}
    rules = api.ask(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {"spec": {"namespace": "team-a"}},
    ).json["status"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in rules["resourceRules"]


@pytest.mark.parametrize(
    ("groups", "status"),
    [
        (["a", "system:masters"], {"allowed": True, "reason": OWNER}),
        (["a", "b"], {"allowed": False}),
    ],
)
def test_one_can_ask_what_somebody_may(
    api: ApiServer, groups: Sequence[str], status: Mapping[str, Any]
) -> None:
    about = {"verb": "list", "resource": "pods", "namespace": "team-a"}
    spec = {"user": "bob", "groups": groups, "resourceAttributes": about}
    answer = api.ask("POST", f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec})
    assert (answer.status, answer.json["kind"], answer.json["status"]) == (
        201,
        "SubjectAccessReview",
        status,
    )
    local = f"{AUTHORIZATION}/namespaces/team-a/localsubjectaccessreviews"
    answer = api.ask("POST", local, {"spec": spec})
    assert (answer.status, answer.json["kind"], answer.json["status"]) == (
        201,
        "LocalSubjectAccessReview",
        status,
    )


def test_an_access_review_names_somebody_and_its_own_namespace(api: ApiServer) -> None:
    spec = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}
    local = f"{AUTHORIZATION}/namespaces/team-a/localsubjectaccessreviews"
    answer = api.ask("POST", local, {"spec": spec})
    assert answer.status == 422
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == [
        "spec.user",
        "spec.resourceAttributes.namespace",
    ]
    answer = api.ask("POST", f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {"user": "bob"}})
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == [
        "spec.resourceAttributes"
    ]
    path = f"{AUTHORIZATION}/localsubjectaccessreviews"
    assert api.ask("POST", path, {"spec": spec}).status == 405


def test_one_can_ask_whose_a_token_is(api: ApiServer) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = api.ask("POST", path, {"spec": {"token": TOKEN}}).json["status"]
    assert (status["authenticated"], status["user"]["username"]) == (True, "localkube-admin")
    assert "system:masters" in status["user"]["groups"]
    answer = api.ask("POST", path, {"spec": {"token": "another"}})
    assert (answer.status, answer.json["status"]) == (
        201,
        {"user": {}, "error": "invalid bearer token"},
    )
    assert api.ask("POST", path, {"spec": {}}).status == 400
    assert api.ask("POST", path, {"spec": {"token": TOKEN}}, impersonate_user="bob").status == 403


def test_reviews_are_only_created(api: ApiServer) -> None:
    assert api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").status == 405


def test_measured_pods_have_metrics_and_others_have_none(api: ApiServer) -> None:
    made = api.call(lambda: api.objects.create(PODS, "team-a", pod("p", labels={"a": "b"})))
    api.call(lambda: api.objects.create(PODS, "team-a", pod("q")))
    api.machine.pods = {uid(made): {"main": usage(12_345_678, 3 << 20)}}
    listed = api.get("/apis/metrics.k8s.io/v1beta1/namespaces/team-a/pods?labelSelector=a%3Db").json
    assert (listed["kind"], listed["apiVersion"]) == ("PodMetricsList", "metrics.k8s.io/v1beta1")
    assert listed["items"][0]["containers"] == [
        {"name": "main", "usage": {"cpu": "12345678n", "memory": "3072Ki"}}
    ]
    assert listed["items"][0]["timestamp"] == "2026-01-01T00:00:00Z"
    assert api.get("/apis/metrics.k8s.io/v1beta1/namespaces/team-a/pods/q").status == 404
    assert api.get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods").json["items"] == []


def test_the_node_has_metrics_once_it_is_measured(api: ApiServer) -> None:
    assert api.get("/apis/metrics.k8s.io/v1beta1/nodes").json["items"] == []
    api.call(lambda: api.objects.create(NODES, "", {"metadata": {"name": "localkube"}}))
    api.machine.nodes["localkube"] = usage(2_000_000_000, 1 << 30)
    node = api.get("/apis/metrics.k8s.io/v1beta1/nodes/localkube").json
    assert node["usage"] == {"cpu": "2000000000n", "memory": "1048576Ki"}

"""Who gets in, and what everybody is told who asks for what is not there."""

import pytest

from tests.localkube.api_server import ApiServer, job, pod

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
PODS = "/api/v1/namespaces/team-a/pods"


def test_a_wrong_token_is_unauthorized_without_a_challenge(api: ApiServer) -> None:
    answer = api.get(JOBS, authorization="Bearer not-a-token")
    assert (answer.status, answer.json["reason"]) == (401, "Unauthorized")
    assert "www-authenticate" not in answer.headers


def test_without_credentials_one_is_anonymous_and_forbidden(api: ApiServer) -> None:
    answer = api.get(JOBS, authorization="")
    assert answer.status == 403
    assert answer.json["message"] == (
        'pytorchjobs.kubeflow.org is forbidden: User "system:anonymous" cannot list resource '
        '"pytorchjobs" '
        'in API group "kubeflow.org" in the namespace "team-a"'
    )
    assert answer.json["details"] == {"group": "kubeflow.org", "kind": "pytorchjobs"}


@pytest.mark.parametrize("path", ["/version", "/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_version_and_health_are_open_to_everybody(api: ApiServer, path: str) -> None:
    assert api.get(path, authorization="").status == 200


@pytest.mark.parametrize("path", ["/api", "/apis", "/openapi/v3", "/", "/nonsense"])
def test_the_rest_is_not(api: ApiServer, path: str) -> None:
    answer = api.get(path, authorization="")
    assert answer.status == 403
    assert answer.json["message"] == f'forbidden: User "system:anonymous" cannot get path "{path}"'


def test_an_impersonated_user_may_do_nothing(api: ApiServer) -> None:
    answer = api.get(JOBS, impersonate_user="bob", impersonate_group="team-a")
    assert answer.status == 403
    assert 'User "bob" cannot list' in answer.json["message"]


def test_verbose_health_names_its_checks(api: ApiServer) -> None:
    answer = api.get("/readyz?verbose")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.body.startswith(b"[+]ping ok\n")
    assert answer.body.endswith(b"readyz check passed\n")


@pytest.mark.parametrize(
    "path",
    [
        "/apis/kubeflow.org/v1/namespaces/team-a/nosuchjobs",
        "/apis/kubeflow.org/v2",
        "/apis/kubeflow.org/v1/pytorchjobs/x",
        "/api/v1/namespaces/team-a/nodes",
        "/api/v1/namespaces/team-a/pods/x/nosuch",
        "/api/v1/watch/pods",
        "/api/v1/namespaces/team-a/pods/a/b/c",
        "/api/v1/namespaces//pods",
        "/nonsense",
    ],
)
def test_what_is_not_served_is_a_404_status(api: ApiServer, path: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.json["kind"], answer.json["reason"]) == (
        404,
        "Status",
        "NotFound",
    )


@pytest.mark.parametrize(
    ("subresource", "help"),
    [
        ("attach", "look at the pod's logs"),
        ("exec", "look at the pod's logs"),
        ("portforward", "connect to 127.0.0.1 and the port itself"),
    ],
)
def test_what_needs_a_way_into_a_container_is_refused_in_words(
    api: ApiServer, subresource: str, help: str
) -> None:
    answer = api.ask("POST", f"{PODS}/x/{subresource}")
    assert (answer.status, answer.json["kind"]) == (404, "Status")
    assert f"does not serve {subresource}" in answer.json["message"]
    assert help in answer.json["message"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("PUT", JOBS, 400),
        ("PUT", PODS, 405),
        ("PATCH", PODS, 405),
        ("POST", f"{PODS}/x", 405),
        ("POST", "/api/v1/pods", 405),
        ("OPTIONS", PODS, 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("DELETE", "/apis/metrics.k8s.io/v1beta1/nodes/x", 405),
        ("POST", "/apis", 405),
        ("POST", "/version", 405),
    ],
)
def test_a_method_that_a_path_does_not_have_is_refused(
    api: ApiServer, method: str, path: str, code: int
) -> None:
    answer = api.ask(method, path, {})
    assert (answer.status, answer.json["code"]) == (code, code)


def test_head_is_a_get_without_its_body(api: ApiServer) -> None:
    answer = api.ask("HEAD", JOBS)
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


def test_every_answer_can_be_traced_and_is_not_cached(api: ApiServer) -> None:
    answer = api.get(JOBS)
    assert len(answer.headers["audit-id"]) == 36
    assert answer.headers["cache-control"] == "no-cache, private"


def test_a_broken_escape_in_the_path_is_a_bad_request(api: ApiServer) -> None:
    assert api.get("/api/v1/namespaces/%ff").status == 400


def test_a_defect_is_a_500_status_and_the_server_goes_on(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("run", node="n"))
    api.machine.refusal = RuntimeError("a defect")
    answer = api.get(f"{PODS}/run/log")
    assert (answer.status, answer.json["reason"]) == (500, "InternalError")
    assert "a defect" not in answer.json["message"]
    assert api.ask("POST", JOBS, job("next")).status == 201

"""Pod logs: which container, how much of it, from when, and while it is being written."""

import re

import pytest

from tests.conformance.api import Api, Object, eventually
from tests.conformance.samples import PODS, create_pod, pod, shell_pod

STAMPED = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)) (?P<text>.*)"
)
NEWEST = "for n in 1 2 3 4 5; do echo line $n; done"


def log_path(namespace: str, name: str = "pod") -> str:
    return PODS.path(namespace, name, "log")


def two_containers() -> Object:
    return pod(
        containers=[{"name": "pytorch", "image": "train:1"}, {"name": "side", "image": "train:1"}]
    )


def test_a_pod_without_a_node_has_an_empty_log(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    answer = api.get(log_path(namespace), accept="*/*")
    assert (answer.status, answer.body) == (204, b"")


def test_a_pod_that_is_not_there_has_no_log(api: Api, namespace: str) -> None:
    refusal = api.get(log_path(namespace, "nope"), accept="*/*").expect_refusal(404, "NotFound")
    assert refusal["message"] == 'pods "nope" not found'
    assert refusal["details"] == {"name": "nope", "kind": "pods"}


def test_of_several_containers_one_must_be_named(api: Api, namespace: str) -> None:
    create_pod(api, namespace, two_containers())
    refusal = api.get(log_path(namespace), accept="*/*").expect_refusal(400, "BadRequest")
    assert (
        refusal["message"]
        == "a container name must be specified for pod pod, choose one of: [pytorch side]"
    )
    assert api.get(log_path(namespace), accept="*/*", container="side").status == 204


def test_the_container_must_be_one_of_the_pod(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    refusal = api.get(log_path(namespace), accept="*/*", container="nope").expect_refusal(
        400, "BadRequest"
    )
    assert refusal["message"] == "container nope is not valid for pod pod"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"tailLines": -1}, "tailLines"),
        ({"limitBytes": 0}, "limitBytes"),
        ({"sinceSeconds": 0}, "sinceSeconds"),
    ],
    ids=["tail", "limit", "since"],
)
def test_an_amount_that_makes_no_sense_is_refused(
    api: Api, namespace: str, query: dict[str, int], field: str
) -> None:
    create_pod(api, namespace, pod())
    refusal = api.get(log_path(namespace), accept="*/*", **query).expect_refusal(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == [field]
    assert refusal["details"]["kind"] == "PodLogOptions"


def test_only_one_way_to_say_since_when(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    api.get(
        log_path(namespace), accept="*/*", sinceSeconds=5, sinceTime="2026-01-01T00:00:00Z"
    ).expect_refusal(422, "Invalid")


def wait_ended(api: Api, namespace: str, name: str = "pod") -> None:
    eventually(
        lambda: (
            api.get(PODS.path(namespace, name)).ok()["status"]["phase"] in ("Succeeded", "Failed")
        ),
        within=270,
    )


@pytest.fixture
def log_of_ended_pod(api: Api, namespace: str, image: str) -> str:
    """The path of the log of a pod that wrote five lines and ended."""
    create_pod(api, namespace, shell_pod(image, NEWEST))
    wait_ended(api, namespace)
    return log_path(namespace)


def lines(api: Api, path: str, **query: object) -> list[str]:
    answer = api.get(path, accept="*/*", **query)
    assert answer.status == 200, answer.text
    return answer.text.splitlines()


@pytest.mark.pods
def test_a_log_is_plain_text(api: Api, log_of_ended_pod: str) -> None:
    answer = api.get(log_of_ended_pod, accept="*/*")
    assert (answer.status, answer.headers.get_content_type()) == (200, "text/plain")
    assert answer.text == "line 1\nline 2\nline 3\nline 4\nline 5\n"


@pytest.mark.pods
def test_a_log_is_read_from_its_end(api: Api, log_of_ended_pod: str) -> None:
    assert lines(api, log_of_ended_pod, tailLines=2) == ["line 4", "line 5"]
    assert lines(api, log_of_ended_pod, tailLines=100) == [f"line {n}" for n in range(1, 6)]
    assert lines(api, log_of_ended_pod, tailLines=0) == []


@pytest.mark.pods
def test_a_log_is_cut_after_so_many_bytes(api: Api, log_of_ended_pod: str) -> None:
    assert api.get(log_of_ended_pod, accept="*/*", limitBytes=10).text == "line 1\nlin"


@pytest.mark.pods
def test_lines_can_carry_their_time(api: Api, log_of_ended_pod: str) -> None:
    stamped = [STAMPED.fullmatch(line) for line in lines(api, log_of_ended_pod, timestamps="true")]
    assert [match and match["text"] for match in stamped] == [f"line {n}" for n in range(1, 6)]


@pytest.mark.pods
def test_the_container_of_a_log_can_be_named(api: Api, log_of_ended_pod: str) -> None:
    assert lines(api, log_of_ended_pod, container="main", tailLines=1) == ["line 5"]


@pytest.mark.pods
def test_a_log_is_read_from_a_moment_on(api: Api, namespace: str, image: str) -> None:
    create_pod(api, namespace, shell_pod(image, "echo early; sleep 3; echo late"))
    wait_ended(api, namespace)
    path = log_path(namespace)
    match = STAMPED.fullmatch(lines(api, path, timestamps="true", tailLines=1)[0])
    assert match is not None
    moment = f"{match['time'][:19]}Z"
    assert lines(api, path, sinceTime=moment) == ["late"]
    assert lines(api, path, sinceSeconds=3600) == ["early", "late"]


@pytest.mark.pods
def test_a_followed_log_comes_while_it_is_written(api: Api, namespace: str, image: str) -> None:
    create_pod(api, namespace, shell_pod(image, "echo first; sleep 4; echo last"))
    eventually(
        lambda: api.get(PODS.path(namespace, "pod")).ok()["status"]["phase"] != "Pending",
        within=270,
    )
    with api.stream(log_path(namespace), accept="*/*", follow="true") as stream:
        assert stream.line() == b"first\n"
        assert api.get(PODS.path(namespace, "pod")).ok()["status"]["phase"] == "Running"
        assert stream.line() == b"last\n"
        assert stream.line() == b""


@pytest.mark.pods
def test_following_begins_with_the_last_lines(api: Api, log_of_ended_pod: str) -> None:
    with api.stream(log_of_ended_pod, accept="*/*", follow="true", tailLines="2") as stream:
        assert [stream.line(), stream.line(), stream.line()] == [b"line 4\n", b"line 5\n", b""]


@pytest.mark.pods
def test_a_run_that_failed_can_still_be_read(api: Api, namespace: str, image: str) -> None:
    text = "echo gone; exit 1"
    create_pod(api, namespace, shell_pod(image, text, restartPolicy="OnFailure"))

    def previous() -> list[str]:
        answer = api.get(log_path(namespace), accept="*/*", previous="true")
        return answer.text.splitlines() if answer.status == 200 else []

    assert eventually(previous, within=270) == ["gone"]


@pytest.mark.pods
def test_a_first_run_has_none_before_it(api: Api, log_of_ended_pod: str) -> None:
    refusal = api.get(log_of_ended_pod, accept="*/*", previous="true").expect_refusal(
        400, "BadRequest"
    )
    assert refusal["message"] == 'previous terminated container "main" in pod "pod" not found'


@pytest.mark.pods
def test_a_container_that_waits_has_no_log_yet(api: Api, namespace: str, image: str) -> None:
    obj = shell_pod(image, "echo main")
    obj["spec"]["initContainers"] = [
        {**obj["spec"]["containers"][0], "name": "first", "command": ["/bin/sh", "-c", "sleep 60"]}
    ]
    create_pod(api, namespace, obj)

    def waiting() -> bool:
        return api.get(log_path(namespace), accept="*/*", container="main").status == 400

    eventually(waiting, within=270)
    refusal = api.get(log_path(namespace), accept="*/*", container="main").expect_refusal(
        400, "BadRequest"
    )
    assert (
        refusal["message"] == 'container "main" in pod "pod" is waiting to start: PodInitializing'
    )


@pytest.mark.pods
def test_the_log_goes_with_its_pod(api: Api, namespace: str, log_of_ended_pod: str) -> None:
    api.delete(PODS.path(namespace, "pod")).ok()
    eventually(lambda: api.get(log_of_ended_pod, accept="*/*").status == 404, within=180)

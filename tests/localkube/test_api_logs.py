"""pods/log: which container, which query, and bytes as they come."""

import pytest

from localkube import clock
from localkube.errors import bad_request_error
from tests.localkube.api_server import ApiServer, pod

PODS = "/api/v1/namespaces/team-a/pods"


def run(api: ApiServer, *containers: str) -> str:
    """The path of the log of a pod that has a node."""
    assert api.ask("POST", PODS, pod("run", *containers, node="n")).status == 201
    return f"{PODS}/run/log"


def test_the_only_container_needs_no_name(api: ApiServer) -> None:
    api.machine.chunks = [b"one\n", b"two\n"]
    answer = api.get(run(api))
    assert (answer.status, answer.body, answer.headers["content-type"]) == (
        200,
        b"one\ntwo\n",
        "text/plain",
    )


def test_one_of_several_must_be_named(api: ApiServer) -> None:
    answer = api.get(run(api, "pytorch", "side"))
    assert answer.status == 400
    assert (
        answer.json["message"]
        == "a container name must be specified for pod run, choose one of: [pytorch side]"
    )


def test_it_must_be_one_that_the_pod_has(api: ApiServer) -> None:
    answer = api.get(f"{run(api)}?container=nope")
    assert (answer.status, answer.json["message"]) == (
        400,
        "container nope is not valid for pod run",
    )


def test_a_pod_without_a_node_has_no_content(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("pend"))
    answer = api.get(f"{PODS}/pend/log")
    assert (answer.status, answer.body) == (204, b"")
    assert "content-type" not in answer.headers


def test_a_pod_that_is_not_there_is_a_404(api: ApiServer) -> None:
    assert api.get(f"{PODS}/nope/log").json["message"] == 'pods "nope" not found'


def test_the_refusal_of_the_machine_is_passed_on(api: ApiServer) -> None:
    message = 'container "main" in pod "run" is waiting to start: ContainerCreating'
    api.machine.refusal = bad_request_error(message)
    answer = api.get(run(api))
    assert (answer.status, answer.json["message"]) == (400, message)


def test_the_query_reaches_the_machine(api: ApiServer) -> None:
    query = "tailLines=3&limitBytes=100&timestamps=true&previous=1&sinceTime=2026-01-01T00:00:00Z"
    assert api.get(f"{run(api)}?{query}").status == 200
    options = api.machine.last_options
    assert options is not None
    assert (
        options.tail_lines,
        options.limit_bytes,
        options.timestamps,
        options.previous,
        options.follow,
    ) == (3, 100, True, True, False)
    assert options.since is not None
    assert clock.format_time(options.since) == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("tailLines=-1", 422),
        ("limitBytes=0", 422),
        ("sinceSeconds=0", 422),
        ("sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z", 422),
        ("sinceTime=yesterday", 400),
        ("tailLines=few", 400),
        ("sinceSeconds=99999999999999999999", 400),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(api: ApiServer, query: str, code: int) -> None:
    assert api.get(f"{run(api)}?{query}").status == code


def test_a_followed_log_comes_as_it_is_written_and_ends_with_its_reader(api: ApiServer) -> None:
    api.machine.chunks = [b"first\n", b"second\n"]
    api.machine.endless = True
    connection = api.connect()
    response = api.send(connection, "GET", f"{run(api)}?follow=true")
    assert (response.readline(), response.readline()) == (b"first\n", b"second\n")
    assert not api.machine.reader_left.is_set()
    response.close()
    connection.close()
    assert api.machine.reader_left.wait(60)


def test_a_followed_log_that_says_nothing_begins_all_the_same(api: ApiServer) -> None:
    api.machine.endless = True
    connection = api.connect()
    response = api.send(connection, "GET", f"{run(api)}?follow=true")
    assert response.status == 200
    api.wait(api.listener.stop(5.0))
    assert response.read() == b""
    assert api.machine.reader_left.wait(60)
    connection.close()

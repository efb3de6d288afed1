"""More than the server takes at once: a refusal that says when to come back, and room again when
others have gone.
"""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.api.application import ConcurrencyLimits
from tests.localkube.api_server import DEADLINE, TOKEN, ApiServer, pod

PODS = "/api/v1/namespaces/team-a/pods"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[ApiServer]:
    """A server that takes two of everything at once."""
    server = ApiServer(
        tmp_path, concurrency=ConcurrencyLimits(requests=2, watches=2, followed_logs=2)
    )
    server.start()
    server.ask("POST", PODS, pod("run", node="n"))
    server.machine.endless = True
    yield server
    server.stop()


def eventually_answers(server: ApiServer, path: str) -> bool:
    """Whether a stream can be begun before long."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        connection = server.connect()
        status = server.send(connection, "GET", path).status
        connection.close()
        if status == 200:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("path", [f"{PODS}?watch=1&timeoutSeconds=60", f"{PODS}/run/log?follow=1"])
def test_beyond_the_bound_a_stream_is_refused_until_another_ends(
    small: ApiServer, path: str
) -> None:
    connections = [small.connect() for _ in range(2)]
    for connection in connections:
        assert small.send(connection, "GET", path).status == 200
    refused = small.get(path)
    assert (refused.status, refused.json["reason"], refused.headers["retry-after"]) == (
        429,
        "TooManyRequests",
        "1",
    )
    for connection in connections:
        connection.close()
    assert eventually_answers(small, path)


def start_request(server: ApiServer) -> socket.socket:
    """A request whose body never comes."""
    connection = server.trust.wrap_socket(
        socket.create_connection(("127.0.0.1", server.listener.port)), server_hostname="127.0.0.1"
    )
    head = (
        f"POST {PODS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: "
        "10\r\n\r\n"
    )
    connection.sendall(head.encode())
    return connection


def test_beyond_the_bound_a_request_is_refused_until_another_ends(small: ApiServer) -> None:
    connections = [start_request(small) for _ in range(2)]
    deadline = time.monotonic() + DEADLINE
    while (refused := small.get(PODS)).status != 429 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (refused.status, refused.json["kind"], refused.headers["retry-after"]) == (
        429,
        "Status",
        "1",
    )
    for connection in connections:
        connection.close()
    assert eventually_answers(small, PODS)


def test_streams_do_not_count_as_requests(small: ApiServer) -> None:
    connections = [small.connect() for _ in range(2)]
    for connection in connections:
        small.send(connection, "GET", f"{PODS}?watch=1&timeoutSeconds=60")
    assert small.get(PODS).status == 200
    for connection in connections:
        connection.close()

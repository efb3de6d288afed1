"""Connections: how many, for how long, and what becomes of them at the end."""

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.api.listener import ConnectionLimits, compute_max_connections
from localkube.resources import CONFIGMAPS
from tests.localkube.api_server import DEADLINE, TOKEN, ApiServer

PODS = "/api/v1/pods"
FAST = ConnectionLimits(
    max_connections=5,
    handshake_seconds=0.3,
    request_seconds=0.3,
    body_seconds=0.3,
    idle_seconds=0.3,
    stall_seconds=0.3,
)


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[ApiServer]:
    """A server of five connections that waits for nobody."""
    server = ApiServer(tmp_path, FAST)
    server.start()
    yield server
    server.stop()


def open_connection(server: ApiServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.listener.port), timeout=DEADLINE)


def open_tls_connection(server: ApiServer) -> ssl.SSLSocket:
    return server.trust.wrap_socket(open_connection(server), server_hostname="127.0.0.1")


def is_closed_by_server(connection: socket.socket) -> bool:
    """Return whether the server closes a connection without sending anything."""
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        connection.close()


def wait_until_drained(server: ApiServer) -> bool:
    deadline = time.monotonic() + DEADLINE
    while server.listener.connection_count and time.monotonic() < deadline:
        time.sleep(0.01)
    return server.listener.connection_count == 0


def test_it_listens_on_loopback_only(api: ApiServer) -> None:
    assert api.listener._socket is not None
    assert api.listener._socket.getsockname() == ("127.0.0.1", api.listener.port)


def test_a_taken_port_is_an_error(api: ApiServer) -> None:
    taken = ApiServer(api.directory)
    taken.listener = api.listener.__class__(None, None, api.listener.port)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="Address already in use"):
        asyncio.run(taken.listener.start())


def test_one_connection_serves_many_requests(api: ApiServer) -> None:
    connection = api.connect()
    for _ in range(20):
        assert api.send(connection, "GET", PODS).read()
    assert api.listener.connection_count == 1
    connection.close()
    assert wait_until_drained(api)


def test_beyond_the_bound_a_connection_is_closed_at_once_and_others_are_served(
    hasty: ApiServer,
) -> None:
    connections = [open_connection(hasty) for _ in range(5)]
    assert is_closed_by_server(open_connection(hasty))
    for connection in connections:
        connection.close()
    assert wait_until_drained(hasty)
    assert hasty.get(PODS).status == 200


def test_a_handshake_that_is_never_finished_ends(hasty: ApiServer) -> None:
    assert is_closed_by_server(open_connection(hasty))
    assert wait_until_drained(hasty)


def test_plain_http_is_not_spoken(api: ApiServer) -> None:
    connection = open_connection(api)
    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert connection.recv(4096)[:4] != b"HTTP"
    connection.close()
    assert wait_until_drained(api)
    assert api.get(PODS).status == 200


def test_a_connection_that_asks_nothing_ends(hasty: ApiServer) -> None:
    assert is_closed_by_server(open_tls_connection(hasty))
    assert wait_until_drained(hasty)


def test_so_does_one_that_never_ends_its_headers(hasty: ApiServer) -> None:
    connection = open_tls_connection(hasty)
    connection.sendall(b"GET / HTTP/1.1\r\nx: y\r\n")
    assert is_closed_by_server(connection)
    assert wait_until_drained(hasty)


def test_and_one_that_never_ends_its_body(hasty: ApiServer) -> None:
    connection = open_tls_connection(hasty)
    connection.sendall(
        b"POST /api/v1/namespaces/team-a/configmaps HTTP/1.1\r\nhost: x\r\n"
        b"content-type: application/json\r\ncontent-length: 100\r\n"
        + f"authorization: Bearer {TOKEN}\r\n\r\n{{".encode()
    )
    assert is_closed_by_server(connection)
    assert wait_until_drained(hasty)


def test_and_one_that_falls_silent_after_an_answer(hasty: ApiServer) -> None:
    connection = hasty.connect()
    hasty.send(connection, "GET", PODS).read()
    assert is_closed_by_server(connection.sock)
    assert wait_until_drained(hasty)


def test_headers_without_end_are_cut_off(api: ApiServer) -> None:
    connection = open_tls_connection(api)
    connection.sendall(b"GET / HTTP/1.1\r\n")
    with pytest.raises(OSError, match=r"reset|Broken pipe|EOF"):
        for _ in range(10_000):
            connection.sendall(b"x: " + b"y" * 10_000 + b"\r\n")
    connection.close()
    assert wait_until_drained(api)


def create_more_than_buffers_hold(server: ApiServer) -> None:
    body = {
        "metadata": {"name": "large", "annotations": {"pad": "x" * 250_000}},
        "data": {"pad": "y" * 900_000},
    }
    for number in range(10):
        body["metadata"]["name"] = f"large-{number}"  # type: ignore[index]
        assert server.ask("POST", "/api/v1/namespaces/team-a/configmaps", body).status == 201


def request_and_take_nothing(server: ApiServer, path: str) -> ssl.SSLSocket:
    connection = open_tls_connection(server)
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n".encode()
    )
    return connection


def test_a_client_that_takes_nothing_is_cut_off(hasty: ApiServer) -> None:
    create_more_than_buffers_hold(hasty)
    connection = request_and_take_nothing(hasty, "/api/v1/configmaps")
    assert wait_until_drained(hasty)
    connection.close()


def test_a_watch_whose_client_takes_nothing_ends_at_its_timeout(api: ApiServer) -> None:
    assert api.limits.stall_seconds > DEADLINE
    create_more_than_buffers_hold(api)
    connection = request_and_take_nothing(api, "/api/v1/configmaps?watch=1&timeoutSeconds=1")
    assert wait_until_drained(api)
    assert not api.objects.store._get_table(CONFIGMAPS.key).subscribers
    connection.close()


def test_nonsense_is_a_bad_request(api: ApiServer) -> None:
    connection = open_tls_connection(api)
    connection.sendall(b"nonsense\r\n\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 400")
    connection.close()


def test_a_stop_does_not_wait_for_idle_connections(api: ApiServer) -> None:
    connection = api.connect()
    api.send(connection, "GET", PODS).read()
    before = time.monotonic()
    api.wait(api.listener.stop(DEADLINE))
    assert time.monotonic() - before < DEADLINE / 2
    assert api.listener.connection_count == 0
    connection.close()


def test_half_of_the_descriptors_are_left_for_the_rest() -> None:
    assert compute_max_connections() <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2

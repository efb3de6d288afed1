"""Requests and answers between ranks and data workers."""

import contextlib
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping

import pytest

from muster_delivery.client import ClientGroup, NotConnected
from muster_delivery.server import MOST_UNANSWERED, Reply, Server
from tests.cluster import ROOT
from tests.delivery.processes import BASE_VARIABLES
from tests.delivery.transport_stage import (
    KEY,
    connect,
    run_server,
    wait_for_answer,
    wait_for_change,
    wait_until,
)


def test_requests_are_answered_in_order() -> None:
    with run_server() as server, connect(server) as group:
        wait_for_change(group, is_connected=True)
        for number in range(100):
            group.send(0, {"number": number})
        answers = [wait_for_answer(group).header for _ in range(100)]
    assert answers == [{"echo": {"number": number}} for number in range(100)]


def test_frames_come_as_they_were_sent() -> None:
    frames: list[bytes | bytearray | memoryview] = [
        b"description",
        bytearray(b""),
        memoryview(bytes(3_000_000)),
        b"x" * 70_000,
    ]

    def answer_frames(request: object, reply: Reply) -> None:
        reply.send({}, frames)

    with run_server(answer_frames) as server, connect(server) as group:
        wait_for_change(group, is_connected=True)
        group.send(0, {"get": 1})
        answer = wait_for_answer(group)
    assert [bytes(frame) for frame in answer.frames] == [bytes(frame) for frame in frames]
    assert not answer.frames[2].readonly


def test_an_answer_may_come_later_and_from_another_thread() -> None:
    def answer_later(request: object, reply: Reply) -> None:
        threading.Timer(0.05, reply.send, [{"late": True}]).start()

    with run_server(answer_later) as server, connect(server) as group:
        wait_for_change(group, is_connected=True)
        group.send(0, {"get": 1})
        assert wait_for_answer(group).header == {"late": True}


def test_a_request_is_answered_once() -> None:
    replies: list[Reply] = []

    def answer_twice(request: object, reply: Reply) -> None:
        replies.append(reply)
        reply.send({"first": True})

    with run_server(answer_twice) as server, connect(server) as group:
        wait_for_change(group, is_connected=True)
        group.send(0, {"get": 1})
        wait_for_answer(group)
        with pytest.raises(RuntimeError, match="twice"):
            replies[0].send({"second": True})


def test_a_worker_that_comes_back_is_connected_again() -> None:
    with run_server() as server, connect(server) as group:
        port = server.port
        wait_for_change(group, is_connected=True)
        server.close()
        wait_for_change(group, is_connected=False)
        with pytest.raises(NotConnected):
            group.send(0, {"get": 1})
        successor = Server(("127.0.0.1", port), KEY, lambda request, reply: reply.send({"new": 1}))
        successor.start()
        try:
            wait_for_change(group, is_connected=True)
            group.send(0, {"get": 1})
            assert wait_for_answer(group).header == {"new": 1}
        finally:
            successor.close()


def test_events_name_their_worker() -> None:
    with run_server() as first, run_server() as second, connect(first, second) as group:
        assert {wait_for_change(group, is_connected=True).worker for _ in range(2)} == {0, 1}
        group.send(1, {"get": 1})
        assert wait_for_answer(group).worker == 1


def forward_slowly(source: socket.socket, target: socket.socket) -> None:
    """Hand on what comes, at most half a megabyte a second, until one end closes."""
    with contextlib.suppress(OSError):
        while data := source.recv(64 << 10):
            target.sendall(data)
            time.sleep(len(data) / (512 << 10))
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def open_slow_line(server: Server) -> Iterator[int]:
    """Listen on a free port, which leads to the server over a slow line."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:

        def accept() -> None:
            with contextlib.suppress(OSError):
                near = stack.enter_context(listener.accept()[0])
                far = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=forward_slowly, args=ends, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


def test_a_frame_may_be_on_its_way_for_long() -> None:
    frame = bytes(4 << 20)
    with (
        run_server(lambda request, reply: reply.send({}, [b"", frame])) as server,
        open_slow_line(server) as port,
    ):
        group = ClientGroup([("127.0.0.1", port)], KEY)
        group.start()
        try:
            wait_for_change(group, is_connected=True)
            group.send(0, {"get": 1})
            assert bytes(wait_for_answer(group).frames[1]) == frame
        finally:
            group.close()


DEAD_MACHINE = """
import subprocess, sys
from tests.delivery.transport_stage import connect, run_server, wait_for_change

with run_server(lambda request, reply: None) as server, connect(server) as group:
    wait_for_change(group, is_connected=True)
    subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
    if sys.argv[1] == "asked":
        group.send(0, {"get": 1})
    wait_for_change(group, is_connected=False)
"""


@pytest.mark.parametrize("state", ["idle", "asked"])
def test_a_machine_that_is_gone_is_noticed_soon(state: str) -> None:
    # A network of its own, which can be cut; not every machine lets a test have one.
    own_network = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c"]
    begin = "ip link set lo up"
    if (
        shutil.which("unshare") is None
        or subprocess.run([*own_network, begin], check=False, capture_output=True).returncode
    ):
        pytest.skip("this machine lets no test have a network of its own")
    # Its patience is a minute; TCP's own is many.
    subprocess.run(
        [*own_network, f'{begin} && exec "$0" "$@"', sys.executable, "-c", DEAD_MACHINE, state],
        cwd=ROOT,
        env={**BASE_VARIABLES, "PYTHONPATH": f"{ROOT}/delivery/src:{ROOT}"},
        check=True,
    )


def test_an_answer_that_no_message_carries_is_an_error_and_the_next_one_comes() -> None:
    def answer_frames(request: Mapping[str, object], reply: Reply) -> None:
        frames = [b"x"] * 5000 if request["id"] == 1 else []
        reply.send({"id": request["id"]}, frames)

    failures: list[BaseException] = []
    with (
        run_server(answer_frames, on_failure=failures.append) as server,
        connect(server) as group,
    ):
        wait_for_change(group, is_connected=True)
        group.send(0, {"id": 1})
        group.send(0, {"id": 2})
        first, second = wait_for_answer(group).header, wait_for_answer(group).header
    assert (first["id"], first["state"]) == (1, "error")
    assert "5,000 large parts; 4,096 can be delivered" in first["error"]
    assert second == {"id": 2}
    assert [str(failure) for failure in failures] == [first["error"]]


def test_an_answer_whose_id_no_header_carries_is_an_error_without_it() -> None:
    def answer_more(request: Mapping[str, object], reply: Reply) -> None:
        reply.send({"id": request["id"], "more": "x" * 1000})

    with run_server(answer_more) as server, connect(server) as group:
        wait_for_change(group, is_connected=True)
        group.send(0, {"id": "x" * ((1 << 20) - 500)})
        group.send(0, {"id": 2})
        first, second = wait_for_answer(group).header, wait_for_answer(group).header
    assert (first["id"], first["state"]) == (None, "error")
    assert second["id"] == 2


def test_what_ends_the_server_is_told() -> None:
    def fail(request: object, reply: Reply) -> None:
        raise RuntimeError("a mistake")

    failures: list[BaseException] = []
    server = Server(("127.0.0.1", 0), KEY, fail, on_failure=failures.append)
    server.start()
    with connect(server) as group:
        wait_for_change(group, is_connected=True)
        group.send(0, {"get": 1})
        wait_until(lambda: failures)
    server.close()
    assert str(failures[0]) == "a mistake"


def test_more_requests_than_may_be_unanswered_are_refused_aloud() -> None:
    with run_server(lambda request, reply: None) as server, connect(server) as group:
        wait_for_change(group, is_connected=True)
        for number in range(MOST_UNANSWERED + 1):
            group.send(0, {"id": number})
        answer = wait_for_answer(group).header
    assert (answer["id"], answer["state"]) == (MOST_UNANSWERED, "error")


def test_a_port_that_is_taken_is_said() -> None:
    with run_server() as server:
        other = Server(("127.0.0.1", server.port), KEY, lambda request, reply: None)
        with pytest.raises(OSError, match="cannot listen"):
            other.start()
        other.close()

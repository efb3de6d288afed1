"""Requests and answers between ranks and data workers."""

import threading

import pytest

from muster_delivery.client import NotConnected
from muster_delivery.server import Reply, Server
from tests.delivery.transport_stage import (
    KEY,
    connect,
    run_server,
    wait_for_answer,
    wait_for_change,
)


def test_requests_are_answered_in_order() -> None:
    with run_server() as server, connect(server) as group:
        wait_for_change(group, is_connected=True)
        for number in range(100):
            group.send(0, {"number": number})
        answers = [wait_for_answer(group).header for _ in range(100)]
    assert answers == [{"echo": {"number": number}} for number in range(100)]


def test_frames_come_as_they_were_sent() -> None:
    frames = [b"description", bytearray(b""), memoryview(bytes(3_000_000)), b"x" * 70_000]

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


def test_a_port_that_is_taken_is_said() -> None:
    with run_server() as server:
        other = Server(("127.0.0.1", server.port), KEY, lambda request, reply: None)
        with pytest.raises(OSError, match="cannot listen"):
            other.start()
        other.close()

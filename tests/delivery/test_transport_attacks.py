"""What strangers send to a data worker or a rank: nothing of it is decoded, and nobody suffers."""

import contextlib
import json
import logging
import pickle
import queue
import resource
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
import zmq

from muster_delivery.authentication import (
    Key,
    NotAuthentic,
    Session,
    TicketGate,
    create_ticket,
    prove_client,
)
from muster_delivery.client import ClientGroup, _connect, _Connection, _open_dealer
from muster_delivery.messages import HELLO, MESSAGE, PROOF, build_message, open_message
from muster_delivery.server import Reply, Server
from tests.delivery.transport_stage import (
    KEY,
    OTHER_KEY,
    PATIENCE,
    connect,
    run_server,
    wait_for_answer,
    wait_for_change,
    wait_until,
)

NONCE = bytes(32)


@contextlib.contextmanager
def open_dealer(server: Server, ticket: tuple[str, str] | None) -> Iterator[zmq.Socket[bytes]]:
    """Connect with ZeroMQ alone, as somebody would who writes an attack."""
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.LINGER, 0)
    dealer.setsockopt(zmq.RCVTIMEO, int(PATIENCE * 1000))
    if ticket is not None:
        dealer.setsockopt_string(zmq.PLAIN_USERNAME, ticket[0])
        dealer.setsockopt_string(zmq.PLAIN_PASSWORD, ticket[1])
    dealer.connect(f"tcp://127.0.0.1:{server.port}")
    try:
        yield dealer
    finally:
        dealer.close(0)
        context.term()


def shake_hands(dealer: zmq.Socket[bytes]) -> Session:
    """Prove that we have the key, and return the session."""
    dealer.send_multipart([HELLO, NONCE])
    _, server_nonce, _ = dealer.recv_multipart()
    dealer.send_multipart([PROOF, prove_client(KEY, NONCE, server_nonce)])
    dealer.recv_multipart()
    return Session(KEY, NONCE, server_nonce, is_server=False)


def check_still_serves(server: Server) -> None:
    """Fail unless a rank of the workload is served."""
    with connect(server) as group:
        wait_for_change(group, is_connected=True)
        group.send(0, {"ask": 1})
        assert wait_for_answer(group).header == {"echo": {"ask": 1}}


def test_another_key_is_let_in_nowhere() -> None:
    with run_server() as server, connect(server, key=OTHER_KEY) as group:
        wait_until(lambda: server.refused >= 2)
        assert group.receive(0) is None
        check_still_serves(server)


def test_a_connection_without_a_ticket_sends_nothing() -> None:
    with run_server() as server, open_dealer(server, None) as dealer:
        for _ in range(3):
            dealer.send_multipart([HELLO, NONCE])
        check_still_serves(server)
        assert dealer.poll(200) == 0


def test_a_recorded_ticket_is_good_once() -> None:
    ticket = create_ticket(KEY)
    with run_server() as server, open_dealer(server, ticket) as first:
        shake_hands(first)
        with open_dealer(server, ticket) as second:
            second.send_multipart([HELLO, NONCE])
            wait_until(lambda: server.refused >= 1)
            assert second.poll(200) == 0


def test_a_recorded_handshake_proves_nothing() -> None:
    with run_server() as server:
        with open_dealer(server, create_ticket(KEY)) as first:
            first.send_multipart([HELLO, NONCE])
            _, server_nonce, _ = first.recv_multipart()
            recorded = prove_client(KEY, NONCE, server_nonce)
            first.send_multipart([PROOF, recorded])
            first.recv_multipart()
        with open_dealer(server, create_ticket(KEY)) as second:
            second.send_multipart([HELLO, NONCE])
            second.recv_multipart()
            second.send_multipart([PROOF, recorded])
            wait_until(lambda: server.refused == 1)
            assert second.poll(200) == 0


def test_tickets_that_are_wrong_old_or_malformed_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = TicketGate(KEY)
    name, password = (text.encode() for text in create_ticket(KEY))
    for wrong in (
        (name, password[:-1] + (b"0" if password[-1:] != b"0" else b"1")),
        (name + b"1", password),
        (name, b"\xff" * 64),
        (b"n" * 100_000, password),
        (name, b""),
    ):
        with pytest.raises(NotAuthentic):
            gate.check(*wrong)
    with pytest.raises(NotAuthentic, match="malformed"):
        gate.check(b"soon", KEY.sign(b"ticket", b"soon").hex().encode())
    old = b"1000000000:00"
    with pytest.raises(NotAuthentic, match="old"):
        gate.check(old, KEY.sign(b"ticket", old).hex().encode())
    gate.check(name, password)


def test_a_pickle_of_a_stranger_is_not_loaded() -> None:
    handled: list[object] = []
    bomb = pickle.dumps(threading.Event)
    with (
        run_server(lambda request, reply: handled.append(request)) as server,
        open_dealer(server, create_ticket(KEY)) as dealer,
    ):
        dealer.send_multipart([MESSAGE, bytes(40), b"{}", bomb])
        dealer.send_multipart([bomb])
        dealer.send_multipart([HELLO, NONCE])
        wait_until(lambda: server.refused == 3)
        assert dealer.poll(200) == 0
    assert handled == []


@pytest.mark.parametrize("change", ["header", "repeated", "left out"])
def test_a_request_that_was_changed_repeated_or_left_out_ends_the_session(change: str) -> None:
    handled: list[object] = []
    with (
        run_server(lambda request, reply: handled.append(request)) as server,
        open_dealer(server, create_ticket(KEY)) as dealer,
    ):
        session = shake_hands(dealer)
        good = build_message(session, {"position": 1})
        if change == "header":
            good[0] = bytes(good[0])[:41] + b'{"position":2}'
        elif change == "left out":
            good = build_message(session, {"position": 2})
        else:
            dealer.send_multipart(good)
        dealer.send_multipart(good)
        dealer.send_multipart(build_message(session, {"position": 3}))
        wait_until(lambda: server.refused == 2)
    assert handled == ([{"position": 1}] if change == "repeated" else [])


def test_an_answer_that_was_changed_is_not_opened() -> None:
    for part, changed in ((0, b'{"id":2}'), (1, b"DESCRIPTION"), (2, b"longer than before")):
        ours, theirs = (
            Session(KEY, NONCE, NONCE, is_server=is_server) for is_server in (True, False)
        )
        parts = build_message(ours, {"id": 1}, [b"description", b"buffer"])
        parts[part] = changed if part else bytes(parts[0])[:41] + changed
        with pytest.raises(NotAuthentic):
            open_message(theirs, [memoryview(each) for each in parts])


def let_everybody_in(context: zmq.Context[zmq.Socket[bytes]], gate: zmq.Socket[bytes]) -> None:
    """Accept every ticket, until the context ends."""
    with contextlib.suppress(zmq.ZMQError):
        while True:
            version, request, *_ = gate.recv_multipart()
            gate.send_multipart([version, request, b"200", b"OK", b"", b""])
    gate.close(0)


@contextlib.contextmanager
def run_impostor() -> Iterator[tuple[zmq.Socket[bytes], int]]:
    """Listen as a data worker that has no key, and takes whoever comes."""
    context = zmq.Context()
    gate = context.socket(zmq.REP)
    gate.bind("inproc://zeromq.zap.01")
    thread = threading.Thread(target=let_everybody_in, args=(context, gate))
    thread.start()
    impostor = context.socket(zmq.ROUTER)
    impostor.setsockopt(zmq.PLAIN_SERVER, 1)
    impostor.setsockopt(zmq.RCVTIMEO, int(PATIENCE * 1000))
    try:
        yield impostor, impostor.bind_to_random_port("tcp://127.0.0.1")
    finally:
        impostor.close(0)
        context.term()
        thread.join()


def test_a_server_without_the_key_is_not_believed() -> None:
    with run_impostor() as (impostor, port):
        group = ClientGroup([("127.0.0.1", port)], KEY)
        group.start()
        try:
            identity, *_ = impostor.recv_multipart()
            impostor.send_multipart([identity, b"C", bytes(32), bytes(32)])
            wait_until(lambda: group.list_refusals() == {0: "a signature is wrong"})
            assert group.receive(0) is None
        finally:
            group.close()


def test_garbage_and_half_of_a_greeting_hurt_nobody() -> None:
    with run_server() as server, contextlib.ExitStack() as stack:
        for garbage in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff" * 10_000,
            b"\xff\0\0\0\0\0\0\0\1\x7f",
            b"",
        ):
            link = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            link.sendall(garbage)
        check_still_serves(server)


def test_an_oversized_frame_ends_the_connection_before_it_is_there() -> None:
    with run_server() as server, open_dealer(server, create_ticket(KEY)) as dealer:
        shake_hands(dealer)
        monitor = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        dealer.send_multipart([MESSAGE, bytes(40), bytes(2_000_000)], copy=False)
        assert monitor.poll(int(PATIENCE * 1000)), "it was not ended"
        check_still_serves(server)
        dealer.disable_monitor()
        monitor.close(0)
        # It would have been refused by its seal, had it come whole.
        assert server.refused == 0


def test_a_length_of_many_terabytes_allocates_nothing() -> None:
    with run_server() as server:
        with socket.create_connection(("127.0.0.1", server.port)) as link:
            link.settimeout(PATIENCE)
            # ZMTP 3.1 with PLAIN, then a command that says it is 2 ** 60 bytes long.
            link.sendall(
                b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"PLAIN".ljust(20, b"\0") + bytes(32)
            )
            link.sendall(b"\x06" + struct.pack(">Q", 1 << 60))
            while link.recv(4096):
                pass
        check_still_serves(server)


def test_a_thousand_idle_connections_leave_room_for_the_workload() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    with run_server() as server, contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        check_still_serves(server)
        assert len(server._peers) <= 1


def test_more_clients_than_there_may_be_are_refused() -> None:
    with run_server(most_clients=1) as server, open_dealer(server, create_ticket(KEY)) as first:
        shake_hands(first)
        with open_dealer(server, create_ticket(KEY)) as second:
            second.send_multipart([HELLO, NONCE])
            wait_until(lambda: server.refused == 1)


def test_the_key_is_in_no_text(caplog: pytest.LogCaptureFixture) -> None:
    secret = bytes(range(32)).hex()
    with pytest.raises(ValueError, match="hexadecimal") as caught:
        Key.parse(secret[:-1] + "x")
    with pytest.raises(ValueError, match="fewer") as short:
        Key.parse(secret[:8])
    with pytest.raises(TypeError):
        pickle.dumps(KEY)
    logging.getLogger().warning("%s %r %s", KEY, [KEY], {"key": KEY})
    texts = [str(KEY), repr(KEY), f"{KEY}", repr(caught.value), repr(short.value), caplog.text]
    assert not [text for text in texts if secret[:8] in text or "\\x01\\x02" in text]
    with pytest.raises(TypeError):
        json.dumps(KEY)  # type: ignore[no-untyped-call, unused-ignore]


def test_a_reply_after_the_rank_has_gone_is_dropped() -> None:
    replies: list[Reply] = []
    with run_server(lambda request, reply: replies.append(reply)) as server:
        with connect(server) as group:
            wait_for_change(group, is_connected=True)
            group.send(0, {"ask": 1})
            wait_until(lambda: replies)
        replies[0].send({}, [bytes(1000)])
        with connect(server) as group:
            wait_for_change(group, is_connected=True)


@pytest.mark.timeout(60)
def test_a_connection_that_is_refused_before_it_is_greeted_is_over() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with run_server() as server, _open_dealer(context, OTHER_KEY) as dealer:
        address = ("127.0.0.1", server.port)
        assert _connect(dealer, address)
        wait_until(lambda: server.refused)
        wait_until(lambda: not dealer.poll(0, zmq.POLLOUT))
        connection = _Connection(0, address, OTHER_KEY, queue.SimpleQueue())
        assert not connection._converse(dealer)
        connection.join()
    context.term()

"""The data worker's end: serves requests of ranks over ZeroMQ, which prove to have the key.

A connection is let in by a ticket before ZeroMQ takes any message of it; then both ends prove to
each other that they have the key. Nothing of a peer is decoded that is not authentic.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import zmq

from muster_delivery.authentication import (
    NONCE_BYTES,
    Key,
    NotAuthentic,
    Session,
    TicketGate,
    create_nonce,
    prove_server,
)
from muster_delivery.messages import (
    CHALLENGE,
    HELLO,
    LARGEST_ENVELOPE,
    PROOF,
    WELCOME,
    build_message,
    open_message,
    read_parts,
)
from muster_delivery.sockets import IDLE_SECONDS, WakeUp, build_endpoint, set_options
from muster_delivery.store import Buffer

LINGER_MS = 1000
MOST_UNANSWERED = 1024
LARGEST_NUMBER = 1 << 63
"""Requests have smaller numbers."""
COPY_BYTES = 256 << 10
"""Smaller frames are copied: to learn when their memory is free again costs more than that."""
ZAP_ADDRESS = "inproc://zeromq.zap.01"

Handler = Callable[[Mapping[str, Any], "Reply"], None]


class _Peer:
    """A rank as the server knows it: where it is in the handshake, and its session."""

    def __init__(self, client_nonce: bytes) -> None:
        self.client_nonce = client_nonce
        self.server_nonce = create_nonce()
        self.session: Session | None = None
        self.is_refused = False
        self.unanswered = 0
        self.seen_at = time.monotonic()


class Reply:
    """The way back to a rank for one request; used once, from any thread."""

    def __init__(self, server: Server, identity: bytes, peer: _Peer) -> None:
        self._server = server
        self._target: tuple[bytes, _Peer] | None = (identity, peer)

    def send(self, header: Mapping[str, object], frames: Sequence[Buffer] = ()) -> None:
        """Queue the answer. Nothing happens where the rank has gone meanwhile."""
        target, self._target = self._target, None
        if target is None:
            raise RuntimeError("A request was answered twice.")
        self._server.queue_answer(*target, header, frames)


class Server:
    """Serves the ranks of one data worker, on a thread of its own.

    `handle(request, reply)` is called on that thread, in each rank's order, and must return soon.
    `on_failure` is called there with an answer's error that no message carries, and with what ended
    the thread, when it was not `close`; only then `failure` has it.
    """

    def __init__(
        self,
        address: tuple[str, int],
        key: Key,
        handle: Handler,
        *,
        most_clients: int = 4096,
        on_failure: Callable[[BaseException], None] = lambda failure: None,
    ) -> None:
        self._address = address
        self._key = key
        self._handle = handle
        self._most_clients = most_clients
        self._on_failure = on_failure
        self._gate = TicketGate(self._key)
        self._peers: dict[bytes, _Peer] = {}
        self._outbox: deque[tuple[bytes, _Peer, Mapping[str, object], Sequence[Buffer]]] = deque()
        self._wake_up = WakeUp()
        self._context = zmq.Context()
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="muster-delivery", daemon=True)
        self.refused = 0
        """How many messages were dropped, since they were not authentic."""
        self.failure: BaseException | None = None
        """What ended the thread, when it was not `close`."""

    @property
    def port(self) -> int:
        """The port it listens on, also where any was asked for with 0."""
        return self._address[1]

    def start(self) -> None:
        """Listen. Raises OSError where the address is taken."""
        self._zap = self._context.socket(zmq.REP)
        self._zap.bind(ZAP_ADDRESS)
        self._router = self._context.socket(zmq.ROUTER)
        set_options(self._router, largest=LARGEST_ENVELOPE)
        self._router.setsockopt(zmq.PLAIN_SERVER, 1)
        self._router.setsockopt(zmq.ZAP_DOMAIN, b"muster-delivery")
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._router.setsockopt(zmq.BACKLOG, 1024)
        # What is queued is bounded by what ranks have asked for.
        self._router.setsockopt(zmq.SNDHWM, 0)
        self._router.copy_threshold = COPY_BYTES
        try:
            self._router.bind(build_endpoint(self._address))
        except zmq.ZMQError as error:
            self._router.close(0)
            self._zap.close(0)
            raise OSError(error.errno, f"The data worker cannot listen: {error.strerror}") from None
        endpoint = self._router.getsockopt_string(zmq.LAST_ENDPOINT)
        self._address = (self._address[0], int(endpoint.rpartition(":")[2]))
        self._thread.start()

    def close(self) -> None:
        """End all connections, when what is queued was sent or a second has passed."""
        self._is_closed = True
        self._wake_up.notify()
        if self._thread.ident is None:
            self._context.destroy(linger=0)
            self._wake_up.close()
        elif self._thread is not threading.current_thread():
            self._thread.join()

    def queue_answer(
        self,
        identity: bytes,
        peer: _Peer,
        header: Mapping[str, object],
        frames: Sequence[Buffer],
    ) -> None:
        """Queue an answer; any thread may."""
        self._outbox.append((identity, peer, header, frames))
        # The server's own thread sends it when the handler has returned.
        if threading.get_ident() != self._thread.ident:
            self._wake_up.notify()

    def _serve(self) -> None:
        poller = zmq.Poller()
        for each in (self._zap, self._router, self._wake_up.reader):
            poller.register(each, zmq.POLLIN)
        forget_at = 0.0
        try:
            while not self._is_closed:
                ready = dict(poller.poll(1000))
                if self._wake_up.reader.fileno() in ready:
                    self._wake_up.clear()
                if self._zap in ready:
                    self._let_in()
                if self._router in ready:
                    self._receive_messages()
                self._send_answers()
                if time.monotonic() > forget_at:
                    forget_at = time.monotonic() + IDLE_SECONDS
                    self._forget_silent_peers()
            self._send_answers()
        except BaseException as error:  # noqa: BLE001 - whoever owns the server is told of it
            self.failure = error
            self._on_failure(error)
        finally:
            self._zap.close(0)
            self._router.close(LINGER_MS)
            self._context.term()
            self._wake_up.close()

    def _let_in(self) -> None:
        """Answer whether a connection has a good ticket, before it can send a message."""
        version, request, *others = self._zap.recv_multipart()
        status, text = b"200", b"OK"
        try:
            if len(others) != 6 or others[3] != b"PLAIN":
                raise NotAuthentic("a connection has no ticket")
            self._gate.check(others[4], others[5])
        except NotAuthentic as error:
            status, text = b"400", str(error).encode()
            self.refused += 1
        self._zap.send_multipart([version, request, status, text, b"", b""])

    def _receive_messages(self) -> None:
        # Answers wait no longer than for so many messages.
        for _ in range(32):
            try:
                identity, *parts = self._router.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            self._take_message(identity.bytes, [part.buffer for part in parts])

    def _take_message(self, identity: bytes, parts: Sequence[memoryview]) -> None:
        peer = self._peers.get(identity)
        try:
            if peer is None:
                self._greet(identity, parts)
            elif peer.is_refused:
                self.refused += 1
            elif peer.session is None:
                self._welcome(identity, peer, parts)
            else:
                peer.seen_at = time.monotonic()
                self._take_request(identity, peer, peer.session, parts)
        except NotAuthentic:
            # ROUTER cannot end one connection: nothing that still comes of it is looked at.
            self.refused += 1
            peer = self._peers.setdefault(identity, peer or _Peer(b""))
            peer.is_refused, peer.session = True, None

    def _greet(self, identity: bytes, parts: Sequence[memoryview]) -> None:
        kind, client_nonce = read_parts(parts, 1, NONCE_BYTES)
        if kind != HELLO or len(self._peers) >= self._most_clients:
            raise NotAuthentic("no greeting, or too many clients")
        peer = self._peers[identity] = _Peer(client_nonce)
        proof = prove_server(self._key, client_nonce, peer.server_nonce)
        self._send(identity, [CHALLENGE, peer.server_nonce, proof])

    def _welcome(self, identity: bytes, peer: _Peer, parts: Sequence[memoryview]) -> None:
        kind, proof = read_parts(parts, 1, 32)
        nonces = peer.client_nonce, peer.server_nonce
        if kind != PROOF:
            raise NotAuthentic("no proof")
        self._key.verify(proof, b"client", *nonces)
        peer.session = Session(self._key, *nonces, is_server=True)
        self._send(identity, [WELCOME])

    def _take_request(
        self, identity: bytes, peer: _Peer, session: Session, parts: Sequence[memoryview]
    ) -> None:
        if len(parts) != 1:
            raise NotAuthentic("a request has frames")
        request = open_message(session, parts)
        if not request:
            return
        peer.unanswered += 1
        reply = Reply(self, identity, peer)
        if peer.unanswered > MOST_UNANSWERED:
            reply.send(_build_refusal(request, "too many requests of a rank are unanswered"))
        else:
            self._handle(request, reply)

    def _send_answers(self) -> None:
        while self._outbox:
            identity, peer, header, frames = self._outbox.popleft()
            peer.unanswered -= 1
            # A rank that has gone, or came anew under another identity, has no use for it.
            if peer.session is not None and self._peers.get(identity) is peer:
                self._send(identity, self._build_answer(peer.session, header, frames))

    def _build_answer(
        self, session: Session, header: Mapping[str, object], frames: Sequence[Buffer]
    ) -> list[Buffer]:
        """Build an answer; one that says so where no message carries this one."""
        try:
            return build_message(session, header, frames)
        except ValueError as error:
            self._on_failure(error)
            return build_message(session, _build_refusal(header, str(error)))

    def _send(self, identity: bytes, parts: Sequence[Buffer]) -> None:
        try:
            self._router.send_multipart([identity, *parts], copy=False)
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self._peers.pop(identity, None)

    def _forget_silent_peers(self) -> None:
        oldest = time.monotonic() - 3 * IDLE_SECONDS
        for identity in [name for name, peer in self._peers.items() if peer.seen_at < oldest]:
            del self._peers[identity]


def _build_refusal(header: Mapping[str, object], text: str) -> dict[str, object]:
    number = header.get("id")
    # Anything else may itself be what is too large for a header.
    is_number = isinstance(number, int) and abs(number) < LARGEST_NUMBER
    return {"id": number if is_number else None, "state": "error", "error": text}

"""Requests and batches between data workers and ranks, over ZeroMQ, mutually authenticated.

A connection is let in by a ticket before ZeroMQ takes any message of it; then both ends prove to
each other that they have the key. What is not authentic ends the connection, undecoded.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Union

import zmq
from zmq.utils.monitor import recv_monitor_message

from muster_delivery.authentication import (
    NONCE_BYTES,
    Key,
    NotAuthentic,
    Session,
    TicketGate,
    create_nonce,
    create_ticket,
    prove_client,
    prove_server,
)
from muster_delivery.messages import (
    CHALLENGE,
    HELLO,
    LARGEST_ENVELOPE,
    LARGEST_FRAME,
    PROOF,
    WELCOME,
    build_message,
    open_message,
)
from muster_delivery.store import Buffer

HEARTBEAT_MS = 1000
SILENCE_MS = 3000
"""A peer that answered no heartbeat for so long is gone."""
HANDSHAKE_MS = 5000
LINGER_MS = 1000
RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)
IDLE_SECONDS = 30.0
"""A rank says so often that it is there; the server forgets one that was silent three times."""
MOST_UNANSWERED = 1024
COPY_BYTES = 256 << 10
"""Smaller frames are copied: to learn when their memory is free again costs more than that."""
ZAP_ADDRESS = "inproc://zeromq.zap.01"

Handler = Callable[[Mapping[str, Any], "Reply"], None]


class NotConnected(Exception):
    """There is no connection with the data worker now."""


class WakeUp:
    """Lets other threads wake one that polls."""

    def __init__(self) -> None:
        self.reader, self._writer = socket.socketpair()
        self._is_notified = False
        self.reader.setblocking(False)
        self._writer.setblocking(False)

    def notify(self) -> None:
        """Wake the thread; also before it polls."""
        if self._is_notified:
            return
        self._is_notified = True
        # A closed one has nobody to wake.
        with contextlib.suppress(OSError):
            self._writer.send(b"w")

    def clear(self) -> None:
        """Take all that woke it; whatever is looked at afterwards was not yet notified of."""
        with contextlib.suppress(BlockingIOError):
            self.reader.recv(4096)
        self._is_notified = False

    def close(self) -> None:
        """Give both ends back."""
        self.reader.close()
        self._writer.close()


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
    """

    def __init__(
        self, address: tuple[str, int], key: Key, handle: Handler, *, most_clients: int = 4096
    ) -> None:
        self._address = address
        self._key = key
        self._handle = handle
        self._most_clients = most_clients
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
        _set_options(self._router, largest=LARGEST_ENVELOPE)
        self._router.setsockopt(zmq.PLAIN_SERVER, 1)
        self._router.setsockopt(zmq.ZAP_DOMAIN, b"muster-delivery")
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._router.setsockopt(zmq.BACKLOG, 1024)
        # What is queued is bounded by what ranks have asked for.
        self._router.setsockopt(zmq.SNDHWM, 0)
        self._router.copy_threshold = COPY_BYTES
        try:
            self._router.bind(_build_endpoint(self._address))
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
        except BaseException as error:  # noqa: BLE001 - whoever owns the server reads it
            self.failure = error
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
        kind, client_nonce = _read_parts(parts, 1, NONCE_BYTES)
        if kind != HELLO or len(self._peers) >= self._most_clients:
            raise NotAuthentic("no greeting, or too many clients")
        peer = self._peers[identity] = _Peer(client_nonce)
        proof = prove_server(self._key, client_nonce, peer.server_nonce)
        self._send(identity, [CHALLENGE, peer.server_nonce, proof])

    def _welcome(self, identity: bytes, peer: _Peer, parts: Sequence[memoryview]) -> None:
        kind, proof = _read_parts(parts, 1, 32)
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
        if peer.unanswered > MOST_UNANSWERED:
            raise NotAuthentic("too many requests at once")
        self._handle(request, Reply(self, identity, peer))

    def _send_answers(self) -> None:
        while self._outbox:
            identity, peer, header, frames = self._outbox.popleft()
            peer.unanswered -= 1
            # A rank that has gone, or came anew under another identity, has no use for it.
            if peer.session is not None and self._peers.get(identity) is peer:
                self._send(identity, build_message(peer.session, header, frames))

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


@dataclass(frozen=True)
class Answer:
    """What a data worker answered: its number in the group, the header and the frames."""

    worker: int
    header: Mapping[str, Any]
    frames: list[memoryview]


@dataclass(frozen=True)
class ConnectionChange:
    """A connection with a data worker has been made or lost.

    What was asked of it before it was lost will not be answered.
    """

    worker: int
    is_connected: bool


Event = Union[Answer, ConnectionChange]


class ClientGroup:
    """The connections of one rank with all data workers; they reconnect.

    Answers and changes of all data workers come out of one queue, in the order they happened.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], key: Key) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._connections = [
            _Connection(worker, address, key, self._events)
            for worker, address in enumerate(addresses)
        ]

    def start(self) -> None:
        """Begin to connect with all of them."""
        for connection in self._connections:
            connection.start()

    def send(self, worker: int, request: Mapping[str, object]) -> None:
        """Queue a request to a data worker, not an empty one. Raises NotConnected."""
        self._connections[worker].send(request)

    def receive(self, timeout: float | None) -> Event | None:
        """Return the next event of any data worker; None when there was none in time."""
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            return None

    def list_refusals(self) -> dict[int, str]:
        """Return why the last connection of a data worker ended that could not prove to be one."""
        return {each.worker: each.refusal for each in self._connections if each.refusal}

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections:
            connection.stop()
        for connection in self._connections:
            connection.join()


class _Connection(threading.Thread):
    """The connection with one data worker, on a thread of its own."""

    def __init__(
        self, worker: int, address: tuple[str, int], key: Key, events: queue.SimpleQueue[Event]
    ) -> None:
        super().__init__(name=f"muster-delivery-{worker}", daemon=True)
        self.worker = worker
        self.refusal = ""
        self._address = address
        self._key = key
        self._events = events
        self._outbox: deque[Mapping[str, object]] = deque()
        self._wake_up = WakeUp()
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._is_closed = False

    def send(self, request: Mapping[str, object]) -> None:
        with self._lock:
            if self._session is None:
                raise NotConnected(f"There is no connection with data worker {self.worker}.")
            self._outbox.append(request)
        self._wake_up.notify()

    def stop(self) -> None:
        """End soon."""
        self._is_closed = True
        self._wake_up.notify()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, if it was ever begun."""
        if self.ident is None:
            self._wake_up.close()
        else:
            super().join(timeout)

    def run(self) -> None:
        context = zmq.Context()
        tries = 0
        try:
            while not self._is_closed:
                with _open_dealer(context, self._key) as dealer:
                    if _connect(dealer, self._address):
                        tries = 0 if self._converse(dealer) else tries
                self._wait(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
                tries += 1
        finally:
            context.destroy(linger=0)
            self._wake_up.close()

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._is_closed and (left := deadline - time.monotonic()) > 0:
            poller = zmq.Poller()
            poller.register(self._wake_up.reader, zmq.POLLIN)
            if poller.poll(int(left * 1000) + 1):
                self._wake_up.clear()

    def _converse(self, dealer: zmq.Socket[bytes]) -> bool:
        """Greet and exchange messages until the connection ends; tell whether there was one."""
        monitor = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)
        handshake = _ClientHandshake(self._key)
        was_connected = False
        try:
            dealer.send_multipart(handshake.greet())
            session = self._shake_hands(dealer, monitor, handshake)
            if session is not None:
                was_connected = True
                self._set_session(session)
                self._exchange(dealer, monitor, session)
        except NotAuthentic as error:
            self.refusal = str(error)
        finally:
            if was_connected:
                self._set_session(None)
            dealer.disable_monitor()
            monitor.close(0)
        return was_connected

    def _shake_hands(
        self, dealer: zmq.Socket[bytes], monitor: zmq.Socket[bytes], handshake: _ClientHandshake
    ) -> Session | None:
        deadline = time.monotonic() + HANDSHAKE_MS / 1000
        poller = self._build_poller(dealer, monitor)
        while not self._is_closed and (left := deadline - time.monotonic()) > 0:
            ready = dict(poller.poll(int(left * 1000) + 1))
            if self._wake_up.reader.fileno() in ready:
                self._wake_up.clear()
            if dealer in ready:
                parts = [part.buffer for part in dealer.recv_multipart(copy=False)]
                if handshake.session is not None:
                    if [bytes(part[:2]) for part in parts] != [WELCOME]:
                        raise NotAuthentic("no welcome")
                    return handshake.session
                dealer.send_multipart(handshake.answer(parts))
            elif monitor in ready:
                return None
        return None

    def _exchange(
        self, dealer: zmq.Socket[bytes], monitor: zmq.Socket[bytes], session: Session
    ) -> None:
        poller = self._build_poller(dealer, monitor)
        alive_at = time.monotonic()
        while not self._is_closed:
            ready = dict(poller.poll(1000))
            if self._wake_up.reader.fileno() in ready:
                self._wake_up.clear()
            while self._outbox:
                dealer.send_multipart(build_message(session, self._outbox.popleft()))
            if time.monotonic() > alive_at + IDLE_SECONDS:
                alive_at = time.monotonic()
                dealer.send_multipart(build_message(session, {}))
            if dealer in ready:
                self._receive_answers(dealer, session)
            if monitor in ready:
                recv_monitor_message(monitor)
                # What came before the end is still good.
                self._receive_answers(dealer, session)
                return

    def _receive_answers(self, dealer: zmq.Socket[bytes], session: Session) -> None:
        while True:
            try:
                parts = dealer.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            buffers = [part.buffer for part in parts]
            header = open_message(session, buffers)
            self._events.put(Answer(self.worker, header, buffers[1:]))

    def _set_session(self, session: Session | None) -> None:
        with self._lock:
            self._session = session
            self._outbox.clear()
        self._events.put(ConnectionChange(self.worker, session is not None))

    def _build_poller(self, *sockets: zmq.Socket[bytes]) -> zmq.Poller:
        poller = zmq.Poller()
        for each in (*sockets, self._wake_up.reader):
            poller.register(each, zmq.POLLIN)
        return poller


class _ClientHandshake:
    """The client's side of the mutual proof."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._nonce = create_nonce()
        self.session: Session | None = None

    def greet(self) -> list[bytes]:
        return [HELLO, self._nonce]

    def answer(self, parts: Sequence[memoryview]) -> list[bytes]:
        """Return this end's proof, when the server's is right. Raises NotAuthentic."""
        kind, server_nonce, proof = _read_parts(parts, 1, NONCE_BYTES, 32)
        if kind != CHALLENGE:
            raise NotAuthentic("no challenge")
        self._key.verify(proof, b"server", self._nonce, server_nonce)
        self.session = Session(self._key, self._nonce, server_nonce, is_server=False)
        return [PROOF, prove_client(self._key, self._nonce, server_nonce)]


def _read_parts(parts: Sequence[memoryview], *lengths: int) -> list[bytes]:
    """Return parts of exactly these lengths. Raises NotAuthentic for others."""
    if [part.nbytes for part in parts] != list(lengths):
        raise NotAuthentic("a message of the handshake has another layout")
    return [bytes(part) for part in parts]


def _set_options(each: zmq.Socket[bytes], *, largest: int) -> None:
    each.setsockopt(zmq.LINGER, 0)
    each.setsockopt(zmq.IPV6, 1)
    each.setsockopt(zmq.MAXMSGSIZE, largest)
    each.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    each.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
    each.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENCE_MS)


@contextlib.contextmanager
def _open_dealer(context: zmq.Context[Any], key: Key) -> Iterator[zmq.Socket[bytes]]:
    dealer = context.socket(zmq.DEALER)
    _set_options(dealer, largest=LARGEST_FRAME)
    # A ticket is good once: each try is a socket of its own.
    dealer.setsockopt(zmq.RECONNECT_IVL, -1)
    dealer.setsockopt(zmq.CONNECT_TIMEOUT, SILENCE_MS)
    name, password = create_ticket(key)
    dealer.setsockopt_string(zmq.PLAIN_USERNAME, name)
    dealer.setsockopt_string(zmq.PLAIN_PASSWORD, password)
    try:
        yield dealer
    finally:
        dealer.close(0)


def _connect(dealer: zmq.Socket[bytes], address: tuple[str, int]) -> bool:
    """Begin to connect; False where the host has no address yet."""
    host, port = address
    try:
        # Looked up here: ZeroMQ would do it on the thread that moves the data.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    dealer.connect(_build_endpoint((str(found[0][4][0]), port)))
    return True


def _build_endpoint(address: tuple[str, int]) -> str:
    host, port = address
    if not host:
        host = "*"
    elif ":" in host:
        host = f"[{host}]"
    return f"tcp://{host}:{port or '*'}"

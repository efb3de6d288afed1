"""A rank's end: its connections with all data workers over ZeroMQ, which reconnect.

Both ends prove to each other that they have the key. A connection whose other end sends what is
not authentic ends, and nothing of it is decoded.
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
from typing import Any, Union

import zmq
from zmq.utils.monitor import recv_monitor_message

from muster_delivery.authentication import (
    NONCE_BYTES,
    Key,
    NotAuthentic,
    Session,
    create_nonce,
    create_ticket,
    prove_client,
)
from muster_delivery.messages import (
    CHALLENGE,
    HELLO,
    LARGEST_FRAME,
    PROOF,
    WELCOME,
    build_message,
    open_message,
    read_parts,
)
from muster_delivery.sockets import (
    CONNECT_MS,
    HANDSHAKE_MS,
    IDLE_SECONDS,
    WakeUp,
    build_endpoint,
    set_options,
)

RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)


class NotConnected(Exception):
    """There is no connection with the data worker now."""


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
        while not self._is_closed and (seconds_left := deadline - time.monotonic()) > 0:
            poller = zmq.Poller()
            poller.register(self._wake_up.reader, zmq.POLLIN)
            if poller.poll(int(seconds_left * 1000) + 1):
                self._wake_up.clear()

    def _converse(self, dealer: zmq.Socket[bytes]) -> bool:
        """Greet and exchange messages until the connection ends; tell whether there was one."""
        monitor = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)
        handshake = _ClientHandshake(self._key)
        was_connected = False
        try:
            dealer.send_multipart(handshake.greet(), zmq.NOBLOCK)
            session = self._shake_hands(dealer, monitor, handshake)
            if session is not None:
                was_connected = True
                self._set_session(session)
                self._exchange(dealer, monitor, session)
        except NotAuthentic as error:
            self.refusal = str(error)
        except zmq.Again:
            # It has ended: what is sent to a connection that is gone would wait for ever.
            pass
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
        while not self._is_closed and (seconds_left := deadline - time.monotonic()) > 0:
            ready = dict(poller.poll(int(seconds_left * 1000) + 1))
            if self._wake_up.reader.fileno() in ready:
                self._wake_up.clear()
            if dealer in ready:
                parts = [part.buffer for part in dealer.recv_multipart(copy=False)]
                if handshake.session is not None:
                    if [bytes(part[:2]) for part in parts] != [WELCOME]:
                        raise NotAuthentic("no welcome")
                    return handshake.session
                dealer.send_multipart(handshake.answer(parts), zmq.NOBLOCK)
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
            if time.monotonic() > alive_at + IDLE_SECONDS:
                alive_at = time.monotonic()
                self._outbox.append({})
            # What a slow data worker does not take yet is sent in a later turn.
            while self._outbox and dealer.poll(0, zmq.POLLOUT):
                message = build_message(session, self._outbox.popleft())
                dealer.send_multipart(message, zmq.NOBLOCK)
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
        kind, server_nonce, proof = read_parts(parts, 1, NONCE_BYTES, 32)
        if kind != CHALLENGE:
            raise NotAuthentic("no challenge")
        self._key.verify(proof, b"server", self._nonce, server_nonce)
        self.session = Session(self._key, self._nonce, server_nonce, is_server=False)
        return [PROOF, prove_client(self._key, self._nonce, server_nonce)]


@contextlib.contextmanager
def _open_dealer(context: zmq.Context[Any], key: Key) -> Iterator[zmq.Socket[bytes]]:
    dealer = context.socket(zmq.DEALER)
    set_options(dealer, largest=LARGEST_FRAME)
    # A ticket is good once: each try is a socket of its own.
    dealer.setsockopt(zmq.RECONNECT_IVL, -1)
    dealer.setsockopt(zmq.CONNECT_TIMEOUT, CONNECT_MS)
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
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    dealer.connect(build_endpoint((str(addresses[0][4][0]), port)))
    return True

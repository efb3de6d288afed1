"""A server and clients of the delivery's transport, on loopback."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from muster_delivery.authentication import Key
from muster_delivery.client import Answer, ClientGroup, ConnectionChange, Event
from muster_delivery.server import Handler, Reply, Server

KEY = Key(bytes(range(32)))
OTHER_KEY = Key(bytes(range(1, 33)))
PATIENCE = 180.0


def echo_request(request: Mapping[str, Any], reply: Reply) -> None:
    """Answer what was asked."""
    reply.send({"echo": request})


@contextlib.contextmanager
def run_server(handle: Handler = echo_request, **options: Any) -> Iterator[Server]:
    """Serve on a free port."""
    server = Server(("127.0.0.1", 0), KEY, handle, **options)
    server.start()
    try:
        yield server
    finally:
        server.close()
        assert server.failure is None


@contextlib.contextmanager
def connect(*servers: Server, key: Key = KEY) -> Iterator[ClientGroup]:
    """Begin to connect with servers."""
    group = ClientGroup([("127.0.0.1", server.port) for server in servers], key)
    group.start()
    try:
        yield group
    finally:
        group.close()


def wait_for_event(group: ClientGroup) -> Event:
    """Return the next event; fails when there is none."""
    event = group.receive(PATIENCE)
    assert event is not None, "nothing came"
    return event


def wait_for_change(group: ClientGroup, *, is_connected: bool) -> ConnectionChange:
    """Return the next change, which is to be of this kind."""
    event = wait_for_event(group)
    assert isinstance(event, ConnectionChange)
    assert event.is_connected == is_connected
    return event


def wait_for_answer(group: ClientGroup) -> Answer:
    """Return the next event, which is to be an answer."""
    event = wait_for_event(group)
    assert isinstance(event, Answer)
    return event


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)

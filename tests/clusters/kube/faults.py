"""A server on loopback that answers as a script says: faults of a server, over real sockets."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from clusters.kube.access import ClusterAccess


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Exchange:
    """One request, and the connection to answer it on."""

    def __init__(self, request: Request, connection: socket.socket, over: threading.Event) -> None:
        self.request = request
        self.over = over
        self.open = True
        self._connection = connection

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def head(self, status: int = 200, *more: str) -> None:
        self.send(
            "\r\n".join(
                [f"HTTP/1.1 {status} Whatever", "Content-Type: application/json", *more, "", ""]
            ).encode()
        )

    def answer(self, status: int, body: bytes, *more: str) -> None:
        self.head(status, f"Content-Length: {len(body)}", *more)
        self.send(body)

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def silence(self) -> None:
        """Keep the connection open and say nothing more until the test is over."""
        self.over.wait()
        self.open = False

    def reset(self) -> None:
        """Cut the connection with a TCP reset."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self.open = False
        self._connection.close()


Step = Callable[[Exchange], None]


class FaultServer:
    """Answers the requests, in the order they come, by one step each; the last step answers all
    that follow. `port` is that of a server that went away; 0 takes a free one.
    """

    def __init__(self, *steps: Step, port: int = 0) -> None:
        self.steps = list(steps)
        self.requests: list[Request] = []
        self.arrived = threading.Condition()
        self._over = threading.Event()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    @property
    def access(self) -> ClusterAccess:
        return ClusterAccess(f"http://127.0.0.1:{self.port}", token="secret-token")

    def wait_for(self, count: int, within: float = 30.0) -> None:
        """Wait until so many requests have arrived."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, within), (
                f"only {len(self.requests)} requests came"
            )

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as incoming:
            while not self._over.is_set() and (request := _read_request(incoming)) is not None:
                with self.arrived:
                    step = self.steps[min(len(self.requests), len(self.steps) - 1)]
                    self.requests.append(request)
                    self.arrived.notify_all()
                exchange = Exchange(request, connection, self._over)
                step(exchange)
                if not exchange.open:
                    return


def _read_request(incoming: Any) -> Request | None:
    line = incoming.readline()
    if not line:
        return None
    method, target, _ = line.decode().split(" ")
    headers: dict[str, str] = {}
    while (header := incoming.readline().decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    url = urlsplit(target)
    return Request(
        method,
        url.path,
        dict(parse_qsl(url.query)),
        headers,
        incoming.read(int(headers.get("content-length", 0))),
    )


def pod(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
        },
        **more,
    }


def frame(kind: str, name: str, version: int, **more: Any) -> bytes:
    return json.dumps({"type": kind, "object": pod(name, version, **more)}).encode() + b"\n"


def status(code: int, reason: str, message: str = "told", **more: Any) -> bytes:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        **more,
    }
    return json.dumps(body).encode()


def listing(version: int, *names: str, token: str = "") -> Step:
    """A page of a list, its objects of the list's version."""
    metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    body = json.dumps(
        {"kind": "PodList", "metadata": metadata, "items": [pod(name, version) for name in names]}
    ).encode()
    return lambda exchange: exchange.answer(200, body)


def refusal(code: int, reason: str, *headers: str, **more: Any) -> Step:
    return lambda exchange: exchange.answer(code, status(code, reason, **more), *headers)


def answer_plain(code: int, body: bytes) -> Step:
    """An answer whose body need not be a Status."""
    return lambda exchange: exchange.answer(code, body)


def watch(*lines: bytes, then: Step | None = None) -> Step:
    """The start of a watch, each line a chunk of its own; then something worse, or silence."""

    def step(exchange: Exchange) -> None:
        exchange.head(200, "Transfer-Encoding: chunked")
        for line in lines:
            exchange.chunk(line)
        (then or Exchange.silence)(exchange)

    return step


def end_watch(exchange: Exchange) -> None:
    """End a watch properly."""
    exchange.send(b"0\r\n\r\n")

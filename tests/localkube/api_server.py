"""A real API server for tests: TLS on loopback over a store of its own, in a thread.

The test sets what its machine answers.
"""

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localkube import resources
from localkube.api.application import Application, ConcurrencyLimits
from localkube.api.listener import ConnectionLimits, Listener
from localkube.machine import LogOptions, Usage
from localkube.metadata import Object, uid_of
from localkube.objects import Objects
from localkube.resources import NAMESPACES
from localkube.store import Store

TOKEN = "a-token-for-tests"
DEADLINE = 60.0


class FakeMachine:
    """Answers what the test sets; `endless` logs go on until their reader leaves."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.refusal: Exception | None = None
        self.last_options: LogOptions | None = None
        self.endless = False
        self.reader_left = threading.Event()
        self.pods: dict[str, dict[str, Usage]] = {}
        self.nodes: dict[str, Usage] = {}

    async def read_log(
        self, pod: Object, container: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        self.last_options = options
        if self.refusal is not None:
            raise self.refusal
        try:
            for chunk in self.chunks:
                yield chunk
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.reader_left.set()

    def pod_usage(self) -> Mapping[str, Mapping[str, Usage]]:
        return self.pods

    def node_usage(self) -> Mapping[str, Usage]:
        return self.nodes


class Answer:
    """A response, read to its end."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ApiServer:
    """The server, with methods to talk to it and to reach the objects behind it."""

    def __init__(
        self,
        directory: Path,
        limits: ConnectionLimits | None = None,
        concurrency: ConcurrencyLimits | None = None,
    ) -> None:
        self.directory = directory
        self.limits = limits or ConnectionLimits()
        self.concurrency = concurrency or ConcurrencyLimits()
        self.machine = FakeMachine()
        self.objects: Objects
        self.listener: Listener
        self._watching: list[http.client.HTTPSConnection] = []
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="api-server")

    def start(self) -> None:
        context = server_context(self.directory)
        self._thread.start()
        self.call(lambda: self._build(context))
        self.wait(self.listener.start())
        self.trust = ssl.create_default_context(cafile=str(self.directory / "cert.pem"))

    def _build(self, context: ssl.SSLContext) -> None:
        def fields(key: str, obj: Object) -> Mapping[str, str]:
            resource = resources.find_by_key(key)
            if resource is None:
                return {}
            return {path: read_field(obj) for path, read_field in resource.field_selectors.items()}

        self.objects = Objects(Store(self.directory / "state.db", fields))
        for name in ("default", "team-a"):
            self.objects.create(NAMESPACES, "", {"metadata": {"name": name}})
        self.listener = Listener(
            Application(self.objects, self.machine, TOKEN, limits=self.concurrency),
            context,
            0,
            self.limits,
        )

    def stop(self, grace: float = 1.0) -> None:
        for connection in self._watching:
            connection.close()
        self.wait(self.listener.stop(grace))
        self.call(self.objects.store.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function in the server's thread, and return its result."""

        async def work() -> Any:
            return function()

        return self.wait(work())

    def wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE)

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.listener.port, timeout=DEADLINE, context=self.trust
        )

    def send(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: Any = None,
        **headers: str,
    ) -> http.client.HTTPResponse:
        """Send a request on an open connection.

        A body that is no bytes is sent as JSON. Header names are written with _ for -.
        """
        request_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if "authorization" not in request_headers:
            request_headers["authorization"] = f"Bearer {TOKEN}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            request_headers.setdefault("content-type", "application/json")
        connection.request(
            method, path, body, {name: value for name, value in request_headers.items() if value}
        )
        return connection.getresponse()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = self.connect()
        try:
            return Answer(self.send(connection, method, path, body, **headers))
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def frames(self, path: str, **headers: str) -> Generator[Any, None, None]:
        """Yield the events of a watch, as they come, until the caller or the test ends."""
        connection = self.connect()
        self._watching.append(connection)
        try:
            response = self.send(connection, "GET", path, **headers)
            assert response.status == 200, response.read()
            while line := response.readline():
                yield json.loads(line)
        finally:
            connection.close()


def server_context(directory: Path) -> ssl.SSLContext:
    """Build a TLS context with a new certificate for 127.0.0.1.

    The certificate is left in `directory` for clients to trust.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (directory / "cert.pem").write_bytes(certificate.public_bytes(pem))
    no_encryption = serialization.NoEncryption()
    (directory / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, no_encryption)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return context


def job(name: str, **metadata: Any) -> Object:
    """Build a PyTorchJob of one worker group."""
    template = {
        "spec": {"containers": [{"name": "pytorch", "image": "train:1", "command": ["true"]}]}
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, **metadata},
        "spec": {
            "pytorchReplicaSpecs": {
                "Worker": {"replicas": 3, "restartPolicy": "OnFailure", "template": template}
            }
        },
    }


def pod(name: str, *containers: str, node: str = "", **metadata: Any) -> Object:
    spec: Object = {
        "containers": [{"name": each, "image": "train:1"} for each in containers or ("main",)]
    }
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def usage(nanocores: int, memory: int) -> Usage:
    return Usage(nanocores, memory, datetime(2026, 1, 1, tzinfo=UTC), 15.0)


def uid(obj: Object) -> str:
    return uid_of(obj)

"""Plain HTTP to a Kubernetes API: no models, no retries, one connection for each user of it."""

import base64
import http.client
import json
import socket
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

TIMEOUT = 120.0
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The API answered with an error; the text has the code and the start of the body."""


@dataclass(frozen=True)
class Server:
    """The address of an API server and the credentials for it."""

    host: str
    port: int
    context: ssl.SSLContext | None
    """None for plain HTTP."""
    token: str

    @classmethod
    def from_kubeconfig(cls, kubeconfig: Path) -> "Server":
        """Parse the current context of a kubeconfig: a token or a client certificate, inline or in
        files.
        """
        config = yaml.safe_load(kubeconfig.read_text())
        chosen = _get_entry(config["contexts"], config["current-context"])["context"]
        cluster = _get_entry(config["clusters"], chosen["cluster"])["cluster"]
        user = _get_entry(config["users"], chosen["user"])["user"]
        address = urlsplit(cluster["server"])
        if address.scheme == "http":
            return cls(address.hostname or "", address.port or 80, None, user.get("token", ""))
        context = ssl.create_default_context()
        authority = _read_content(cluster, "certificate-authority", kubeconfig.parent)
        if authority:
            context.load_verify_locations(cadata=authority.decode())
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        certificate, key = (
            _read_content(user, part, kubeconfig.parent)
            for part in ("client-certificate", "client-key")
        )
        if certificate and key:
            with tempfile.NamedTemporaryFile() as file:
                file.write(certificate + b"\n" + key)
                file.flush()
                context.load_cert_chain(file.name)
        return cls(address.hostname or "", address.port or 443, context, user.get("token", ""))

    def headers(self, accept: str = "application/json") -> dict[str, str]:
        login = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"Accept": accept, "User-Agent": "benchmark"} | login


def open_http(server: Server) -> http.client.HTTPConnection:
    """Return a connection of the standard library, which is not connected yet."""
    if server.context is None:
        return http.client.HTTPConnection(server.host, server.port, timeout=TIMEOUT)
    return http.client.HTTPSConnection(
        server.host, server.port, context=server.context, timeout=TIMEOUT
    )


class Connection:
    """One kept-alive connection, for one thread."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._http = open_http(server)
        self._http.connect()
        self._http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *failure: object) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        accept: str = "application/json",
        media: str = "application/json",
    ) -> bytes:
        """Send a request and return the body of the answer. Raises ApiError for a code
        above 299.
        """
        headers = self.server.headers(accept) | (
            {"Content-Type": media} if body is not None else {}
        )
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise ApiError(f"{method} {path}: {response.status} {answer[:300]!r}")
        return answer

    def get(self, path: str) -> Any:
        return json.loads(self.request("GET", path))

    def post(self, path: str, obj: Any) -> bytes:
        return self.request("POST", path, json.dumps(obj).encode())


def _get_entry(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _read_content(section: dict[str, Any], name: str, folder: Path) -> bytes | None:
    """Return what a kubeconfig gives inline as NAME-data or as the path of a file."""
    if f"{name}-data" in section:
        return base64.b64decode(section[f"{name}-data"])
    return (folder / section[name]).read_bytes() if name in section else None

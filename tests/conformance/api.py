"""A small client of the raw Kubernetes API: one request at a time, unchanged answers, watches frame
by frame. No models.

It takes a kubeconfig as any tool writes it: inline data or files, a token or a client certificate.
"""

import base64
import http.client
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

READ_TIMEOUT = 30.0
"""Seconds without a byte after which a server counts as hanging."""
KEEP_ALIVE_SECONDS = 1.0
"""Seconds for which an idle connection is reused; a server may close an older one."""


@dataclass(frozen=True)
class Credentials:
    """The address of the server and the credentials for it. `certificate` is the PEM of a client
    certificate and its key.
    """

    host: str
    port: int
    prefix: str
    authority: str | None
    verify: bool
    token: str | None
    certificate: str | None


def read_kubeconfig(path: Path) -> Credentials:
    """Return the credentials of the current context. Raises KeyError or StopIteration when the file
    lacks one.
    """
    config = yaml.safe_load(path.read_text())
    context = _get_entry(config["contexts"], config["current-context"])["context"]
    cluster = _get_entry(config["clusters"], context["cluster"])["cluster"]
    user = _get_entry(config["users"], context["user"])["user"]
    url = urllib.parse.urlsplit(cluster["server"])
    token = user.get("token")
    if token is None and "tokenFile" in user:
        token = (path.parent / user["tokenFile"]).read_text().strip()
    certificate = _pem(user, "client-certificate", path.parent)
    key = _pem(user, "client-key", path.parent)
    return Credentials(
        host=url.hostname or "",
        port=url.port or 443,
        prefix=url.path.rstrip("/"),
        authority=_pem(cluster, "certificate-authority", path.parent),
        verify=not cluster.get("insecure-skip-tls-verify"),
        token=token,
        certificate=f"{certificate}\n{key}" if certificate and key else None,
    )


def _get_entry(entries: list[Object], name: str) -> Object:
    return next(entry for entry in entries if entry["name"] == name)


def _pem(section: Object, name: str, folder: Path) -> str | None:
    if f"{name}-data" in section:
        return base64.b64decode(section[f"{name}-data"]).decode()
    return (folder / section[name]).read_text() if name in section else None


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def warnings(self) -> list[str]:
        """The texts of the Warning headers, in order."""
        return [json.loads(value.split(" ", 2)[2]) for value in self.headers.get_all("Warning", [])]

    def ok(self, status: int = 200) -> Any:
        """Return the body as JSON; fail, showing it, for another status."""
        assert self.status == status, f"{self.status} instead of {status}: {self.text[:2000]}"
        return self.json()

    def expect_refusal(self, code: int, reason: str) -> Object:
        """Return the Status of a refusal with this code and reason; fail, showing the body, for
        anything else.
        """
        assert self.status == code, f"{self.status} instead of {code}: {self.text[:2000]}"
        status: Object = self.json()
        assert (status["kind"], status["apiVersion"], status["status"]) == (
            "Status",
            "v1",
            "Failure",
        )
        assert (status["code"], status.get("reason")) == (code, reason), status
        return status


@dataclass
class Stream:
    """An open response that is read bit by bit: a watch, or a followed log. Close it, or use it in
    a with block.
    """

    connection: http.client.HTTPSConnection
    response: http.client.HTTPResponse
    frames: list[Object] = field(default_factory=list)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        self.response.close()
        self.connection.close()

    @property
    def status(self) -> int:
        return self.response.status

    def line(self) -> bytes:
        """Return the next line, with its newline; b"" at the end. Raises TimeoutError when nothing
        comes for READ_TIMEOUT seconds.
        """
        return self.response.readline()

    def __iter__(self) -> Iterator[Object]:
        """Yield the frames until the server ends the watch; each is kept in `frames` too."""
        while line := self.line():
            if line.strip():
                self.frames.append(json.loads(line))
                yield self.frames[-1]

    def next_frames(self, count: int) -> list[Object]:
        """Return the next `count` frames; fail when the watch ends before."""
        return [self.next_frame() for _ in range(count)]

    def next_frame(self) -> Object:
        for frame in self:
            return frame
        raise AssertionError(f"the watch ended after {self.frames}")

    def next_matching(self, wanted: Callable[[Object], bool]) -> Object:
        """Return the first frame that `wanted` accepts; fail when the watch ends before."""
        for frame in self:
            if wanted(frame):
                return frame
        raise AssertionError(f"the watch ended after {self.frames}")

    def remaining_frames(self) -> list[Object]:
        return list(self)


class Api:
    """One cluster, as one user. Requests of one Api go one after the other; streams have their own
    connections.
    """

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self._context = _tls(credentials)
        self._lock = threading.Lock()
        self._connection: http.client.HTTPSConnection | None = None
        self._used = 0.0

    @classmethod
    def from_kubeconfig(cls, path: Path) -> "Api":
        return cls(read_kubeconfig(path))

    def as_user(self, token: str | None) -> "Api":
        """Return the same server with another token, or without credentials."""
        mine = self.credentials
        return Api(
            Credentials(mine.host, mine.port, mine.prefix, mine.authority, mine.verify, token, None)
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """Send one request; a body that is not bytes is sent as JSON. Query names are as the API
        spells them (`continue_` for continue).
        """
        sent = self._headers(accept, headers)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = content_type
        with self._lock:
            if self._connection is None or time.monotonic() - self._used > KEEP_ALIVE_SECONDS:
                self.close()
                self._connection = self._connect()
            try:
                self._connection.request(method, self._target(path, query), data, sent)
                response = self._connection.getresponse()
                answer = Answer(response.status, response.headers, response.read())
            except BaseException:
                self.close()
                raise
            self._used = time.monotonic()
            return answer

    def get(self, path: str, **options: Any) -> Answer:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Answer:
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Answer:
        return self.request("PUT", path, body, **options)

    def patch(self, path: str, body: Any, content_type: str = MERGE, **options: Any) -> Answer:
        return self.request("PATCH", path, body, content_type=content_type, **options)

    def apply(self, path: str, body: Any, manager: str = "console", **options: Any) -> Answer:
        return self.request(
            "PATCH", path, body, content_type=APPLY, **{"fieldManager": manager, **options}
        )

    def delete(self, path: str, options: Object | None = None, **query: Any) -> Answer:
        body = (
            {"kind": "DeleteOptions", "apiVersion": "v1", **options}
            if options is not None
            else None
        )
        return self.request("DELETE", path, body, **query)

    def stream(self, path: str, *, accept: str = JSON, **query: Any) -> Stream:
        """Open a GET and leave it open. The caller checks the stream's status."""
        connection = self._connect()
        try:
            connection.request(
                "GET", self._target(path, query), headers=self._headers(accept, None)
            )
            return Stream(connection, connection.getresponse())
        except BaseException:
            connection.close()
            raise

    def watch(self, path: str, *, accept: str = JSON, **query: Any) -> Stream:
        """Open a watch and check that it was accepted. It ends after a minute unless
        `timeoutSeconds` says otherwise.
        """
        stream = self.stream(path, accept=accept, **{"watch": "1", "timeoutSeconds": 60, **query})
        if stream.status != 200:
            with stream:
                raise AssertionError(f"{stream.status} for a watch: {stream.response.read()!r}")
        return stream

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self.credentials.host,
            self.credentials.port,
            timeout=READ_TIMEOUT,
            context=self._context,
        )

    def _headers(self, accept: str, more: Mapping[str, str] | None) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": "muster-conformance/1", **(more or {})}
        if self.credentials.token:
            headers["Authorization"] = f"Bearer {self.credentials.token}"
        return headers

    def _target(self, path: str, query: Mapping[str, Any]) -> str:
        parameters = {name.rstrip("_"): value for name, value in query.items() if value is not None}
        return (
            self.credentials.prefix
            + path
            + (f"?{urllib.parse.urlencode(parameters)}" if parameters else "")
        )


def _tls(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=credentials.authority)
    if not credentials.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credentials.certificate:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(credentials.certificate)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def eventually(condition: Callable[[], Any], within: float = 90.0) -> Any:
    """Call the condition until its answer is true, and return that; fail with the last answer after
    `within` seconds.
    """
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"still {answer!r} after {within:g} s"
        time.sleep(0.05)
    return answer

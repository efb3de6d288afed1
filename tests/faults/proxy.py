"""A proxy on loopback between Muster and a cluster's API that does to single requests what networks
and servers do: see `mishaps`.
"""

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import yaml

from clusters.kube.access import ClusterAccess
from tests.clusters.kube.faults import Exchange, FaultServer, Request, status

TOKEN = "a-token"
PATIENCE = 60.0
FRESH = 0.5
"""Seconds for which an idle connection to the cluster is used again."""

_VERSION = re.compile(rb'("resourceVersion": ?")([0-9]+)"')
_MOMENT = re.compile(rb'"20[0-9-]{8}T[0-9:]{8}(\.[0-9]+)?Z"')
_PASSED = ("content-type", "accept")


@dataclass(frozen=True)
class Answer:
    """What the cluster said to a request that it answers as a whole."""

    status: int
    type: str
    body: bytes


class Passage:
    """One request on its way: the client's side is `exchange`, and `ask`, `pass_on` and `stream` go
    to the cluster.
    """

    def __init__(self, proxy: "Proxy", exchange: Exchange) -> None:
        self.proxy, self.exchange, self.request = proxy, exchange, exchange.request

    @property
    def is_list(self) -> bool:
        return self.request.method == "GET" and "limit" in self.request.query

    @property
    def is_watch(self) -> bool:
        return self.request.query.get("watch") == "true"

    @property
    def is_stream(self) -> bool:
        return self.is_watch or self.request.query.get("follow") == "true"

    def ask(self, **query: str | None) -> Answer:
        """Let the cluster answer, its query changed so."""
        return self.proxy.ask(self.request, {**self.request.query, **query})

    def reply(self, answer: Answer) -> None:
        self.exchange.send(
            _head(
                answer.status, answer.type, self.proxy.date, f"Content-Length: {len(answer.body)}"
            )
            + answer.body
        )

    def pass_on(self) -> None:
        """As if there were no proxy."""
        if self.is_stream:
            self.stream(lambda lines: lines)
        else:
            self.reply(self.ask())

    def stream(self, changed: Callable[[Iterator[bytes]], Iterator[bytes]]) -> None:
        """Pass the cluster's lines on as they come, changed so; what the cluster refuses is passed
        on as it is.
        """
        with self.proxy.opened(self.request) as answer:
            if answer.status != 200:
                self.reply(Answer(answer.status, answer.headers["Content-Type"], answer.read()))
                return
            self.exchange.send(
                _head(
                    200,
                    answer.headers["Content-Type"],
                    self.proxy.date,
                    "Transfer-Encoding: chunked",
                )
            )
            for line in changed(self.proxy.lines(answer)):
                self.exchange.chunk(line)
            self.exchange.send(b"0\r\n\r\n")


Mishap = Callable[[Passage], None]


def pass_unchanged(passage: Passage) -> None:
    """Nothing happens to it."""
    passage.pass_on()


class Proxy(FaultServer):
    """Passes requests on to a cluster; to each `choose` says what happens to it. Muster speaks
    plain HTTP with it, it TLS with the cluster.

    `tokens` are the bearer tokens that are good now. What the cluster says of resource versions is
    `shift` higher than it is, so that a lower one makes a server that has gone back in time; and
    its clock is `ahead` of ours. `mutate` changes what is created, as a webhook in the cluster
    would.
    """

    def __init__(self, upstream: ClusterAccess) -> None:
        self.choose: Callable[[Request], Mishap] = lambda request: pass_unchanged
        self.tokens = {TOKEN}
        self.shift = 0
        self.ahead = timedelta(0)
        self.mutate: Callable[[dict[str, Any]], None] = lambda obj: None
        self.kept: dict[str, bytes] = {}
        self.upstream = upstream
        self._tls = upstream.build_tls_context()
        self._local = threading.local()
        self._open: set[socket.socket] = set()
        super().__init__(self._answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self.cut()
        super().__exit__(*failure)

    @cached_property
    def access(self) -> ClusterAccess:
        # A certificate authority is given so that the machine's own need not be read.
        return ClusterAccess(f"http://127.0.0.1:{self.port}", token=TOKEN, ca=self.upstream.ca)

    def kubeconfig(self, token: str = TOKEN) -> str:
        """How Muster reaches the cluster through the proxy."""
        named = {
            "clusters": {"cluster": {"server": self.access.server}},
            "users": {"user": {"token": token}},
        }
        named["contexts"] = {"context": {"cluster": "c", "user": "c"}}
        return yaml.safe_dump(
            {
                "current-context": "c",
                **{kind: [{"name": "c", **entry}] for kind, entry in named.items()},
            }
        )

    @property
    def date(self) -> str:
        """The header that says what time it is in the cluster."""
        return f"Date: {format_datetime(datetime.now(UTC) + self.ahead, usegmt=True)}"

    def cut(self) -> None:
        """End every answer that the cluster is giving now, in good order."""
        for each in list(self._open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    @contextlib.contextmanager
    def always(
        self, mishap: Mishap, when: Callable[[Request], bool] = lambda request: True
    ) -> Iterator[None]:
        """Let this happen to every request of that sort meanwhile."""
        before, self.choose = (
            self.choose,
            lambda request: mishap if when(request) else pass_unchanged,
        )
        try:
            yield
        finally:
            self.choose = before

    def ask(self, request: Request, query: dict[str, str | None]) -> Answer:
        with self._asked(request, query) as answer:
            return Answer(
                answer.status, answer.headers.get("Content-Type", ""), self._shifted(answer.read())
            )

    @contextlib.contextmanager
    def opened(self, request: Request) -> Iterator[http.client.HTTPResponse]:
        with self._asked(request, dict(request.query)) as answer:
            yield answer

    def lines(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        """The lines of an answer until it, or the test, is over."""
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            while line := answer.readline():
                yield self._shifted(line)

    def _serve(self, connection: socket.socket) -> None:
        try:
            super()._serve(connection)
        finally:
            mine: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
            if mine is not None:
                self._drop(mine)

    def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.headers.get("authorization", "")[len("Bearer ") :] not in self.tokens:
            exchange.answer(401, status(401, "Unauthorized", "Unauthorized"))
            return
        try:
            self.choose(request)(Passage(self, exchange))
        except (http.client.HTTPException, ValueError) as error:
            # The cluster itself broke off, or the test is over.
            raise ConnectionError from error

    @contextlib.contextmanager
    def _asked(
        self, request: Request, query: dict[str, str | None]
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connected()
        try:
            connection.request(
                request.method,
                self._target(request, query),
                self._body(request),
                self._headers(request),
            )
            answer = connection.getresponse()
            yield answer
            if not answer.isclosed():
                self._drop(connection)
        except BaseException:
            self._drop(connection)
            raise

    def _connected(self) -> http.client.HTTPSConnection:
        """The connection of this thread to the cluster: there is a thread for each of the
        client's.
        """
        found: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if found is not None and time.monotonic() - self._local.used > FRESH:
            self._drop(found)
        if found is None or found.sock is None:
            url = urlsplit(self.upstream.server)
            found = http.client.HTTPSConnection(
                url.hostname or "", url.port or 443, timeout=PATIENCE, context=self._tls
            )
            found.connect()
            self._local.connection = found
            self._open.add(found.sock)
        self._local.used = time.monotonic()
        return found

    def _drop(self, connection: http.client.HTTPSConnection) -> None:
        if connection.sock is not None:
            self._open.discard(connection.sock)
        connection.close()

    def _target(self, request: Request, query: dict[str, str | None]) -> str:
        parameters = {name: value for name, value in query.items() if value is not None}
        version = parameters.get("resourceVersion", "")
        if version.isdigit() and self.shift:
            parameters["resourceVersion"] = str(max(1, int(version) - self.shift))
        return f"{request.path}?{urlencode(parameters)}" if parameters else request.path

    def _body(self, request: Request) -> bytes:
        if request.method != "POST" or not request.body:
            return request.body
        obj = json.loads(request.body)
        self.mutate(obj)
        return json.dumps(obj).encode()

    def _headers(self, request: Request) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.upstream.token}"} if self.upstream.token else {}
        return own | {name: value for name, value in request.headers.items() if name in _PASSED}

    def _shifted(self, body: bytes) -> bytes:
        if self.ahead:
            body = _MOMENT.sub(lambda found: _shift_moment(found[0], self.ahead), body)
        if not self.shift:
            return body
        return _VERSION.sub(lambda found: b'%s%d"' % (found[1], int(found[2]) + self.shift), body)


def _shift_moment(moment: bytes, ahead: timedelta) -> bytes:
    at = datetime.fromisoformat(moment.strip(b'"').decode()) + ahead
    return f'"{at:%Y-%m-%dT%H:%M:%SZ}"'.encode()


def _head(code: int, kind: str, *more: str) -> bytes:
    return "\r\n".join(
        [f"HTTP/1.1 {code} Whatever", f"Content-Type: {kind}", *more, "", ""]
    ).encode()

"""A server of one log that answers as it is told to, one answer after the other."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qs, urlsplit

from muster_cli.session import Session
from muster_cli.settings import Settings


class Cut(Enum):
    """How an answer breaks off: the connection is closed, and more was promised."""

    NEVER = "never"
    WITHIN_CHUNKS = "within chunks"
    WITHIN_LENGTH = "within length"


@dataclass
class Answer:
    """What is answered: a status, a body, and the run that it is of."""

    status: int = 200
    body: str = ""
    run: int | None = 0
    kind: str = ""
    cut: Cut = Cut.NEVER
    date: str = ""
    """The server's time, as HTTP has it; the true one where it is empty."""


Query = dict[str, str]


@dataclass
class ScriptedServer:
    """`answer` is asked with the path, the query and the token of each request."""

    url: str
    queries: list[Query] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def open_session(self, **settings: object) -> Session:
        session = Session(Settings(self.url, **settings), lambda text: None)  # type: ignore[arg-type]
        self.sessions.append(session)
        return session


@contextmanager
def serve_answers(answer: Callable[[str, Query, str], Answer]) -> Iterator[ScriptedServer]:
    """Run a server on a free port until the block ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def date_time_string(self, timestamp: float | None = None) -> str:
            return self.date or super().date_time_string(timestamp)

        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            if size:
                server.bodies.append(self.rfile.read(size))
            address = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            server.queries.append(query)
            made = answer(address.path, query, self.headers.get("Authorization") or "")
            content = made.body.encode()
            self.date = made.date
            self.send_response(made.status)
            if made.cut is Cut.WITHIN_CHUNKS:
                self.send_header("Transfer-Encoding", "chunked")
                content = f"{len(content):x}\r\n".encode() + content + b"\r\n"
            else:
                promised = len(content) + 9 * (made.cut is Cut.WITHIN_LENGTH)
                self.send_header("Content-Length", str(promised))
            self.close_connection = made.cut is not Cut.NEVER
            if made.kind:
                self.send_header("Content-Type", made.kind)
            if made.run is not None:
                self.send_header("X-Log-Run", str(made.run))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815
        do_DELETE = do_GET  # noqa: N815

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = ScriptedServer(f"http://127.0.0.1:{listener.server_port}")
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        for session in server.sessions:
            session.close()
        listener.shutdown()
        thread.join()
        listener.server_close()

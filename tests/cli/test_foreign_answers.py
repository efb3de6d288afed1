"""Answers of a proxy or of another server: what is said of them, and what to do then."""

import http.server
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from muster_cli.credentials import Secret
from muster_cli.errors import ExitCode, Unreachable
from muster_cli.routes import GET_ME
from muster_cli.session import Session
from muster_cli.settings import Settings
from tests.cli.log_server import Answer, Query, serve_answers
from tests.cli.running import CommandLine

PAGE = "<!DOCTYPE html><title>502 Bad Gateway</title>"
PROJECT = json.dumps({"projects": [{"id": "1", "clusterId": "c", "name": "p"}]})
SUBMISSION = ("submit", "standard", "a", "--image", "a", "-p", "p")
NOT_KNOWN = "Whether it was done is not known"


def use_server(who: CommandLine, url: str) -> CommandLine:
    who.variables = {"MUSTER_SERVER": url, "MUSTER_TOKEN": "t"}
    return who


@pytest.mark.parametrize("status", [200, 403, 502])
def test_a_page_of_a_proxy_says_nothing_of_the_servers_age(
    stranger: CommandLine, status: int
) -> None:
    page = Answer(status, PAGE, None, kind="text/html")
    with serve_answers(lambda *request: page) as server:
        message = use_server(stranger, server.url)("list", code=ExitCode.FAILED).err
    assert "older than this muster" not in message
    # What happened, and what to do.
    assert len(message.splitlines()) == 2


def test_a_page_is_no_answer_of_rest(stranger: CommandLine) -> None:
    page = Answer(200, PAGE, None, kind="text/html; charset=utf-8")
    with serve_answers(lambda *request: page) as server:
        outcome = use_server(stranger, server.url)("api", "GET", "/me", code=ExitCode.FAILED)
    assert outcome.out == ""
    assert "is not JSON" in outcome.err


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_change_that_a_proxy_cut_off_may_have_been_done(
    stranger: CommandLine, status: int
) -> None:
    def answer(path: str, query: Query, token: str) -> Answer:
        is_project = path.endswith("projects")
        return Answer(200, PROJECT) if is_project else Answer(status, PAGE, None, "text/html")

    with serve_answers(answer) as server:
        person = use_server(stranger, server.url)
        assert NOT_KNOWN in person(*SUBMISSION, code=ExitCode.FAILED).err
        assert NOT_KNOWN not in person(*SUBMISSION, "--dry-run", code=ExitCode.FAILED).err
        assert NOT_KNOWN not in person("list", code=ExitCode.FAILED).err


def test_ctrl_c_while_a_change_is_sent_says_that_it_may_have_been_done(
    stranger: CommandLine,
) -> None:
    is_sent, is_over = threading.Event(), threading.Event()

    def answer(path: str, query: Query, token: str) -> Answer:
        if path.endswith("projects"):
            return Answer(200, PROJECT)
        is_sent.set()
        is_over.wait(60)
        return Answer(200, "{}")

    with (
        serve_answers(answer) as server,
        use_server(stranger, server.url).start(*SUBMISSION) as submitting,
    ):
        assert is_sent.wait(60)
        submitting.send_signal(signal.SIGINT)
        message = submitting.communicate(timeout=60)[1]
        is_over.set()
    assert submitting.returncode == ExitCode.INTERRUPTED
    assert NOT_KNOWN in message
    assert "Traceback" not in message


@contextmanager
def redirect_requests(location: str) -> Iterator[str]:
    """Run a server that sends each request on; {path} stands for what was asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(302)
            self.send_header("Location", location.format(path=self.path))
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET  # noqa: N815

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def test_an_address_that_moved_is_named_as_a_sign_in_takes_it(stranger: CommandLine) -> None:
    with redirect_requests("https://muster.example/base{path}") as url:
        listed = use_server(stranger, url)("list", code=ExitCode.FAILED).err
        login = ("login", url, "--user", "bob", "--password-stdin")
        signed_in = stranger(*login, stdin="x", code=ExitCode.FAILED).err
    for message in (listed, signed_in):
        assert "sends requests on to https://muster.example/base.\n" in message
        assert "`muster login https://muster.example/base`" in message


@pytest.mark.parametrize("location", ["/login?next=/&state=s3cr3t", "https://sso.example/?s3cr3t"])
def test_a_page_to_sign_in_at_is_no_address_of_muster(stranger: CommandLine, location: str) -> None:
    with redirect_requests(location) as url:
        message = use_server(stranger, url)("list", code=ExitCode.FAILED).err
    assert "s3cr3t" not in message
    assert "config set server" not in message
    assert "a page to sign in" in message


@contextmanager
def drip_answer(head: bytes) -> Iterator[str]:
    """Run a server that begins an answer, and sends a byte of it now and then for ever."""
    is_over = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(head)
            while not is_over.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            is_over.set()
            thread.join()


@pytest.mark.timeout(60)
def test_an_answer_that_comes_byte_by_byte_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = time.monotonic
    # Each second counts for many.
    monkeypatch.setattr("time.monotonic", lambda: clock() * 200)
    with drip_answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n") as url:
        session = Session(Settings(url, token=Secret("t")), lambda text: None)
        with pytest.raises(Unreachable, match="is not whole after 300 s"):
            session.call(GET_ME)
        session.close()


@pytest.mark.parametrize("token", ["s3cr3t\n", "s3cr3t\r\nX: y", "s3cr€t"])
def test_a_token_that_cannot_be_sent_is_not_shown(stranger: CommandLine, token: str) -> None:
    answer = Answer(200, json.dumps({"accessToken": token, "expiresIn": 3600}))
    with serve_answers(lambda *request: answer) as server:
        login = ("login", server.url, "--user", "bob", "--password-stdin")
        refused = stranger(*login, stdin="x", code=ExitCode.FAILED)
        stranger.folder.mkdir(exist_ok=True)
        (stranger.folder / "config.json").write_text(
            json.dumps({"current": "a", "contexts": {"a": {"server": server.url}}})
        )
        entry = {"token": token, "expiresAt": 4_000_000_000}
        (stranger.folder / "credentials.json").write_text(
            json.dumps({"tokens": {f"context:a@{server.url}": entry}})
        )
        stored = stranger("list", code=ExitCode.NOT_SIGNED_IN)
    for outcome in (refused, stored):
        assert "s3cr" not in outcome.out + outcome.err
        assert "unexpectedly" not in outcome.err
    assert "muster login" in stored.err


@pytest.mark.parametrize("end", ['"soon"', "[1]", "NaN", "1e999", "9" * 400])
def test_a_token_without_an_end_that_can_be_read_is_no_surprise(
    stranger: CommandLine, end: str
) -> None:
    body = f'{{"accessToken": "t", "expiresIn": {end}}}'
    with serve_answers(lambda *request: Answer(200, body)) as server:
        login = ("login", server.url, "--user", "bob", "--password-stdin")
        assert "is no Muster" in stranger(*login, stdin="x", code=ExitCode.FAILED).err
        stranger.folder.mkdir(exist_ok=True)
        (stranger.folder / "config.json").write_text(
            json.dumps({"current": "a", "contexts": {"a": {"server": server.url}}})
        )
        (stranger.folder / "credentials.json").write_text(
            f'{{"tokens": {{"context:a@{server.url}": {{"token": "t", "expiresAt": {end}}}}}}}'
        )
        ended = stranger("list", code=ExitCode.NOT_SIGNED_IN)
    assert "Your session has ended" in ended.err

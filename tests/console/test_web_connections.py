"""What a client may leave undone: halves of requests end, pages answer meanwhile, streams last.

What has to wait for a deadline waits at once, in threads, and each test looks at one of the ends.
"""

import contextlib
import json
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from console import web_connections
from tests.console_server import WebServer
from tests.rest import Reader

HALF_HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "
BODY_HEAD = (
    b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
TOKEN = "/api/v2/token"
PASSWORD = "correct horse battery"
FLOOD = 300
PATIENCE = 180.0
"""Seconds: what is to end within ten may take longer on a machine that is busy."""


def connect(web: WebServer, *parts: bytes, source: str = "127.0.0.1") -> socket.socket:
    """A connection from an address of loopback, with these parts sent."""
    port = int(web.url.rpartition(":")[2])
    opened = socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=(source, 0))
    for part in parts:
        opened.sendall(part)
    return opened


def read_to_end(opened: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = b""
    with opened, contextlib.suppress(ConnectionResetError):
        while part := opened.recv(65536):
            received += part
    return received


def get_page(web: WebServer) -> int:
    with urllib.request.urlopen(f"{web.url}/healthz", timeout=PATIENCE) as answer:
        return int(answer.status)


HALVES = {
    "a head": ([HALF_HEAD], "The head of the request did not arrive in 10 s. Send it again."),
    "a body": (
        [BODY_HEAD % (TOKEN.encode(), 100), b'{"grant'],
        "The body of the request did not arrive: nothing for 10 s, or less than 1024 bytes a "
        "second. 7 bytes did. Send it again.",
    ),
}


def send_until_closed(opened: socket.socket, part: bytes, every: float) -> bool:
    """Whether the server closes a connection on which a little comes again and again."""
    deadline = time.monotonic() + PATIENCE
    with opened:
        while time.monotonic() < deadline:
            try:
                opened.sendall(part)
            except OSError:
                return True
            time.sleep(every)
    return False


def upload_slowly(opened: socket.socket) -> bytes:
    """The answer to an upload that takes longer than a body may stand still, and goes on."""
    body = json.dumps({"grant_type": "x" * 36_000}).encode()
    pieces = [body[start : start + 3000] for start in range(0, len(body), 3000)]
    assert len(pieces) > web_connections.BODY_SECONDS
    with opened:
        opened.sendall(BODY_HEAD % (TOKEN.encode(), len(body)))
        for piece in pieces:
            opened.sendall(piece)
            time.sleep(1.0)
        return opened.recv(65536)


def upload_across_gap(opened: socket.socket) -> bytes:
    """The answer to an upload whose network is away in its midst."""
    body = json.dumps({"grant_type": "x" * 36_000}).encode()
    with opened:
        opened.sendall(BODY_HEAD % (TOKEN.encode(), len(body)) + body[:33_000])
        time.sleep(1.5 * web_connections.BODY_SECONDS)
        opened.sendall(body[33_000:])
        return opened.recv(65536)


def read_flood(web: WebServer, *parts: bytes) -> list[str]:
    """What each of many connections is answered; pages answer while they are open."""
    flood = [connect(web, *parts) for _ in range(FLOOD)]
    for _ in range(20):
        assert get_page(web) == 200
    return [read_to_end(each).decode() for each in flood]


def build_flood(*parts: bytes) -> Callable[[WebServer], list[str]]:
    return lambda web: read_flood(web, *parts)


UPGRADE = WHOLE[:-2] + (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n\r\n"
)
SCENARIOS: dict[str, Callable[[WebServer], object]] = {
    **{half: build_flood(*parts) for half, (parts, _) in HALVES.items()},
    "a program's body": lambda web: read_to_end(
        connect(web, BODY_HEAD % (TOKEN.encode(), 9), b"{")
    ),
    "silence": lambda web: read_to_end(connect(web)),
    "silence after an answer": lambda web: read_to_end(connect(web, WHOLE)),
    "line ends": lambda web: send_until_closed(connect(web, WHOLE), b"\r\n", 2.0),
    "a trickle": lambda web: send_until_closed(
        connect(web, BODY_HEAD % (TOKEN.encode(), 1000)), b" ", 1.0
    ),
    "a slow upload": lambda web: upload_slowly(connect(web)),
    "an upload with a gap": lambda web: upload_across_gap(connect(web)),
    "a half behind a whole": lambda web: read_to_end(connect(web, WHOLE + HALF_HEAD)),
    "many in one packet": lambda web: read_to_end(connect(web, WHOLE * 50)),
    "an upgrade": lambda web: read_to_end(connect(web, UPGRADE)),
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Future[Any]]]:
    data = tmp_path_factory.mktemp("web")
    with (
        WebServer(data, connections_per_address=2 * FLOOD + 100) as web,
        ThreadPoolExecutor(len(SCENARIOS)) as pool,
    ):
        yield {name: pool.submit(scenario, web) for name, scenario in SCENARIOS.items()}


@pytest.mark.parametrize("half", HALVES)
def test_halves_of_requests_are_refused_in_words_while_pages_answer(
    ends: Mapping[str, Future[Any]], half: str
) -> None:
    answers = ends[half].result()
    assert len(answers) == FLOOD
    for answer in answers:
        assert answer.startswith("HTTP/1.1 408 Request Timeout\r\n")
        assert HALVES[half][1] in answer


def test_a_program_reads_the_refusal_as_an_error_body(ends: Mapping[str, Future[Any]]) -> None:
    head, _, body = ends["a program's body"].result().partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert json.loads(body)["message"].startswith("The body of the request did not arrive")


def test_a_connection_that_says_nothing_is_closed_in_silence(
    ends: Mapping[str, Future[Any]],
) -> None:
    assert ends["silence"].result() == b""
    assert ends["silence after an answer"].result().count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("scenario", ["line ends", "a trickle"])
def test_a_little_now_and_then_is_no_progress(
    ends: Mapping[str, Future[Any]], scenario: str
) -> None:
    assert ends[scenario].result()


@pytest.mark.parametrize("scenario", ["a slow upload", "an upload with a gap"])
def test_a_slow_upload_that_goes_on_is_taken(
    ends: Mapping[str, Future[Any]], scenario: str
) -> None:
    answer = ends[scenario].result()
    assert answer.startswith(b"HTTP/1.1 4")
    assert not answer.startswith(b"HTTP/1.1 408")


def test_a_half_request_behind_a_whole_one_ends_too(ends: Mapping[str, Future[Any]]) -> None:
    assert ends["a half behind a whole"].result().startswith(b"HTTP/1.1 200")


def test_whole_requests_in_one_packet_are_all_answered(ends: Mapping[str, Future[Any]]) -> None:
    assert ends["many in one packet"].result().count(b"HTTP/1.1 200") == 50


def test_an_upgrade_leads_nowhere(ends: Mapping[str, Future[Any]]) -> None:
    assert ends["an upgrade"].result().startswith(b"HTTP/1.1 200")


@pytest.fixture(scope="module")
def small_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    data = tmp_path_factory.mktemp("small")
    with WebServer(data, connections_per_address=20, admin_password=PASSWORD) as server:
        server.manage("prepare")
        yield server


def test_a_head_without_end_is_refused(small_web: WebServer) -> None:
    opened = connect(small_web, HALF_HEAD)
    with contextlib.suppress(OSError):
        for _ in range(100):
            opened.sendall(b"x" * 4096)
            time.sleep(0.001)
    assert b"431" in read_to_end(opened)[:20]


def test_who_is_over_the_bound_makes_room_with_what_waited_longest(small_web: WebServer) -> None:
    flood = [connect(small_web, HALF_HEAD) for _ in range(30)]
    assert get_page(small_web) == 200, "from the same address"
    pushed_out = [read_to_end(each).decode() for each in flood[:10]]
    assert all("408" in each and "others waited for the connection" in each for each in pushed_out)
    for each in flood:
        each.close()


def test_streams_last_and_leave_room(small_web: WebServer) -> None:
    reader = Reader(small_web.url, PASSWORD)
    with reader.open("/workloads/live?after=0") as stream:
        flood = [connect(small_web, HALF_HEAD) for _ in range(30)]
        assert get_page(small_web) == 200
        for each in flood:
            each.close()
        deadline = time.monotonic() + web_connections.HEAD_SECONDS + 5
        while time.monotonic() < deadline:
            assert stream.readline()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's list of connections")
def test_a_client_that_is_gone_without_a_word_is_found(small_web: WebServer) -> None:
    """As one that follows a quiet log, and whose machine was switched off."""
    with connect(small_web, HALF_HEAD) as opened:
        ends = [f":{port:04X}" for port in (opened.getpeername()[1], opened.getsockname()[1])]
        assert get_page(small_web) == 200
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        (row,) = [each for each in rows if [each[1][-5:], each[2][-5:]] == ends]
        # What is due next: 02 is the question whether the client is there, in 1/100 s.
        timer, _, left = row[5].partition(":")
        assert timer == "02"
        assert int(left, 16) <= 100 * web_connections.PROBES["TCP_KEEPIDLE"]


def test_other_addresses_have_bounds_of_their_own(small_web: WebServer) -> None:
    flood = [connect(small_web, HALF_HEAD, source="127.0.0.9") for _ in range(30)]
    mine = connect(small_web, HALF_HEAD)
    for each in flood:
        each.close()
    mine.sendall(b"whole\r\n\r\n")
    assert mine.recv(4096).startswith(b"HTTP/1.1 200")
    mine.close()


def test_behind_a_trusted_proxy_the_address_has_no_bound(tmp_path: Path) -> None:
    server = WebServer(tmp_path, connections_per_address=8)
    with contextlib.ExitStack() as stack:
        server.start(arguments=("--proxy-headers",))
        stack.callback(server.stop)
        opened = [connect(server, HALF_HEAD) for _ in range(40)]
        for each in opened:
            each.sendall(b"whole\r\n\r\n")
        assert all(each.recv(4096).startswith(b"HTTP/1.1 200") for each in opened)
        for each in opened:
            each.close()

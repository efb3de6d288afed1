"""`%%muster` and `#pragma taas` in a real Jupyter kernel, on a server that answers as Muster."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from muster_delivery.notebook import pod_log
from muster_delivery.notebook.connection import (
    RefusedByServer,
    RestConnection,
    Unreachable,
    open_connection,
)
from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.following import WorkloadFollower
from muster_delivery.notebook.submission import parse_options
from tests.delivery.kernel import execute_cells
from tests.delivery.rest_stub import TOKEN, RestStub

CELLS = [
    "%load_ext muster_delivery",
    "import math\n\ndef area(radius):\n    return math.pi * radius**2",
    "%%muster_include\nSIZES = list(range(3))",
    "%%muster --gpus 8 --cpus 2 --units 10\nfor size in SIZES:\n    print(round(area(size)))",
    "_.exit_code",
    "#pragma taas --gpus 8 --cpus 1 --units 20480\nprint('from the pragma', len(SIZES))",
    "%%muster --gpus 1\nraise SystemExit(3)",
    "%%muster --gpus 3\n1",
    "%%muster --cpus 3\n1",
    "%%muster --gpus 1\nthis is no code",
    "import os\nos.environ['MUSTER_TOKEN'] = 'another'",
    "%%muster --gpus 1\n1",
    "%muster_stop w1",
]


def test_a_cell_becomes_a_workload(tmp_path: Path) -> None:
    with RestStub() as stub:
        variables = {"MUSTER_SERVER": stub.url, "MUSTER_TOKEN": TOKEN}
        outputs = execute_cells(CELLS, tmp_path, variables)
    first, exit_code, pragma, failed, refused, no_gpus, no_code, _, no_token, stop = outputs[3:]
    assert f"notebook-x1y2z3 was submitted: {stub.url}/workloads/w1" in first
    assert "0\n3\n13" in first
    assert '<progress max="10" value="' in first or "Completed" in first
    assert "<b>" not in first.replace("&lt;b&gt;", "").partition("<div>")[2]
    assert "phase='Completed'" in first
    assert exit_code == "0"
    assert "from the pragma 3" in pragma
    assert "phase='Failed'" in failed
    assert "This cannot be submitted.\nspec.totalGpus: 2 or 4 can be made." in refused
    assert "--gpus" in no_gpus
    assert "SyntaxError" in no_code
    assert "This token is not known." in no_token
    assert "another" not in no_token
    assert "This token is not known." in stop
    specs = [body["spec"] for body in stub.bodies]
    assert specs[0]["totalGpus"] == 8
    assert specs[0]["dataDelivery"] == {"workers": 2, "units": 10}
    assert specs[1]["dataDelivery"] == {"workers": 1, "units": 20480}
    assert "dataDelivery" not in specs[2]
    assert stub.bodies[0]["projectId"] == "7"
    assert len(stub.bodies) == 4


INTERRUPT = f"""
import os, signal, threading, time, urllib.request

def interrupt():
    address = os.environ["MUSTER_SERVER"] + "/api/v1/workloads/w1"
    request = urllib.request.Request(address, headers={{"Authorization": "Bearer {TOKEN}"}})
    while b"Running" not in urllib.request.urlopen(request).read():
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

%load_ext muster_delivery
"""


def test_an_interrupted_cell_leaves_the_workload_running(tmp_path: Path) -> None:
    with RestStub() as stub:
        variables = {"MUSTER_SERVER": stub.url, "MUSTER_TOKEN": TOKEN}
        cells = [
            INTERRUPT,
            "%%muster --gpus 1\nprint('begun')",
            "threading.Thread(target=interrupt).start()",
            "%%muster --gpus 1\nimport time; time.sleep(600)",
            "_.phase",
            "%muster_stop w1",
        ]
        outputs = execute_cells(cells, tmp_path, variables)
        assert stub.is_stopped
    assert "notebook-x1y2z3 goes on. `%muster_stop w1` stops it." in outputs[3]
    assert outputs[4] == "'Running'"


def test_a_marked_cell_that_is_run_again_keeps_its_place(tmp_path: Path) -> None:
    sizes = "%%muster_include\nSIZES = [1, 2]"
    cells = [
        "%load_ext muster_delivery",
        sizes,
        "%%muster_include\nTOTAL = sum(SIZES)",
        sizes,
        "%%muster --gpus 1\nprint('in all', TOTAL)",
    ]
    with RestStub() as stub:
        variables = {"MUSTER_SERVER": stub.url, "MUSTER_TOKEN": TOKEN}
        outputs = execute_cells(cells, tmp_path, variables)
    assert "in all 3" in outputs[-1]


def write_login(folder: Path, server: str, *, ends: float) -> None:
    """Write the files that `muster login` leaves."""
    context = {"server": server, "project": "team-a", "ca_file": ""}
    (folder / "muster").mkdir()
    config = {"current": "here", "contexts": {"here": context}}
    (folder / "muster/config.json").write_text(json.dumps(config))
    entry = {"token": TOKEN, "expiresAt": int(ends), "username": "bob"}
    tokens = {"tokens": {f"context:here@{server}": entry}}
    (folder / "muster/credentials.json").write_text(json.dumps(tokens))


def test_the_login_of_the_command_line_is_used(tmp_path: Path) -> None:
    with RestStub() as stub:
        write_login(tmp_path, stub.url, ends=time.time() + 1000)
        connection = open_connection({"XDG_CONFIG_HOME": str(tmp_path)})
        assert connection.project == "team-a"
        assert connection.call("GET", "/org-unit/projects")["projects"]
        assert TOKEN not in repr(connection)


def test_a_token_goes_to_no_other_server(tmp_path: Path) -> None:
    write_login(tmp_path, "http://127.0.0.1:1", ends=time.time() + 1000)
    with pytest.raises(NotebookError, match="not signed in"):
        open_connection(
            {"XDG_CONFIG_HOME": str(tmp_path), "MUSTER_SERVER": "http://other.example.com"}
        )


def test_a_session_that_has_ended_is_said(tmp_path: Path) -> None:
    write_login(tmp_path, "http://127.0.0.1:1", ends=time.time() - 1)
    with pytest.raises(NotebookError, match="ended"):
        open_connection({"XDG_CONFIG_HOME": str(tmp_path)})
    with pytest.raises(NotebookError, match="No server"):
        open_connection({"XDG_CONFIG_HOME": str(tmp_path / "none")})


def test_a_token_with_a_line_end_is_not_repeated() -> None:
    with pytest.raises(NotebookError) as caught:
        open_connection({"MUSTER_SERVER": "http://a.example.com", "MUSTER_TOKEN": "abc\nsecret"})
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(NotebookError, match="does not answer"):
        RestConnection("http://127.0.0.1:1", TOKEN).call("GET", "/me")


@contextlib.contextmanager
def serve_once(status: int, headers: dict[str, str], body: bytes = b"") -> Iterator[str]:
    """Give every request this answer; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Write nothing: the output of the tests is not for it."""

        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_token_follows_no_redirect() -> None:
    with (
        RestStub() as stub,
        serve_once(307, {"Location": f"{stub.url}/elsewhere"}) as address,
        pytest.raises(RefusedByServer, match="the token is sent to no other address"),
    ):
        RestConnection(address, TOKEN).call("GET", "/org-unit/projects")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_cannot_answer_now_is_asked_again(status: int) -> None:
    with (
        serve_once(status, {}, b'{"message": "Come later."}') as address,
        pytest.raises(Unreachable, match=r"Come later\."),
    ):
        RestConnection(address, TOKEN).call("GET", "/workloads/w1")


@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_answer_that_breaks_off_is_asked_for_again(is_chunked: bool) -> None:
    headers = {"Transfer-Encoding": "chunked"} if is_chunked else {"Content-Length": "100"}
    body = b"b\r\nfirst line\n\r\n" if is_chunked else b"first line\n"
    with serve_once(200, headers, body) as address:
        connection = RestConnection(address, TOKEN)
        with pytest.raises(Unreachable):
            connection.call("GET", "/workloads/w1")
        lines = connection.stream_lines("/workloads/w1/pods/p/logs", {})
        assert next(lines) == "first line"
        with pytest.raises(Unreachable):
            next(lines)


@contextlib.contextmanager
def serve_unsteadily(most_statuses: int, most_logs: int) -> Iterator[RestConnection]:
    """Serve a completed workload; the first answers, so many of each kind, are of no use."""
    statuses, logs = iter(range(most_statuses)), iter(range(most_logs))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Write nothing: the output of the tests is not for it."""

        def do_GET(self) -> None:
            if "/logs" in self.path:
                self.answer_log(next(logs, None))
            elif "/pods" in self.path:
                self.answer(200, b'{"pods": [{"name": "p", "rank": 0}]}')
            elif (number := next(statuses, None)) is not None:
                self.answer((429, 500, 503)[number % 3], b'{"message": "Come later."}')
            else:
                self.answer(200, b'{"phase": "Completed"}')

        def answer_log(self, number: int | None) -> None:
            if number is not None and number % 2:
                self.answer(503, b"")
            elif number is not None:
                self.answer(200, b"first line\n", length=100)
            else:
                self.answer(200, b"first line\nsecond line\n")

        def answer(self, status: int, body: bytes, *, length: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield RestConnection(f"http://127.0.0.1:{server.server_port}", TOKEN)
        server.shutdown()


def follow_quickly(connection: RestConnection, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Follow a workload without pauses; return the lines of its logs."""
    monkeypatch.setattr(pod_log, "LONGEST_PAUSE", 0.01)
    lines: list[str] = []
    follower = WorkloadFollower(
        connection, "w1", show_status=lambda status: None, show_line=lines.append
    )
    assert follower.follow().phase == "Completed"
    return lines


def test_a_cell_outlives_a_server_that_cannot_answer_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve_unsteadily(most_statuses=9, most_logs=9) as connection:
        assert follow_quickly(connection, monkeypatch) == ["first line", "second line"]


def test_a_server_that_never_answers_ends_the_cell_and_not_the_workload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        serve_unsteadily(most_statuses=1000, most_logs=0) as connection,
        pytest.raises(Unreachable, match=r"Come later\. The workload is followed no longer; it"),
    ):
        follow_quickly(connection, monkeypatch)


def test_a_log_that_always_breaks_off_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_unsteadily(most_statuses=0, most_logs=1000) as connection:
        first, last = follow_quickly(connection, monkeypatch)
    assert first == "first line"
    assert last.startswith("The log is followed no longer: ")


def test_units_need_data_workers() -> None:
    with pytest.raises(NotebookError, match="--cpus"):
        parse_options("--gpus 1 --units 5")

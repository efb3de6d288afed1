"""What a cell shows of its workload while that goes on: all that its pods write, within bounds."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from muster_delivery.notebook import pod_log
from muster_delivery.notebook.connection import RefusedByServer, RestConnection, open_connection
from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.following import WorkloadFollower
from muster_delivery.notebook.shown_lines import ShownLines
from muster_delivery.notebook.submission import find_project
from tests.delivery.kernel import execute_cells
from tests.delivery.rest_stub import TOKEN, RestStub
from tests.installation import eventually

Query = Mapping[str, str]
Answered = tuple[int, object, Mapping[str, str]]
"""A status, a text or what becomes JSON, and headers."""


@contextlib.contextmanager
def run_server(answer: Callable[[str, Query], Answered]) -> Iterator[RestConnection]:
    """Run a server of REST until the block ends; the paths are those below the workload."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing: the output of the tests is not for it."""

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            path = address.path.removeprefix("/api/v1/workloads/w1")
            status, body, headers = answer(path, dict(parse_qsl(address.query)))
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = True
            # Whoever follows no longer takes no more.
            with contextlib.suppress(ConnectionError):
                self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield RestConnection(f"http://127.0.0.1:{server.server_port}", TOKEN)
        server.shutdown()


class TwoRuns:
    """A workload whose container is started anew, and whose pods a second attempt makes anew."""

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._attempt = self._begun = 1
        self._is_over = False

    def answer(self, path: str, query: Query) -> Answered:
        if path == "":
            return 200, {"phase": "Completed" if self._is_over else "Running"}, {}
        if path == "/pods":
            # The second attempt begins when the logs of the first were read.
            self._attempt = self._begun
            pod = {"id": f"u{self._attempt}", "name": "p", "rank": 0, "attempt": self._attempt}
            ended = {"completedAt": "now"} if self._is_over else {}
            return 200, {"pods": [pod | ended]}, {}
        attempt = int(query["attempt"])
        run = int(query.get("run", "1" if self._begun > attempt or self._is_over else "0"))
        if run == 0:
            # Its end lets the container start anew.
            self._end_run(attempt)
        text = "" if query.get("tailLines") == "0" else f"attempt {attempt} run {run}\n"
        return 200, text, {"X-Log-Run": str(run)}

    def _end_run(self, attempt: int) -> None:
        if attempt < self._attempts:
            self._begun = attempt + 1
        else:
            self._is_over = True


def follow_workload(connection: RestConnection) -> list[str]:
    """Follow a workload to its end; return the lines that are shown."""
    lines: list[str] = []
    WorkloadFollower(
        connection, "w1", show_status=lambda status: None, show_line=lines.append
    ).follow()
    return lines


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_log, "LONGEST_PAUSE", 0.01)


@pytest.mark.usefixtures("short_pauses")
def test_the_log_of_a_container_that_starts_anew_is_shown() -> None:
    with run_server(TwoRuns(attempts=1).answer) as connection:
        lines = follow_workload(connection)
    assert lines == ["attempt 1 run 0", "The container was started anew.", "attempt 1 run 1"]


@pytest.mark.usefixtures("short_pauses")
def test_the_logs_of_a_later_attempt_are_shown() -> None:
    with run_server(TwoRuns(attempts=2).answer) as connection:
        lines = follow_workload(connection)
    for attempt in (1, 2):
        for run in (0, 1):
            assert f"attempt {attempt} run {run}" in lines


@pytest.mark.usefixtures("short_pauses")
def test_a_pod_whose_name_came_back_has_each_line_once() -> None:
    def answer(path: str, query: Query) -> Answered:
        if path == "":
            return 200, {"phase": "Completed"}, {}
        if path == "/pods":
            pods = [
                {"id": uid, "name": "p", "rank": 0, "attempt": 1, "completedAt": "now"}
                for uid in ("lost", "new")
            ]
            return 200, {"pods": pods}, {}
        uid = path.split("/")[2].replace("p", "new")
        is_read = (
            query.get("tailLines") == "0" or "sinceTime" in query or query.get("run", "0") != "0"
        )
        text = "" if is_read else f"2026-01-01T00:00:01.5Z of {uid}\n"
        return 200, text, {"X-Log-Run": "0"}

    with run_server(answer) as connection:
        assert sorted(follow_workload(connection)) == ["of lost", "of new"]


@pytest.mark.usefixtures("short_pauses")
def test_a_log_that_broke_off_is_not_sent_anew() -> None:
    stamps = [f"2026-01-01T00:00:0{second}.{part}Z" for second in (1, 2, 3) for part in (1, 5)]
    lines = [f"{stamp} line {number}\n" for number, stamp in enumerate(stamps)]
    since_times: list[str] = []

    def answer(path: str, query: Query) -> Answered:
        if path == "":
            return 200, {"phase": "Completed"}, {}
        if path == "/pods":
            return 200, {"pods": [{"id": "u", "name": "p", "rank": 0, "attempt": 1}]}, {}
        if query.get("tailLines") == "0":
            return 200, "", {"X-Log-Run": "0"}
        since_times.append(query.get("sinceTime", ""))
        if len(since_times) == 1:
            begun = "".join(lines[:3]) + lines[3][:-2]
            return 200, begun, {"X-Log-Run": "0", "Content-Length": "10000"}
        left = [line for line in lines if line[:19] >= since_times[-1][:19]]
        # This one ends early, too, as when the server does.
        return 200, "".join(left[:3] if len(since_times) == 2 else left), {"X-Log-Run": "0"}

    with run_server(answer) as connection:
        assert follow_workload(connection) == [f"line {number}" for number in range(6)]
    seconds = ["", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z", "2026-01-01T00:00:03Z"]
    assert since_times == seconds


def test_a_workload_that_was_deleted_is_followed_no_longer() -> None:
    def answer(path: str, query: Query) -> Answered:
        if path == "":
            return 200, {"phase": "Deleting", "deletedAt": "2026-01-01T00:00:00Z"}, {}
        return 200, {"pods": []}, {}

    with run_server(answer) as connection:
        assert follow_workload(connection) == []


def test_who_may_ask_no_longer_is_told_that_the_workload_goes_on() -> None:
    with (
        run_server(
            lambda path, query: (401, {"message": "This token has ended."}, {})
        ) as connection,
        pytest.raises(RefusedByServer, match=r"has ended\.(?s:.*)followed no longer; it goes on"),
    ):
        follow_workload(connection)


def test_nothing_of_an_interrupted_cell_goes_on() -> None:
    def answer(path: str, query: Query) -> Answered:
        if path == "":
            return 200, {"phase": "Running"}, {}
        if path == "/pods":
            return 200, {"pods": [{"id": "u", "name": "p", "rank": 0, "attempt": 1}]}, {}
        return 200, "a line\n" * 100_000, {"X-Log-Run": "0"}

    before = set(threading.enumerate())
    with run_server(answer) as connection:

        def interrupt(line: str) -> None:
            # More lines wait than there is room for.
            eventually(follower._lines.full)
            raise KeyboardInterrupt

        follower = WorkloadFollower(
            connection, "w1", show_status=lambda status: None, show_line=interrupt
        )
        with pytest.raises(KeyboardInterrupt):
            follower.follow()
        eventually(lambda: not any(each.is_alive() for each in follower._streams.values()))
    eventually(lambda: set(threading.enumerate()) <= before)


def test_a_log_that_is_too_long_for_a_notebook_is_cut() -> None:
    shown_lines: list[str] = []
    lines = ShownLines(shown_lines.append, "its page", most_characters=30)
    for number in range(1000):
        lines.add(f"line {number}")
    assert shown_lines[:4] == ["line 0", "line 1", "line 2", "line 3"]
    assert "its page has all" in shown_lines[4]
    assert len(shown_lines) == 5
    lines.finish()
    assert shown_lines[5] == "896 lines are left out here."
    assert shown_lines[6:] == [f"line {number}" for number in range(900, 1000)]


def test_a_log_whose_end_does_not_come_is_said_to_miss_it_however_long_it_is() -> None:
    is_read, is_closed = threading.Event(), threading.Event()

    def answer(path: str, query: Query) -> Answered:
        if path == "":
            return 200, {"phase": "Completed" if is_read.is_set() else "Running"}, {}
        if path == "/pods":
            return 200, {"pods": [{"id": "u", "name": "p", "rank": 0, "attempt": 1}]}, {}
        if query.get("sinceTime"):
            # The log goes on, and nothing further of it comes.
            is_read.set()
            is_closed.wait()
        return 200, "2026-01-01T00:00:01.5Z a line\n" * 20, {"X-Log-Run": "0"}

    lines: list[str] = []
    with run_server(answer) as connection:
        WorkloadFollower(
            connection,
            "w1",
            show_status=lambda status: None,
            show_line=lines.append,
            late_seconds=0.1,
            most_characters=30,
        ).follow()
        is_closed.set()
    assert lines[:4] == ["a line"] * 4
    assert "longer than a notebook can hold" in lines[4]
    assert lines[5:-1] == ["a line"] * 16
    assert lines[-1] == "The end of a log did not come: its page may show more of it."


def test_a_project_is_found_among_any_number() -> None:
    projects = [{"id": number, "name": f"team-{number}", "clusterId": "c"} for number in range(300)]

    def answer(path: str, query: Query) -> Answered:
        name = query.get("filterBy", "").partition("==")[2]
        found = [each for each in projects if name in ("", each["name"])]
        return 200, {"projects": found[: int(query["limit"])]}, {}

    with run_server(answer) as connection:
        assert find_project(connection, "team-250")["id"] == 250
        with pytest.raises(NotebookError, match="There is no project team-999"):
            find_project(connection, "team-999")
        with pytest.raises(NotebookError, match="Choose a project"):
            find_project(connection, "a,name==b")


def test_settings_that_lead_nowhere_are_refused_with_their_name(tmp_path: Path) -> None:
    place = {"XDG_CONFIG_HOME": str(tmp_path), "MUSTER_TOKEN": TOKEN}
    with pytest.raises(NotebookError, match="no context of-nobody"):
        open_connection({**place, "MUSTER_CONTEXT": "of-nobody"})
    server = {"MUSTER_SERVER": "https://a.example.com/api/v1/"}
    assert open_connection({**place, **server}).server == "https://a.example.com"
    with pytest.raises(NotebookError, match=r"none\.pem cannot be read"):
        open_connection({**place, **server, "MUSTER_CA_FILE": str(tmp_path / "none.pem")})


CELLS = [
    "%load_ext muster_delivery",
    "%%time\ndef train():\n    return 1",
    "%%muster --gpus 1\nprint(train())",
    "%%muster --gpus 1\n!pip list",
    "%%muster --gpus 1\nimport asyncio\nawait asyncio.sleep(0)",
    "%muster_stop",
    "%muster_stop w1",
    "%%muster_include\n!pip list",
    "%%muster_include\nfound = !ls\nprint('ran')",
    "%%muster_include\nimport asyncio\nawait asyncio.sleep(0)",
    "%%muster_include\nthis is no code",
    "%%muster_include\nimport math as m",
    "import math as m",
    "%%muster --gpus 1\nprint('done', round(m.pi))\nexit()",
]


def test_a_kernel_says_what_a_cell_cannot_be(tmp_path: Path) -> None:
    with RestStub() as stub:
        stub.warnings = ["No node has so many GPUs."]
        variables = {"MUSTER_SERVER": stub.url, "MUSTER_TOKEN": TOKEN}
        outputs = execute_cells(CELLS, tmp_path, variables)
    timed, command, waiting, no_id, stopped = outputs[2:7]
    *included, no_code, _, _, warned = outputs[7:]
    assert "The cell names train, a value of this notebook" in timed
    assert "The cell has a command of the notebook" in command
    assert "asyncio.run" in waiting
    assert "Say which workload" in no_id
    assert "w1 stops." in stopped
    for refused, words in zip(included, (command, command, waiting), strict=True):
        # The refusal is the same as that of a submitted cell, and nothing was run.
        assert refused.splitlines()[-1] == words.splitlines()[-1]
        assert "ran" not in refused.splitlines()
    assert "SyntaxError" in no_code
    assert "done 3" in warned
    assert "Warning: No node has so many GPUs." in warned
    assert "phase='Completed'" in warned
    assert len(stub.bodies) == 1

"""Answers that break off, a server that is away for long, and addresses written by hand."""

import json
import time
from pathlib import Path

import pytest

from muster_cli import private_files
from muster_cli.actions import logs
from muster_cli.actions.log_lines import LogRequest
from muster_cli.credentials import Secret
from muster_cli.errors import CliError, ExitCode, Refused, Unreachable
from muster_cli.routes import Route
from muster_cli.session import build_target
from tests.cli.log_server import Answer, Cut, Query, ScriptedServer, serve_answers
from tests.cli.running import CommandLine
from tests.cli.test_log_lines import answer_kept

SIGNED_IN = {"token": Secret("t")}
WORKLOAD = "01234567-89ab-cdef-0123-456789abcdef"
STAMPS = [f"2026-01-01T00:00:{n // 3:02}.{n % 3}Z" for n in range(30)]
TEXT = "".join(f"{stamp} line {n}\n" for n, stamp in enumerate(STAMPS))


@pytest.fixture
def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass between two tries."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def read_lines(server: ScriptedServer, *pods: str, tail: int | None = None) -> list[str]:
    requests = [LogRequest("w", pod, pod, tail=tail) for pod in pods]
    found = logs.read_logs(server.open_session(**SIGNED_IN), requests)
    return [f"{line.pod} {line.text.decode()}" for line in found]


@pytest.mark.usefixtures("hasten")
@pytest.mark.parametrize("tail", [None, 20])
@pytest.mark.parametrize("pods", [("a",), ("a", "b")], ids=["alone", "merged"])
def test_a_log_that_breaks_off_is_read_on_to_its_end(
    pods: tuple[str, ...], tail: int | None
) -> None:
    """Each of the first answers ends within a line, as those do that nobody takes for long."""
    counts = dict.fromkeys(pods, 0)

    def answer(path: str, query: Query, token: str) -> Answer:
        pod = path.split("/")[-2]
        counts[pod] += 1
        whole = answer_kept(TEXT, query)
        if counts[pod] > 4:
            return whole
        return Answer(200, whole.body[:205], 0, cut=Cut.WITHIN_CHUNKS)

    with serve_answers(answer) as server:
        lines = read_lines(server, *pods, tail=tail)
    first = 0 if tail is None else 30 - tail
    for pod in pods:
        of_pod = [line for line in lines if line.startswith(f"{pod} ")]
        assert of_pod == [f"{pod} line {n}" for n in range(first, 30)]
    assert set(counts.values()) == {5}


@pytest.mark.usefixtures("hasten")
def test_a_log_that_gets_no_further_is_told() -> None:
    cut = Answer(200, TEXT[:205], 0, cut=Cut.WITHIN_CHUNKS)
    with (
        serve_answers(lambda path, query, token: cut) as server,
        pytest.raises(Unreachable, match="broke off"),
    ):
        read_lines(server, "a")
    assert len(server.queries) == 6


def test_half_an_answer_is_not_taken_for_a_whole_one(stranger: CommandLine) -> None:
    """A text has no end of its own by which one sees that something is missing."""
    cut = Answer(200, "name,gpus\na,1\n", None, kind="text/csv", cut=Cut.WITHIN_LENGTH)
    with serve_answers(lambda path, query, token: cut) as server:
        with pytest.raises(Unreachable) as caught:
            server.open_session(**SIGNED_IN).request(Route("GET", "/api/v1/a"))
        assert caught.value.was_sent
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        outcome = stranger("api", "GET", "/a", code=1)
    assert outcome.out == ""
    assert f"The answer of {server.url} broke off." in outcome.err


@pytest.mark.parametrize("is_deletion", [False, True], ids=["ended", "deleted"])
def test_a_wait_is_over_in_time_while_the_server_is_away(
    stranger: CommandLine, is_deletion: bool
) -> None:
    workload = {"id": WORKLOAD, "name": "w", "phase": "Running", "projectName": "p"}
    workload |= {"deletedAt": "2026-01-01T00:00:00Z"} if is_deletion else {}
    paths: list[str] = []

    def answer(path: str, query: Query, token: str) -> Answer:
        paths.append(path)
        is_there = path.endswith(WORKLOAD) if is_deletion else len(paths) <= 2
        return Answer(200, json.dumps(workload)) if is_there else Answer(503)

    goal = ("--for", "deleted") if is_deletion else ()
    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        began = time.monotonic()
        outcome = stranger("wait", WORKLOAD, *goal, "--timeout", "2s", code=ExitCode.TIMED_OUT)
        waited = time.monotonic() - began
    assert "is not known after 2 s" in outcome.err
    # Without its own time it would be 300 s.
    assert waited < 120


@pytest.mark.parametrize("address", ["ftp://{}", "htps://{}", "http://[::1", "http://a:99999"])
def test_an_address_in_the_file_that_is_none_gets_no_token(
    stranger: CommandLine, address: str
) -> None:
    with serve_answers(lambda path, query, token: Answer(200, "{}")) as server:
        written = address.format(server.url.partition("://")[2])
        stranger.folder.mkdir()
        (stranger.folder / "config.json").write_text(
            json.dumps({"current": "here", "contexts": {"here": {"server": written}}})
        )
        stranger.variables = {"MUSTER_TOKEN": "t"}
        message = stranger("whoami", code=ExitCode.USAGE).err
        assert not server.queries
        assert f"{written} is not the address of a server. The context here has it." in message
        stranger("config", "set", "server", server.url)
        stranger("whoami", "-o", "json")
        assert len(server.queries) == 1


def test_what_is_nested_too_deep_is_told_in_words(tmp_path: Path) -> None:
    deep = "[" * 200_000
    with serve_answers(lambda *request: Answer(200, deep)) as server:
        session = server.open_session(**SIGNED_IN)
        with pytest.raises(Refused, match="not JSON"):
            session.request(Route("GET", "/a")).parse()
    file = tmp_path / "credentials.json"
    file.write_text(deep)
    with pytest.raises(CliError, match="is not a file of muster's"):
        private_files.read_json(file)


def test_a_parameter_can_be_given_several_times() -> None:
    route = Route("GET", "/a")
    target = build_target(route, {"a": ["1", "2"], "is": True, "none": None, "text": "x y"}, {})
    assert target == "/a?a=1&a=2&is=true&text=x+y"


@pytest.mark.parametrize(
    ("command", "path"),
    [(("whoami",), "/api/v1/me"), (("project", "list"), "/api/v1/org-unit/projects")],
    ids=["one", "many"],
)
@pytest.mark.parametrize("body", ["[1]", '"welcome"', "5", "null"])
def test_an_answer_of_another_shape_is_told_in_words(
    stranger: CommandLine, command: tuple[str, ...], path: str, body: str
) -> None:
    with serve_answers(lambda *request: Answer(200, body)) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        outcome = stranger(*command, code=ExitCode.FAILED)
    assert f"The answer of {server.url}{path} is not understood" in outcome.err
    assert "muster config list" in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("command", "body", "name"),
    [
        (("whoami",), "{}", "kind"),
        (("list",), '{"workloads": [{"id": "w", "phase": "Failed"}]}', "name"),
        (("at", "2026-11-01"), "{}", "waiting"),
        (("submit", "standard", "a", "--image", "a", "-p", "p"), '{"projects": [{}]}', "id"),
    ],
    ids=["object", "item", "moment", "submission"],
)
def test_what_an_answer_lacks_is_named(
    stranger: CommandLine, command: tuple[str, ...], body: str, name: str
) -> None:
    with serve_answers(lambda *request: Answer(200, body)) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        outcome = stranger(*command, code=ExitCode.FAILED)
    assert f"is not understood: it has no {name}." in outcome.err
    assert "muster config list" in outcome.err
    assert outcome.out == ""


def test_an_answer_is_written_as_yaml(stranger: CommandLine) -> None:
    with serve_answers(lambda *request: Answer(200, '{"a": {"b": [{}]}}')) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        assert stranger("api", "GET", "/a", "-o", "yaml").out == "a:\n  b:\n  - {}\n"


@pytest.mark.parametrize(
    ("body", "code"),
    [("default backend - 404", ExitCode.FAILED), ('{"code": 404, "message": "no"}', ExitCode.OK)],
    ids=["proxy", "muster"],
)
def test_a_proxy_that_knows_no_address_does_not_say_that_a_workload_is_gone(
    stranger: CommandLine, body: str, code: ExitCode
) -> None:
    workload = json.dumps({"id": WORKLOAD, "name": "w", "phase": "Deleting", "projectName": "p"})
    paths: list[str] = []

    def answer(path: str, query: Query, token: str) -> Answer:
        paths.append(path)
        return Answer(200, workload) if len(paths) <= 2 else Answer(404, body)

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        outcome = stranger("wait", WORKLOAD, "--for", "deleted", code=code)
    assert ("status 404" in outcome.err) == (code != ExitCode.OK)


def test_a_list_that_is_watched_has_no_more_than_its_limit(stranger: CommandLine) -> None:
    rows = [
        {"id": f"w{n}", "name": f"w{n}", "phase": "Failed", "createdAt": f"2026-01-0{9 - n}"}
        for n in range(1, 4)
    ]

    def answer(path: str, query: Query, token: str) -> Answer:
        return Answer(200, json.dumps({"workloads": rows[: int(query["limit"])]}))

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        watched = stranger.start("list", "--watch", "--limit", "1", "--interval", "0.5")
        while len(server.queries) < 2 and watched.poll() is None:
            time.sleep(0.05)
        watched.kill()
        written = watched.communicate()[0]
    assert "w1" in written
    assert "w2" not in written


def test_a_project_that_is_taken_out_of_a_context_is_said_to_be_gone(
    stranger: CommandLine,
) -> None:
    stranger.folder.mkdir()
    (stranger.folder / "config.json").write_text(
        json.dumps({"current": "here", "contexts": {"here": {"server": "https://a.example"}}})
    )
    assert stranger("config", "set", "project", "a").out == "project of here is a.\n"
    assert stranger("config", "set", "project", "").out == "project of here is not set any more.\n"

"""What is refused before it is sent, and what never reaches a terminal."""

import io
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import click
import pytest

from muster_cli import contexts, credentials
from muster_cli.actions.identity import create_device_code, store_sign_in
from muster_cli.actions.workloads import get_workload, list_workloads
from muster_cli.commands import changes
from muster_cli.commands.at import show_moment
from muster_cli.commands.root import root
from muster_cli.commands.sign_in import _is_loopback
from muster_cli.contexts import check_server
from muster_cli.credentials import Secret, StoredToken
from muster_cli.errors import CliError, ExitCode, Refused, UsageProblem, describe_error
from muster_cli.output.formats import OutputFormat, write_value
from muster_cli.output.terminal import Terminal, clean_log_line
from muster_cli.settings import Settings
from tests.cli.log_server import Answer, Query, serve_answers
from tests.cli.running import CommandLine, build_command


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("text", ["9999-12-31T23:59-10:00", "0001-01-01T00:00+14:00", "tuesday"])
def test_a_moment_beyond_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="in your time"):
        show_moment.make_context("at", [text])


@pytest.mark.parametrize("reference", ["", " ", "a,phase==Failed", "/", "p/", "/a", "a==b", "a\n"])
def test_what_is_no_name_is_refused_before_anything_is_sent(reference: str) -> None:
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        session = server.open_session(token=Secret("t"))
        with pytest.raises(UsageProblem):
            get_workload(session, reference)
        with pytest.raises(UsageProblem):
            get_workload(session, "a", "p,phase==Failed")
        assert server.queries == []


ADDRESSES = [
    ("/workloads?search=\u00e9", "/api/v1/workloads", "\u00e9"),
    ("/workloads?search=a b#c", "/api/v1/workloads", "a b#c"),
    ("/workloads?search=a%20b", "/api/v1/workloads", "a b"),
    ("/a b/{c}\n?search=1", "/api/v1/a%20b/%7Bc%7D%0A", "1"),
]


@pytest.mark.parametrize(("path", "sent_path", "search"), ADDRESSES)
def test_every_character_of_a_path_can_be_sent(
    stranger: CommandLine, path: str, sent_path: str, search: str
) -> None:
    paths: list[str] = []

    def answer(path: str, query: Query, token: str) -> Answer:
        paths.append(path)
        return Answer(200, "{}")

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        stranger("api", "get", path)
        stranger.variables["MUSTER_SERVER"] += "/m\u00fc"
        stranger("api", "get", path)
        assert server.queries == [{"search": search}] * 2
    assert paths == [sent_path, f"/m%C3%BC{sent_path}"]


@pytest.mark.parametrize("arguments", [("list", "--search"), ("api", "get"), ("logs",)])
def test_what_is_no_text_is_refused_before_anything_is_sent(
    stranger: CommandLine, arguments: tuple[str, ...]
) -> None:
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        refused = stranger(*arguments, os.fsdecode(b"/a\xff"), code=ExitCode.USAGE)
        assert "/a\\xff is not text" in refused.err
        assert server.queries == []


def test_an_unset_variable_deletes_nothing(stranger: CommandLine) -> None:
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        assert "name" in stranger("delete", "", code=2).err
        assert "empty" in stranger("environment", "delete", "-y", "", code=2).err
        assert server.queries == []


def test_what_is_run_again_before_the_answer_is_not_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": f"w{n}", "name": f"w{n}", "phase": "Failed", "projectName": "p", "type": "Training"}
        for n in range(2)
    ]
    deleted: list[str] = []

    def answer(path: str, query: Query, token: str) -> Answer:
        if path.endswith("/workloads"):
            chosen = [each for each in rows if f"phase=={each['phase']}" in query["filterBy"]]
            return Answer(200, json.dumps({"workloads": chosen}))
        if not path.endswith("/me"):
            deleted.append(path.rpartition("/")[2])
        return Answer(202, '{"code": 202, "message": "It is being deleted."}')

    monkeypatch.setattr(changes, "confirm", lambda *question: rows[1].update(phase="Running"))
    with serve_answers(answer) as server:
        for name, value in (("SERVER", server.url), ("TOKEN", "t")):
            monkeypatch.setenv(f"MUSTER_{name}", value)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        root.main(["prune", "--older-than", "1d", "-A"], standalone_mode=False)
    assert deleted == ["w0"]
    captured = capsys.readouterr()
    assert "not as they were, and stay: w1." in captured.err
    assert "1 of 1 are being deleted." in captured.err


@pytest.mark.parametrize(
    "sequence", ["\x1b[>4;2m", "\x1b[?4m", "\x1b[1 m", "\x1b]0;x\x07", "\x9b31m"]
)
def test_a_terminal_is_told_colours_alone(sequence: str) -> None:
    screen = Screen()
    terminal = Terminal(screen)
    for text in (clean_log_line(f"a{sequence}b"), describe_error(CliError(f"a{sequence}b"))):
        assert "\x1b" not in text.replace("\x1b[0m", "")
        assert "\x9b" not in text
        assert "\x07" not in text
    terminal.write_line(f"\x1b[31ma{sequence}b")
    assert screen.getvalue().replace("\x1b[31m", "").replace("\x1b[0m", "") in ("ab\n", "a31mb\n")


def test_how_long_ago_is_counted_by_the_servers_clock(stranger: CommandLine) -> None:
    """Where the clock of this machine is ahead, what has just ended would be pruned, too."""
    workload = {"id": WORKLOAD, "name": "w", "phase": "Running", "projectName": "p"}
    body = json.dumps({**workload, "workloads": [], "pods": [{"id": "a", "name": "a"}]})
    answer = Answer(200, body, date="Thu, 01 Jan 2026 00:00:00 GMT")
    with serve_answers(lambda *request: answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        stranger("prune", "--older-than", "1h", "-A", "--yes")
        filters = [query["filterBy"] for query in server.queries if "filterBy" in query]
        assert len(filters) == 2
        assert all("completedAt<=2025-12-31T23:00:0" in each for each in filters)
        stranger("logs", WORKLOAD, "--since", "10m")
    assert server.queries[-1]["sinceTime"].startswith("2025-12-31T23:50:")


def test_json_at_a_terminal_is_escaped() -> None:
    screen, value = Screen(), {"a": "\x9b31m\u202e\x7fé"}
    write_value(value, OutputFormat.JSON, Terminal(screen))
    assert "\u202e" not in screen.getvalue()
    assert "é" in screen.getvalue()
    assert json.loads(screen.getvalue()) == value


@pytest.mark.parametrize(
    "address",
    ["http://h:abc", "http://[::1", "http://h:99999", "http://:80", "h:", "http://h:0", "h..a"],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageProblem):
        check_server(address)


def test_a_name_that_begins_like_this_machine_is_another() -> None:
    assert [_is_loopback(each) for each in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    assert not _is_loopback("127.evil.example")


@pytest.mark.parametrize("body", ["{}", "[]", '{"userCode": "A", "deviceCode": "b"}', "x"])
def test_another_server_is_told_in_words(body: str) -> None:
    with serve_answers(lambda *request: Answer(200, body)) as server, pytest.raises(Refused):
        create_device_code(server.open_session())


def _store_tokens(name: str) -> None:
    for number in range(10):
        credentials.store_token(f"{name}{number}", StoredToken(Secret("t"), 4e9))


def test_tokens_that_are_stored_at_once_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with ThreadPoolExecutor(3) as pool:
        for stored in [pool.submit(_store_tokens, name) for name in "abc"]:
            stored.result()
    assert all(credentials.find_token(f"{name}{n}") for name in "abc" for n in range(10))


@pytest.mark.parametrize(("redirection", "code"), [(">&-", 0), (">/dev/full", 1)])
def test_output_that_cannot_be_written_is_told(
    stranger: CommandLine, redirection: str, code: int
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *build_command("--help")],
        capture_output=True,
        text=True,
        env=stranger.environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        cwd=os.fspath(stranger.home),
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == bool(code)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("submit", "-f", "-"), "not a submission"),
        (("login", "http://127.0.0.1:1", "--user", "bob", "--password-stdin"), "is empty"),
        (("prune", "--older-than", "1d", "-A"), "Nobody can be asked here"),
    ],
    ids=["file", "password", "question"],
)
def test_a_closed_standard_input_has_nothing_to_read(
    stranger: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    workload = {"projectName": "p", "name": "w", "phase": "Failed", "id": "w"}
    answer = Answer(200, json.dumps({"workloads": [workload]}))
    with serve_answers(lambda *request: answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", *build_command(*arguments)],
            capture_output=True,
            text=True,
            env=stranger.environment,
            cwd=os.fspath(stranger.home),
        )
    assert done.returncode == ExitCode.USAGE, done
    assert message in done.stderr


GROWING = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{above}'] * 9)}]\n" for above, name in pairwise("abcdefghijk")
)
"""A few lines that are gigabytes once each alias is written out."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nspec: {image: a}\nname: b\n", "'name' twice"),
        ('{"name": "a", "spec": {"image": "a", "image": "b"}}', "'image' twice"),
        ("spec: &a\n  image: *a\n", "contains itself"),
        (GROWING, "more than 2 MiB"),
        (GROWING.replace("[", "{<<: [").replace("]", "]}").replace("{<<: [x]}", "{k: v}"), "2 MiB"),
        (f"a: &a {'x' * 1_000_000}\nb: [{'*a, ' * 3000}*a]\n", "more than 2 MiB"),
        ("name: !!binary aGk=\n", "bytes"),
        ("? [a]\n: b\n", "unhashable"),
        ("spec: {workers: .inf}\n", "Out of range"),
    ],
    ids=[
        "yaml twice",
        "json twice",
        "circle",
        "lists that grow",
        "merges that grow",
        "a long text",
        "binary",
        "name",
        "infinite",
    ],
)
def test_a_file_that_is_not_what_it_seems_is_refused_before_it_is_sent(
    stranger: CommandLine, text: str, message: str
) -> None:
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        for command in (("submit", "--name", "c"), ("api", "POST", "/workloads/batch")):
            refused = stranger(*command, "-f", "-", stdin=text, code=ExitCode.USAGE)
            assert message in refused.err
        assert server.queries == []


def test_a_file_of_windows_is_read(stranger: CommandLine) -> None:
    """It begins with a byte order mark, and has other line ends."""
    file = stranger.home / "a.json"
    file.write_bytes(b'\xef\xbb\xbf{\r\n\t"name": "a"\r\n}\r\n')
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        stranger("api", "POST", "/a", "-f", str(file))
        assert [json.loads(each) for each in server.bodies] == [{"name": "a"}]


def test_json_in_an_argument_names_nothing_twice(stranger: CommandLine) -> None:
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        refused = stranger("api", "POST", "/a", "-d", '{"a": 1, "a": 2}', code=ExitCode.USAGE)
        assert "'a' twice" in refused.err
        assert server.queries == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: a value is missing"),
        ("{", "line 1, column 2: a name in double quotes is missing"),
        ("{'a': 1}", "line 1, column 2: a name in double quotes is missing"),
        ('{"a": 1}}', "line 1, column 9: nothing may follow the first value"),
        ('{\n"a" 1}', "line 2, column 5: a colon is missing"),
        ('["a"', "line 1, column 5: a comma or a closing bracket is missing"),
        ('["a', "line 1, column 2: the text that begins here has no end"),
        ('["a\nb"]', "line 1, column 4: a line end or a tab within a text is written \\n or \\t"),
        (r'["\d"]', r"line 1, column 3: a backslash within a text is written \\"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ("[-1e400]", "-1e400 is too large a number"),
        ("@body.json", "--file names a file."),
    ],
)
def test_what_is_wrong_with_json_in_an_argument_is_told_in_words(
    stranger: CommandLine, text: str, message: str
) -> None:
    stranger.variables = {"MUSTER_SERVER": "http://127.0.0.1:1", "MUSTER_TOKEN": "t"}
    refused = stranger("api", "POST", "/a", "-d", text, code=ExitCode.USAGE)
    assert "--data is not JSON: " in refused.err
    assert message in refused.err
    if text.startswith("["):
        refused = stranger("api", "POST", "/a", "-f", "-", stdin=text, code=ExitCode.USAGE)
        assert message in refused.err


@pytest.mark.parametrize("query", ["limit", "=5", ""])
def test_a_query_parameter_without_name_or_value_is_refused(
    stranger: CommandLine, query: str
) -> None:
    stranger.variables = {"MUSTER_SERVER": "http://127.0.0.1:1", "MUSTER_TOKEN": "t"}
    refused = stranger("api", "GET", "/workloads", "-q", query, code=ExitCode.USAGE)
    assert f"--query {query} is not NAME=VALUE." in refused.err


def _add_contexts(name: str) -> None:
    for number in range(10):
        settings = Settings("http://127.0.0.1:1", f"{name}{number}")
        store_sign_in(settings, StoredToken(Secret("t"), 4e9))


def test_contexts_that_are_changed_at_once_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with ThreadPoolExecutor(3) as pool:
        for changed in [pool.submit(_add_contexts, name) for name in "abc"]:
            changed.result()
    wanted = {f"{name}{number}" for name in "abc" for number in range(10)}
    assert contexts.load_config().contexts.keys() == wanted


def test_no_file_is_open_to_others_at_any_moment(tmp_path: Path) -> None:
    program = (
        "import os; os.umask(0)\n"
        "from muster_cli.actions.identity import store_sign_in\n"
        "from muster_cli.credentials import Secret, StoredToken\n"
        "from muster_cli.settings import Settings\n"
        "store_sign_in(Settings('http://127.0.0.1:1', 'a'), StoredToken(Secret('t'), 4e9))\n"
    )
    stranger = CommandLine(tmp_path)
    subprocess.run(
        [sys.executable, "-c", program], env=stranger.environment, check=True, timeout=60
    )
    assert stat.S_IMODE(stranger.folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in stranger.folder.iterdir()}
    assert {"config.json", "credentials.json"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_secrets_are_in_no_argument_environment_or_traceback(stranger: CommandLine) -> None:
    secret = "never-to-be-seen"

    def answer(path: str, query: Query, token: str) -> Answer:
        if path.endswith("/token"):
            return Answer(200, json.dumps({"accessToken": secret, "expiresIn": 3600}))
        # No moment: what is made of it fails within the program.
        workload = {"id": WORKLOAD, "name": "w", "phase": "Running", "createdAt": 5}
        return Answer(200, json.dumps({"workloads": [workload]}))

    with serve_answers(answer) as server:
        stranger("login", server.url, "--user", "bob", "--password-stdin", stdin=secret)
        stranger.variables = {"MUSTER_DEBUG": "1"}
        failed = stranger("list", code=None)
        assert "Traceback" in failed.err
        assert secret not in failed.out + failed.err
        stranger.variables = {
            "MUSTER_SERVER": server.url,
            "MUSTER_CLIENT_ID": "app",
            "MUSTER_CLIENT_SECRET": secret,
        }
        # The token of a program is nowhere but in its file: what it starts does not inherit it.
        with stranger.start("logs", WORKLOAD, "-f") as running:
            command = Path(f"/proc/{running.pid}/cmdline").read_bytes()
            running.kill()
            outputs = running.communicate()
        assert secret.encode() not in command
        assert not [text for text in outputs if secret in text]


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"message": 3}', "<html>", '"a"'])
@pytest.mark.parametrize("command", ["stop", "run", "delete"])
def test_a_broken_answer_is_told_in_words(stranger: CommandLine, command: str, body: str) -> None:
    workload = json.dumps({"id": WORKLOAD, "name": "w", "type": "Distributed", "phase": "Running"})
    calls = []

    def answer(path: str, query: Query, token: str) -> Answer:
        calls.append(path)
        return Answer(200, workload if len(calls) == 1 else body)

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        message = stranger(command, WORKLOAD, code=1).err
    assert "no Muster, or a proxy" in message or "it has not the shape of Muster's" in message
    assert "unexpectedly" not in message


ROWS = 20_700
LONGEST_OFFSET = 10_000


def _list_rows(query: Query) -> Answer:
    """Answer as the server does: the newest first, and no offset beyond the longest."""
    offset, limit = int(query.get("offset", 0)), int(query["limit"])
    if offset > LONGEST_OFFSET:
        return Answer(400, '{"message": "offset must be at most 10000."}')
    until = query.get("filterBy", "").rpartition("createdAt<=")[2]
    # Three have each moment.
    moments = [f"2026-01-01T00:00:00.{(ROWS - n) // 3:06}Z" for n in range(ROWS)]
    first = next((n for n, each in enumerate(moments) if not until or each <= until), ROWS)
    chosen = range(first, ROWS)[offset : offset + limit]
    rows = [{"id": f"w{n}", "phase": "Failed", "createdAt": moments[n]} for n in chosen]
    following = offset + limit if first + offset + limit < ROWS else None
    return Answer(200, json.dumps({"workloads": rows, "next": following}))


@pytest.mark.parametrize("limit", [None, 10_000, 10_001, 20_001])
def test_a_list_goes_on_beyond_the_longest_offset(limit: int | None) -> None:
    with serve_answers(lambda path, query, token: _list_rows(query)) as server:
        session = server.open_session(token=Secret("t"))
        listed = [each["id"] for each in list_workloads(session, limit=limit, filter_by="a==b")]
    assert listed == [f"w{n}" for n in range(ROWS if limit is None else limit)]


def test_more_than_can_be_listed_is_told() -> None:
    def answer(path: str, query: Query, token: str) -> Answer:
        offset = int(query.get("offset", 0))
        rows = [{"id": f"w{offset + n}", "createdAt": "2026-01-01T00:00:00Z"} for n in range(500)]
        return Answer(200, json.dumps({"workloads": rows, "next": offset + 500}))

    with serve_answers(answer) as server, pytest.raises(UsageProblem, match="one moment"):
        list(list_workloads(server.open_session(token=Secret("t"))))


WORKLOAD = "00000000-0000-4000-8000-000000000000"

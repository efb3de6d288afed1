"""What is refused before it is sent, and what never reaches a terminal."""

import io
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from muster_cli import credentials
from muster_cli.actions.identity import create_device_code
from muster_cli.actions.workloads import get_workload
from muster_cli.commands.sign_in import _is_loopback
from muster_cli.contexts import check_server
from muster_cli.credentials import Secret, StoredToken
from muster_cli.errors import CliError, Refused, UsageProblem, describe_error
from muster_cli.output.formats import OutputFormat, write_value
from muster_cli.output.terminal import Terminal, clean_log_line
from tests.cli.log_server import Answer, serve_answers
from tests.cli.running import CommandLine, build_command


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("reference", ["", " ", "a,phase==Failed", "/", "p/", "/a", "a==b", "a\n"])
def test_what_is_no_name_is_refused_before_anything_is_sent(reference: str) -> None:
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        session = server.open_session(token=Secret("t"))
        with pytest.raises(UsageProblem):
            get_workload(session, reference)
        with pytest.raises(UsageProblem):
            get_workload(session, "a", "p,phase==Failed")
        assert server.queries == []


def test_an_unset_variable_deletes_nothing(stranger: CommandLine) -> None:
    with serve_answers(lambda *request: Answer(200, "{}")) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        assert "name" in stranger("delete", "", code=2).err
        assert "empty" in stranger("environment", "delete", "-y", "", code=2).err
        assert server.queries == []


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


def test_json_at_a_terminal_is_escaped() -> None:
    screen, value = Screen(), {"a": "\x9b31m\u202e\x7fé"}
    write_value(value, OutputFormat.JSON, Terminal(screen))
    assert "\u202e" not in screen.getvalue()
    assert "é" in screen.getvalue()
    assert json.loads(screen.getvalue()) == value


@pytest.mark.parametrize(
    "address", ["http://h:abc", "http://[::1", "http://h:99999", "http://:80", "h:", "http://h:0"]
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

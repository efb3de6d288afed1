"""Signing in and out, where tokens are kept, and where they are never seen."""

import http.cookiejar
import json
import re
import stat
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from muster_cli import VERSION, credentials
from muster_cli.credentials import Secret, StoredToken
from muster_cli.session import compare_versions
from tests.cast import PASSWORD
from tests.cli.running import CommandLine, Console


def read_token(who: CommandLine) -> str:
    tokens = json.loads((who.folder / "credentials.json").read_text())["tokens"]
    return str(next(iter(tokens.values()))["token"])


def test_a_person_signs_in_and_out(bob: CommandLine, console: Console) -> None:
    assert bob("whoami").out == f"bob at {console.web.url} (Muster {VERSION})\n"
    bob("logout")
    assert "not signed in" in bob("list", code=3).err
    assert "muster login" in bob("whoami", code=3).err


def test_a_wrong_password_and_an_ended_token_are_told_apart(
    stranger: CommandLine, console: Console
) -> None:
    login = ("login", console.web.url, "--user", "bob", "--password-stdin")
    assert "not right" in stranger(*login, stdin="wrong\n", code=3).err
    stranger(*login, stdin=PASSWORD)
    path = stranger.folder / "credentials.json"
    values = json.loads(path.read_text())
    for each in values["tokens"].values():
        each["expiresAt"] = 1
    path.write_text(json.dumps(values))
    assert "session has ended" in stranger("list", code=3).err


def test_a_program_signs_in_by_variables(stranger: CommandLine, console: Console) -> None:
    stranger.variables = {
        "MUSTER_SERVER": console.web.url,
        "MUSTER_CLIENT_ID": console.ids["clientId"],
        "MUSTER_CLIENT_SECRET": console.ids["secret"],
    }
    assert stranger("whoami", "-o", "json").parse()["kind"] == "service-account"
    # A token that the server no longer takes is replaced without a word.
    path = stranger.folder / "credentials.json"
    values = json.loads(path.read_text())
    for each in values["tokens"].values():
        each["token"] = "x.y.z"
    path.write_text(json.dumps(values))
    assert stranger("list", "-o", "name").out
    stranger.variables["MUSTER_CLIENT_SECRET"] = ""
    path.unlink()
    assert "MUSTER_CLIENT_SECRET is not" in stranger("list", code=3).err


def test_files_are_the_users_alone(bob: CommandLine) -> None:
    assert stat.S_IMODE(bob.folder.stat().st_mode) == 0o700
    for name in ("config.json", "credentials.json"):
        assert stat.S_IMODE((bob.folder / name).stat().st_mode) == 0o600
    (bob.folder / "credentials.json").chmod(0o644)
    bob("list")
    assert stat.S_IMODE((bob.folder / "credentials.json").stat().st_mode) == 0o600


def test_a_token_is_in_no_argument_output_log_or_traceback(
    bob: CommandLine, console: Console
) -> None:
    token = read_token(bob)
    with bob.start("list", "--watch", "--interval", "0.5") as watched:
        assert watched.stdout is not None
        watched.stdout.readline()
        command = Path(f"/proc/{watched.pid}/cmdline").read_bytes()
        watched.kill()
        outputs = watched.communicate()
    assert token.encode() not in command
    bob.variables["MUSTER_DEBUG"] = "1"
    refused = bob("api", "POST", "/workloads/distributed", "-d", "{}", code=1)
    for name in ("config.json", "credentials.json"):
        path = bob.folder / name
        path.write_text(path.read_text().replace(console.web.url, "http://127.0.0.1:1"))
    unreachable = bob("list", code=1)
    texts = [*outputs, refused.out, refused.err, unreachable.out, unreachable.err, console.web.log]
    assert not [text for text in texts if token in text or PASSWORD in text]


def test_a_secret_shows_itself_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    token = StoredToken(Secret("very-secret"), 4e9, "bob")
    assert "very-secret" not in f"{token} {token!r} {token.token}"
    credentials.store_token("context:here", token)
    stored = credentials.find_token("context:here")
    assert stored is not None
    assert stored.token.reveal() == "very-secret"
    assert credentials.remove_token("context:here")
    assert credentials.find_token("context:here") is None


def test_a_token_of_the_environment_is_named_where_it_is_refused(bob: CommandLine) -> None:
    bob.variables = {"MUSTER_TOKEN": "abc"}
    refused = bob("list", code=3).err
    assert "MUSTER_TOKEN is set" in refused
    assert "muster login" not in refused


def test_contexts_are_several_servers(bob: CommandLine, console: Console) -> None:
    bob(
        "login",
        console.web.url,
        "--user",
        "vera",
        "--password-stdin",
        "--name",
        "hers",
        stdin=PASSWORD,
    )
    assert bob("config", "list", "-o", "name").out.split() == ["here", "hers"]
    assert bob("whoami", "-o", "name").out == "vera\n"
    assert bob("--context", "here", "whoami", "-o", "name").out == "bob\n"
    bob("config", "use", "here")
    bob("config", "set", "project", "team-a")
    assert "team-a" in bob("config", "list").out
    bob("config", "delete", "hers")
    bob("--context", "hers", "whoami", code=5)
    assert " is https://a.example.com." in bob("config", "set", "server", "a.example.com/").out
    assert str(bob.home / "ca.pem") in bob("config", "set", "ca-file", "ca.pem").out
    bob("config", "delete", "here")
    assert "config use" in bob("config", "set", "project", "team-a", code=2).err


def test_a_token_is_sent_to_no_other_server(bob: CommandLine, console: Console) -> None:
    other = console.web.url.replace("127.0.0.1", "localhost")
    bob.variables = {"MUSTER_SERVER": other, "MUSTER_CONTEXT": "here"}
    assert "not signed in" in bob("list", code=3).err
    bob.variables = {}
    bob("config", "set", "server", other)
    assert "not signed in" in bob("list", code=3).err


def test_a_server_that_is_none_is_told_in_words(stranger: CommandLine) -> None:
    login = ("--user", "bob", "--password-stdin")
    refused = stranger("login", "http://127.0.0.1:1", *login, stdin="x", code=1).err
    assert "did not answer" in refused
    assert "Traceback" not in refused
    stranger("login", "http://a b", *login, stdin="x", code=2)
    stranger("list", code=3)


def test_certificates_that_cannot_be_read_are_not_blamed_on_the_server(
    stranger: CommandLine,
) -> None:
    (stranger.home / "empty.pem").write_text("none\n")
    login = ("login", "https://127.0.0.1:1", "--user", "bob", "--password-stdin", "--ca-file")
    missing = stranger(*login, "missing.pem", stdin="x", code=2).err
    assert f"{stranger.home / 'missing.pem'} cannot be read: No such file" in missing
    assert "--ca-file FILE" in missing
    empty = stranger(*login, "empty.pem", stdin="x", code=2).err
    assert "empty.pem cannot be read: it has no certificates in PEM." in empty
    assert "did not answer" not in missing + empty


MAJOR, MINOR = map(int, VERSION.split(".")[:2])


@pytest.mark.parametrize(
    ("server", "word"),
    [
        (VERSION, ""),
        (f"{MAJOR}.{MINOR}.999", ""),
        (f"{MAJOR}.{MINOR + 1}.0", "newer"),
        (f"{MAJOR + 1}.0.0", "newer"),
        ("0.0.9", "older"),
        ("", "older"),
    ],
)
def test_an_older_or_newer_server_is_told(server: str, word: str) -> None:
    note = compare_versions(server)
    assert word in note
    assert bool(note) == bool(word)


class Browser:
    """Somebody who signs in on the server's page, and keeps its cookies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        )
        self.page = ""

    def get(self, path: str) -> "Browser":
        return self._open(urllib.request.Request(f"{self.url}{path}"))

    def post(self, path: str, **fields: str) -> "Browser":
        """Send the form of the page that is shown."""
        hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page)
        assert hidden is not None, self.page
        data = urllib.parse.urlencode(fields | {"csrfmiddlewaretoken": hidden[1]}).encode()
        headers = {"Referer": f"{self.url}{path}", "Origin": self.url}
        return self._open(urllib.request.Request(f"{self.url}{path}", data, headers))

    def _open(self, request: urllib.request.Request) -> "Browser":
        with self._opener.open(request, timeout=180) as answer:
            self.page = answer.read().decode()
        return self


@pytest.mark.parametrize(("decision", "status"), [("confirm", 0), ("deny", 3)])
def test_a_person_signs_in_by_a_code_on_the_page(
    stranger: CommandLine, console: Console, decision: str, status: int
) -> None:
    assert "--code" in stranger("login", console.web.url, code=3).err
    with stranger.start("login", console.web.url, "--code") as waiting:
        assert waiting.stderr is not None
        words = waiting.stderr.readline().split()
        code, address = words[3], words[-1].removeprefix(console.web.url)
        browser = Browser(console.web.url).get(address)
        assert code not in browser.page.partition("<form")[0]
        browser.post("/sign-in", username="bob", password=PASSWORD, next=address).get(address)
        assert "muster on" in browser.page
        browser.post("/sign-in/program", code=code, decision=decision)
        assert waiting.wait(60) == status
    if not status:
        assert stranger("whoami", "-o", "name").out == "bob\n"
        assert stranger("list", "-o", "name").out
    else:
        assert not (stranger.folder / "credentials.json").exists()

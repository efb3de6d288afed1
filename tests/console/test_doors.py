"""What holds for every answer of the web process, whoever asks: headers, sizes, hosts, cookies, and
files that are ours alone.
"""

import asyncio
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import Client

from console import body_limit
from tests.cast import PASSWORD, Cast
from tests.cluster import ROOT

STATIC = "/static/css/muster.css"


def headers_of(client: Client, path: str, **more: str) -> dict[str, str]:
    answer: HttpResponseBase = client.get(path, headers=more)
    if isinstance(answer, StreamingHttpResponse) and not answer.is_async:
        b"".join(answer)
    answer.close()
    return dict(answer.items())


@pytest.mark.parametrize(
    "path",
    [
        "/sign-in",
        "/nothing-here",
        "/projects",
        "/api/v1/workloads",
        "/api/v1/nothing",
        "/healthz",
        STATIC,
    ],
)
def test_every_answer_has_the_policy_and_is_not_guessed_at(
    client: Client, db: None, path: str
) -> None:
    answer = headers_of(client, path)
    assert "script-src 'self'; style-src 'self'" in answer["Content-Security-Policy"]
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert (answer["X-Content-Type-Options"], answer["Referrer-Policy"]) == (
        "nosniff",
        "same-origin",
    )


@pytest.mark.parametrize(
    "path",
    [
        "/projects",
        "/environments",
        "/clusters",
        "/workloads",
        "/workloads.csv",
        "/nothing",
        "/api/v1/workloads",
    ],
)
def test_nobody_on_the_way_keeps_what_is_somebodys(client: Client, cast: Cast, path: str) -> None:
    client.force_login(cast.bob)
    kept = headers_of(client, path)["Cache-Control"]
    assert "no-store" in kept
    assert "private" in kept
    assert "no-store" not in headers_of(client, STATIC)["Cache-Control"]


def test_a_name_that_is_not_ours_gets_no_page(client: Client, db: None) -> None:
    answer = client.get("/sign-in", headers={"host": "evil.example"})
    assert (answer.status_code, "evil" in answer.content.decode()) == (400, settings.DEBUG)
    assert "Content-Security-Policy" in answer


def test_cookies_are_for_this_site_alone_and_a_sign_in_makes_a_new_one(
    client: Client, cast: Cast
) -> None:
    client.cookies[settings.SESSION_COOKIE_NAME] = "chosenbyanother1234567890abcdefg"
    answer = client.post("/sign-in", {"username": "bob", "password": PASSWORD})
    session = answer.cookies[settings.SESSION_COOKIE_NAME]
    assert session.value != "chosenbyanother1234567890abcdefg"
    assert (session["httponly"], session["samesite"], bool(session["secure"])) == (
        True,
        "Lax",
        settings.OPTIONS.production,
    )


async def _post_chunks(chunks: int, size: int, path: str) -> dict[str, Any]:
    # Not at the top: it loads every page, and exempts all that is loaded from garbage collection.
    from console.asgi import application

    headers = [(b"host", b"localhost"), (b"content-type", b"application/x-www-form-urlencoded")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "headers": headers,
    }
    # asgiref has no types there.
    talk: Any = ApplicationCommunicator(  # type: ignore[no-untyped-call]
        application,
        scope | {"query_string": b"", "server": ("localhost", 80), "client": ("127.0.0.1", 1)},
    )
    for number in range(chunks):
        await talk.send_input(
            {"type": "http.request", "body": b"a" * size, "more_body": number + 1 < chunks}
        )
    answer: dict[str, Any] = await talk.receive_output(30)
    talk.stop(exceptions=False)
    return answer


@pytest.mark.parametrize("path", ["/sign-in", "/api/v1/token", "/nothing"])
def test_a_body_without_end_is_refused_before_it_is_kept(path: str) -> None:
    """Nothing says how long it will be, and nobody has signed in: what is beyond the bound is not
    even read.
    """
    answer = asyncio.run(_post_chunks(100, body_limit.MAX_BODY_BYTES // 10, path))
    assert answer["status"] == 413
    assert b"content-security-policy" in dict(answer["headers"])


MARKUP = sorted((ROOT / "templates").rglob("*.html"))


@pytest.mark.parametrize("file", MARKUP, ids=lambda file: str(file.relative_to(ROOT / "templates")))
def test_no_template_has_a_script_a_style_or_unescaped_text_in_it(file: Path) -> None:
    text = file.read_text()
    assert not re.search(
        r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|hx-on|javascript:", text, re.IGNORECASE
    )
    assert not re.search(r"\|\s*safe\b|autoescape off|\bsafeseq\b", text)


def test_what_a_process_that_is_started_alone_writes_is_its_users_alone(tmp_path: Path) -> None:
    """No `up` around it, in a shell that would let everybody read."""
    given = {
        "MUSTER_DATA_DIR": str(tmp_path),
        "MUSTER_SECRET_KEY": "k" * 40,
        "MUSTER_ENCRYPTION_KEYS": settings.ENCRYPTION_KEYS[0],
    }
    environment = given | {"PATH": os.environ["PATH"]}

    def start_process(*arguments: str) -> "subprocess.Popen[bytes]":
        shell = ["sh", "-c", 'umask 022; exec "$@"', "sh", sys.executable, *arguments]
        return subprocess.Popen(
            shell, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    with start_process("manage.py", "migrate", "--verbosity", "0") as migrating:
        assert migrating.wait(100) == 0
    with start_process("-m", "console", "beat") as beat:
        until = time.monotonic() + 300
        while (
            not list(tmp_path.glob("beat-schedule*"))
            and beat.poll() is None
            and time.monotonic() < until
        ):
            time.sleep(0.05)
        beat.terminate()
    written = list(tmp_path.rglob("*"))
    assert {path.name.partition(".")[0] for path in written} >= {"muster", "beat-schedule"}
    assert {path.name for path in written if stat.S_IMODE(path.stat().st_mode) & 0o077} == set()

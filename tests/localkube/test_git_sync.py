"""The stand-in for git-sync: real repositories on this disk, cloned by real init containers, and
what it says when it cannot.
"""

import asyncio
import base64
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localkube.metadata import Object
from localkube.resources import SECRETS
from tests.localkube.kubelets import TEAM, machine, pod, shell

PROGRAM = Path(__file__).resolve().parents[2] / "localkube/programs/git_sync.py"
IMAGE = "registry.k8s.io/git-sync/git-sync:v4.4.0"
WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@x",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@x",
}
PASSWORD = "a-password-for-tests"


class Repository:
    """A repository of this test's own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.place), **WHO}
        return subprocess.run(
            ["git", *arguments], cwd=self.place, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, text: str, branch: str = "main") -> str:
        """Put `text` into the file train.py; the hash of the commit."""
        if self.git("branch", "--show-current") != branch:
            self.git("checkout", "-q", "-B", branch)
        (self.place / "train.py").write_text(text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "a change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.commit("print('first')\n")
    return made


def sync(
    root: Path, repo: str, within: float = 90, path: str = os.environ["PATH"], **settings: str
) -> "subprocess.CompletedProcess[str]":
    env = {
        "PATH": path,
        "HOME": str(root.parent),
        "GITSYNC_REPO": repo,
        "GITSYNC_ROOT": str(root),
        "GITSYNC_ONE_TIME": "true",
    }
    env |= {f"GITSYNC_{name}": value for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=env,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )


def test_the_link_leads_to_the_newest_commit_of_the_branch(
    tmp_path: Path, repository: Repository
) -> None:
    done = sync(tmp_path / "git", f"file://{repository.place}", REF="main", LINK="code", DEPTH="1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "git" / "code" / "train.py").read_text() == "print('first')\n"
    assert (tmp_path / "git" / "code").is_symlink()
    assert repository.git("rev-parse", "HEAD") in done.stdout


@pytest.mark.parametrize("how", ["branch", "tag", "hash"])
def test_a_revision_may_be_a_branch_a_tag_or_a_hash(
    tmp_path: Path, repository: Repository, how: str
) -> None:
    wanted = repository.commit("print('wanted')\n", branch="topic")
    repository.git("tag", "v1")
    repository.commit("print('later')\n", branch="main")
    if how != "branch":
        repository.git("branch", "-q", "-D", "topic")
    done = sync(
        tmp_path / "git",
        f"file://{repository.place}",
        REF={"branch": "topic", "tag": "v1", "hash": wanted}[how],
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "git" / "repository" / "train.py").read_text() == "print('wanted')\n"


def test_run_again_it_moves_the_link_and_drops_the_old_tree(
    tmp_path: Path, repository: Repository
) -> None:
    for text in ("print('second')\n", "print('third')\n"):
        repository.commit(text)
        assert sync(tmp_path / "git", f"file://{repository.place}", LINK="code").returncode == 0
        assert (tmp_path / "git" / "code" / "train.py").read_text() == text
    assert len(list((tmp_path / "git" / ".worktrees").iterdir())) == 1


@pytest.mark.parametrize(
    ("settings", "code", "text"),
    [
        ({"REPO": ""}, 2, "GITSYNC_REPO is missing"),
        ({"REPO": "--upload-pack=touch x"}, 2, "must not begin with '-'"),
        ({"DEPTH": "many"}, 2, "GITSYNC_DEPTH is 'many'"),
        (
            {"PASSWORD_FILE": "/no/such/file"},
            2,
            "GITSYNC_PASSWORD_FILE names /no/such/file, which cannot be read: No such file",
        ),
        ({"SSH_KEY_FILE": "/no/such/key"}, 2, "GITSYNC_SSH_KEY_FILE names /no/such/key"),
        (
            {"REF": "no-such-branch"},
            1,
            "at no-such-branch could not be had: fatal: couldn't find remote ref no-such-branch",
        ),
        ({"REPO": "file:///no/such/repository"}, 1, "could not be had"),
        ({"PERIOD": "soon", "ONE_TIME": "false"}, 2, "GITSYNC_PERIOD is 'soon'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    tmp_path: Path, repository: Repository, settings: dict[str, Any], code: int, text: str
) -> None:
    done = sync(tmp_path / "git", f"file://{repository.place}", **settings)
    assert done.returncode == code
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_git_it_says_what_to_install(tmp_path: Path) -> None:
    done = sync(tmp_path / "git", "https://example.com/x.git", path=str(tmp_path))
    assert done.returncode == 127
    assert "install the package git" in done.stderr


class Door(http.server.BaseHTTPRequestHandler):
    """A Git host that lets nobody in, and remembers who tried."""

    authorizations: list[str]

    def do_GET(self) -> None:
        self.authorizations.append(self.headers.get("authorization", ""))
        self.send_response(401)
        self.send_header("www-authenticate", 'Basic realm="git"')
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def door() -> Iterator[tuple[str, list[str]]]:
    """Its address without the scheme, and the Authorization headers that came."""
    authorizations: list[str] = []
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Own", (Door,), {"authorizations": authorizations})
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}", authorizations
        server.shutdown()
        thread.join()


def test_name_and_password_are_sent_and_in_no_line_of_the_log(
    tmp_path: Path, door: tuple[str, list[str]]
) -> None:
    address, authorizations = door
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    done = sync(
        tmp_path / "git",
        f"http://{address}/x.git",
        USERNAME="alice",
        PASSWORD_FILE=str(tmp_path / "password"),
    )
    assert done.returncode == 1
    assert f"Basic {base64.b64encode(f'alice:{PASSWORD}'.encode()).decode()}" in authorizations
    assert "could not be had" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr


def test_a_password_in_the_address_is_in_no_line_of_the_log_either(
    tmp_path: Path, door: tuple[str, list[str]]
) -> None:
    address, _ = door
    done = sync(tmp_path / "git", f"http://alice:{PASSWORD}@{address}/x.git")
    assert done.returncode == 1
    assert PASSWORD not in done.stdout + done.stderr
    assert f"http://{address}/x.git" in done.stderr


def build_git_pod(repo: str, **fields: object) -> Object:
    """A pod as Muster makes it for a Git data source."""
    variables = {
        "REPO": repo,
        "ROOT": "/git",
        "LINK": "code",
        "ONE_TIME": "true",
        "DEPTH": "1",
        "PASSWORD_FILE": "/etc/git-secret/password",
    }
    fetcher = {
        "name": "fetch",
        "image": IMAGE,
        "env": [{"name": f"GITSYNC_{name}", "value": value} for name, value in variables.items()],
        "volumeMounts": [
            {"name": "v", "mountPath": "/git"},
            {"name": "s", "mountPath": "/etc/git-secret"},
        ],
    }
    main = shell(
        "cat /workspace/train.py",
        volumeMounts=[{"name": "v", "mountPath": "/workspace", "subPath": "code"}],
    )
    volumes = [
        {"name": "v", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o440}},
    ]
    return pod(main, initContainers=[fetcher | fields], volumes=volumes)


def secret() -> Object:
    return {
        "metadata": {"name": "s"},
        "data": {"password": base64.b64encode(PASSWORD.encode()).decode()},
    }


def test_an_init_container_brings_the_code_of_a_pod(tmp_path: Path, repository: Repository) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            kubelet.objects.create(SECRETS, TEAM, secret())
            kubelet.submit(build_git_pod(f"file://{repository.place}"))
            status = await kubelet.finished()
            assert status["phase"] == "Succeeded", await kubelet.log(container="fetch")
            assert await kubelet.log() == "print('first')\n"

    asyncio.run(scenario())


def test_a_clone_that_fails_fails_the_pod_with_the_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            kubelet.objects.create(SECRETS, TEAM, secret())
            kubelet.submit(
                build_git_pod(
                    "file:///no/such/repository", terminationMessagePolicy="FallbackToLogsOnError"
                )
            )
            status = await kubelet.finished()
            ended = status["initContainerStatuses"][0]["state"]["terminated"]
            assert (status["phase"], ended["exitCode"]) == ("Failed", 1)
            assert "file:///no/such/repository at HEAD could not be had" in ended["message"]

    asyncio.run(scenario())


def test_an_rclone_container_says_what_to_install(tmp_path: Path) -> None:
    rclone = PROGRAM.with_name("rclone.py")
    done = subprocess.run(
        [sys.executable, str(rclone), "copy"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127
    assert "install the package rclone" in done.stderr
    fake = tmp_path / "rclone"
    fake.write_text('#!/bin/sh\necho "ran $*"\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(rclone), "copy", "a:b", "/c"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "ran copy a:b /c\n"

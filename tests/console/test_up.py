"""`make up`: what it starts, says and keeps; that it refuses in words, repairs what dies, and
leaves nothing behind.
"""

import os
import signal
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installation import PASSWORD, PROCESSES, Installation, eventually


@pytest.fixture(scope="module")
def installation_under_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One that runs, for the tests that leave it running."""
    with Installation(tmp_path_factory.mktemp("up") / "var") as installation:
        eventually(lambda: set(installation.pids()) == PROCESSES)
        yield installation


def fetch_url(url: str, timeout: float = 60) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def get_mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_it_says_where_it_is_and_how_to_sign_in_once(installation_under_test: Installation) -> None:
    assert installation_under_test.url.startswith("http://127.0.0.1:")
    password = PASSWORD.search(installation_under_test.output)
    assert password is not None
    kept = "".join(installation_under_test.log(name) for name in ("prepare", *PROCESSES))
    assert password["password"] not in kept


def test_it_serves_pages_with_their_style(installation_under_test: Installation) -> None:
    assert fetch_url(f"{installation_under_test.url}/healthz") == (200, "ok\n")
    assert fetch_url(f"{installation_under_test.url}/readyz") == (200, "ready\n")
    status, page = fetch_url(f"{installation_under_test.url}/sign-in")
    assert status == 200
    style = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    assert fetch_url(f"{installation_under_test.url}{style}")[0] == 200


def test_a_new_installation_has_teams_with_quota_in_the_cluster(
    installation_under_test: Installation,
) -> None:
    output = installation_under_test.manage(
        "shell",
        "--no-imports",
        "-c",
        "from projects.models import Project\n"
        "for p in Project.objects.select_related('department'):\n"
        "    print(p.department, p, p.gpu_quota, bool(p.synced_at), p.sync_error)",
    )
    assert output.split("\n")[:2] == ["research team-a 2.00 True ", "research team-b 2.00 True "]


def test_secrets_are_for_their_owner_and_not_for_pods(
    installation_under_test: Installation,
) -> None:
    assert get_mode(installation_under_test.data) == 0o700
    private = (
        "keys.json",
        "up.json",
        "redis/redis.conf",
        "muster.sqlite3",
        "log/web.log",
        "localkube/kubeconfig",
    )
    assert {
        name: get_mode(installation_under_test.data / name) for name in private
    } == dict.fromkeys(private, 0o600)
    environment = Path(f"/proc/{installation_under_test.pids()['localkube']}/environ").read_bytes()
    assert b"MUSTER_" not in environment


def test_a_second_one_on_the_same_data_is_refused(installation_under_test: Installation) -> None:
    output = Installation(installation_under_test.data, port=0).refused()
    assert f"Another one runs on {installation_under_test.data}." in output
    assert "MUSTER_DATA_DIR" in output
    assert fetch_url(f"{installation_under_test.url}/healthz")[0] == 200


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_what_is_killed_comes_back_and_is_told(
    installation_under_test: Installation, name: str
) -> None:
    before = installation_under_test.kill_one(name)
    eventually(lambda: installation_under_test.pids().get(name) not in (None, before))
    eventually(
        lambda: (
            f"{name} was ended by SIGKILL; it starts again." in installation_under_test.printed()
        )
    )
    eventually(lambda: fetch_url(f"{installation_under_test.url}/readyz") == (200, "ready\n"))


@pytest.mark.parametrize(("process", "column"), [("follow", "followed"), ("capture", "captured")])
def test_the_next_one_has_the_name_of_a_killed_one_and_need_not_wait_for_its_lease(
    installation_under_test: Installation, process: str, column: str
) -> None:
    holder = f"from clusters.models import Cluster\nprint(Cluster.objects.get().{column}_by)"
    name = eventually(
        lambda: installation_under_test.manage("shell", "--no-imports", "-c", holder).strip()
    )
    before = installation_under_test.kill_one(process)
    now = eventually(
        lambda: (
            pid
            if (pid := installation_under_test.pids().get(process)) not in (None, before)
            else None
        )
    )
    assert f"\0--holder\0{name}\0".encode() in Path(f"/proc/{now}/cmdline").read_bytes()


def test_who_comes_while_the_web_process_is_away_waits_for_it(
    installation_under_test: Installation,
) -> None:
    installation_under_test.kill_one("web")
    assert fetch_url(f"{installation_under_test.url}/healthz") == (200, "ok\n")


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = Installation(tmp_path / "var", port=port).refused()
    assert f"Port {port} on 127.0.0.1 is taken" in output
    assert "MUSTER_PORT" in output
    assert not (tmp_path / "var" / "muster.sqlite3").exists()


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    output = Installation(tmp_path / "file" / "var").refused()
    assert "MUSTER_DATA_DIR" in output
    assert "Traceback" not in output


def test_it_goes_on_where_it_ended_and_stops_as_told(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "var", admin_password="given by the environment")
    for how in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        installation.start()
        assert PASSWORD.search(installation.output) is None
        assert installation.stop(how) == 0
        assert installation.running() == []
    users = (
        "from projects.models import User\nu = User.objects.get()\nprint(u, "
        "u.check_password('given by the environment'))"
    )
    assert installation.manage("shell", "--no-imports", "-c", users) == "admin True\n"


def test_a_killed_one_leaves_nothing_and_the_next_goes_on(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "var").migrated().start()
    os.kill(installation.pids()["web"], signal.SIGSTOP)
    installation.kill()
    installation.start()
    assert "what it left behind: web" in installation.output
    assert fetch_url(f"{installation.url}/readyz") == (200, "ready\n")
    installation.kill()
    eventually(lambda: installation.running() == [])

"""`make up` where things are not as they should be: it starts, or refuses in words and overwrites
nothing, and leaves nothing behind.
"""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.cluster import ROOT
from tests.faults.stories import SHORT
from tests.installation import Installation, all_over, eventually
from tests.rest import Program

PASSWORD = "correct horse battery"


def test_it_runs_anywhere_and_with_next_to_no_environment(tmp_path: Path) -> None:
    odd = tmp_path / 'Übung "zwei" 100%'
    odd.mkdir()
    installation = Installation(odd / "var", admin_password=PASSWORD)
    installation.options["data_dir"] = "var"
    installation.cwd = odd
    installation.environment = {
        "PYTHONPATH": str(ROOT),
        "HOME": None,
        "LANG": None,
        "LC_ALL": "C",
        "PATH": "/usr/bin:/bin",
    }
    with installation:
        program = Program(installation.url, PASSWORD)
        here = program.submit("here", **SHORT)
        all_over(lambda: [now] if (now := program.phase(here)) != "Completed" else [], within=180)
        assert "digest" in program.log(here, "here-master-0")
    assert installation.running() == []


def test_asked_twice_to_stop_it_stops_in_order_and_its_port_is_free_at_once(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "var").migrated().start()
    host, _, port = installation.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        os.kill(installation.pid, signal.SIGINT)
        assert installation.stop(signal.SIGINT) == 0
    assert installation.running() == []
    assert "Traceback" not in installation.printed()
    installation.start()
    assert installation.stop() == 0


def test_told_to_end_while_it_starts_it_leaves_nothing_and_starts_again(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "var", admin_password=PASSWORD)
    for seconds in (0.1, 0.5, 1.5, 3.0):
        starting = installation.begin()
        time.sleep(seconds)
        starting.send_signal(signal.SIGTERM)
        # Before it listens to signals there is nothing to be put in order.
        assert starting.wait(60) in (0, -signal.SIGTERM)
        assert installation.running() == []
        assert "Traceback" not in installation.printed()
    with installation:
        Program(installation.url, PASSWORD)


NO_KEYS = [
    "",
    "{}",
    "[]",
    "\udcff\udcfe",
    '{"secret_key": "a", "encryption_keys": ["short"]}',
    '{"secret_key": 1, "encryption_keys": [2]}',
]


@pytest.mark.parametrize("text", NO_KEYS)
def test_keys_that_cannot_be_read_are_named_and_left_as_they_are(tmp_path: Path, text: str) -> None:
    kept = text.encode(errors="surrogateescape")
    (tmp_path / "keys.json").write_bytes(kept)
    output = Installation(tmp_path).refused()
    assert f"The keys in {tmp_path}/keys.json cannot be read" in output
    assert "backup" in output
    assert (tmp_path / "keys.json").read_bytes() == kept
    assert sorted(each.name for each in tmp_path.iterdir()) == ["keys.json", "lock"]


@pytest.mark.parametrize("damage", ["all of it", "from its middle on"])
def test_a_database_that_is_none_is_named_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    installation = Installation(tmp_path / "var", localkube="0").migrated()
    installation.start().stop()
    database = installation.data / "muster.sqlite3"
    whole = database.read_bytes()
    begin = 0 if damage == "all of it" else 4096
    database.write_bytes(whole[:begin] + b"no database " * (len(whole) // 12))
    before = database.read_bytes()
    output = installation.refused()
    assert f"{database}" in output
    assert "backup" in output
    assert "Traceback" not in output
    assert database.read_bytes() == before
    assert installation.running() == []


def test_a_lock_that_a_dead_one_left_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4711")
    (tmp_path / "processes.json").write_text('{"redis": [1, 1], "web": "x"}')
    (tmp_path / "up.json").write_text('{"redis_port": "99999", "localkube_port": "none"}')
    with Installation(tmp_path, localkube="0") as installation:
        assert "what it left behind" not in installation.output


SWEEP = "Sending due task workloads.tasks.sweeping.sweep"


def test_files_of_redis_and_beat_that_a_power_cut_damaged_keep_nothing_from_starting(
    tmp_path: Path,
) -> None:
    installation = Installation(tmp_path / "var", localkube="0").migrated()
    appended = installation.data / "redis" / "appendonlydir"
    appended.mkdir(parents=True)
    (appended / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i")
    (appended / "appendonly.aof.1.incr.aof").write_bytes(bytes(4096))
    with installation:
        eventually(lambda: SWEEP in installation.log("beat"))
        for name in ("redis", "beat"):
            os.kill(installation.pids()[name], signal.SIGSTOP)
        for file in appended.glob("*.incr.aof"):
            file.write_bytes(file.read_bytes() + bytes(4096))
        for file in installation.data.glob("beat-schedule*"):
            file.write_bytes(b"")
        sweeps = installation.log("beat").count(SWEEP)
        before = {name: installation.kill_one(name) for name in ("redis", "beat")}
        eventually(lambda: installation.log("beat").count(SWEEP) > sweeps)
        assert "is begun anew: it is damaged" in installation.log("beat")
        now = installation.pids()
        assert all(now[name] != pid for name, pid in before.items())
        assert installation.printed().count("starts again") == len(before)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", tmp_path], capture_output=True, text=True
    )
    if mount.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mount.stderr.strip()}")
    try:
        for data in (tmp_path, tmp_path / "var"):
            output = Installation(data).refused()
            assert f"{data} cannot be used (Read-only file system)" in output
            assert "MUSTER_DATA_DIR" in output
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)

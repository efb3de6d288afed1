"""Container runs as real processes: how they start and end, and how they are stopped."""

import os
import re
import signal
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from localkube.kubelet import proctree, records, runs
from tests.localkube.container_runs import (
    build_spec,
    list_marked,
    new_directory,
    pods,
    read_output,
    start_run,
    start_shell,
    wait_for_output,
    wait_until,
    wait_until_ended,
    wait_until_running,
)

__all__ = ["pods"]

LIBRARY_SIGNALS = 0b11 << 31
"""Signals 32 and 33 belong to the C library, which lets no program see to them."""


@pytest.mark.parametrize(
    ("code", "reason"), [(0, "Completed"), (1, "Error"), (77, "Error"), (255, "Error")]
)
def test_the_exit_code_is_the_first_process(pods: Path, code: int, reason: str) -> None:
    end = wait_until_ended(start_shell(pods, f"exit {code}"))
    assert (end.exit_code, end.signal, end.reason, end.message) == (code, None, reason, "")
    assert datetime(2020, 1, 1, tzinfo=UTC) < end.started_at <= end.finished_at <= datetime.now(UTC)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGUSR1"])
def test_a_signal_counts_as_128_and_its_number(pods: Path, name: str) -> None:
    number = signal.Signals[name]
    end = wait_until_ended(start_shell(pods, f"kill -{number} $$"))
    assert (end.exit_code, end.signal, end.reason) == (128 + number, number, "Error")


@pytest.mark.parametrize(
    ("argv", "more", "code", "message"),
    [
        (["foo"], {}, 127, 'exec: "foo": executable file not found in $PATH'),
        (
            ["sh"],
            {"env": {"PATH": "/nowhere"}},
            127,
            'exec: "sh": executable file not found in $PATH',
        ),
        (["/no/such"], {}, 127, 'exec: "/no/such": stat /no/such: no such file or directory'),
        (["/etc/passwd"], {}, 126, 'exec: "/etc/passwd": permission denied'),
        (["/tmp"], {}, 126, 'exec: "/tmp": is a directory'),
        (
            ["true"],
            {"cwd": "/nope"},
            128,
            'chdir to cwd ("/nope") failed: no such file or directory',
        ),
        (["true", "a\0b"], {}, 128, "exec true: embedded null byte"),
        ([], {}, 128, "no command specified"),
    ],
)
def test_a_command_that_cannot_run_says_why(
    pods: Path, argv: list[str], more: dict[str, Any], code: int, message: str
) -> None:
    end = wait_until_ended(start_run(pods, *argv, **more))
    assert (end.exit_code, end.signal, end.reason, end.message) == (
        code,
        None,
        "ContainerCannotRun",
        message,
    )


def test_a_script_without_its_interpreter_cannot_run(pods: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    end = wait_until_ended(start_run(pods, str(script)))
    assert (end.exit_code, end.message) == (127, f"exec {script}: no such file or directory")


def test_the_environment_is_the_given_one(pods: Path) -> None:
    directory = start_run(pods, "/usr/bin/env", env={"A": "1", "B": "x=y\nz", "C": "\udcff"})
    wait_until_ended(directory)
    assert (
        read_output(directory)
        == b"A=1\nB=x=y\nz\nC=\xff\nLOCALKUBE_RUN=" + os.path.realpath(directory).encode() + b"\n"
    )


def test_nothing_is_inherited(pods: Path, tmp_path: Path) -> None:
    script = "cat; ls /proc/self/fd; umask; pwd; cat /proc/self/status"
    with open(tmp_path / "ours", "w") as ours:
        os.set_inheritable(ours.fileno(), True)
        directory = start_shell(pods, script, cwd=str(tmp_path), umask=0o027)
        wait_until_ended(directory)
    *handles, umask, cwd = read_output(directory).decode().partition("\nName:")[0].split("\n")
    assert handles[:3] == ["0", "1", "2"]
    assert len(handles) == 4  # the fourth is ls looking
    assert (umask, cwd) == ("0027", str(tmp_path))
    masks = re.findall(rb"Sig(?:Blk|Ign|Cgt):\s*(\w+)", read_output(directory))
    assert {int(mask, 16) & ~LIBRARY_SIGNALS for mask in masks} == {0}


def test_the_command_has_a_session_of_its_own(pods: Path) -> None:
    found = wait_until_running(start_run(pods, "sleep", "1000"))
    assert os.getsid(found.pid) == found.pid
    assert os.getsid(found.supervisor) not in (found.pid, os.getsid(0))


def test_a_stop_lets_the_first_process_end_in_its_own_way(pods: Path) -> None:
    directory = start_shell(
        pods, "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    )
    wait_for_output(directory, b"ready")
    runs.stop_run(directory, 60)
    assert wait_until_ended(directory).exit_code == 5
    assert read_output(directory) == b"ready\nbye\n"


def test_a_stop_kills_all_after_the_grace_period(pods: Path) -> None:
    directory = start_shell(pods, "trap '' TERM; sleep 1000 & setsid sleep 1001 & echo ready; wait")
    wait_for_output(directory, b"ready")
    runs.stop_run(directory, 0.3)
    end = wait_until_ended(directory)
    assert (end.exit_code, end.signal, end.reason) == (137, 9, "Error")
    assert not list_marked(pods)


def test_a_shorter_grace_period_wins_and_a_longer_one_does_not(pods: Path) -> None:
    directory = start_shell(pods, "trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done")
    wait_for_output(directory, b"ready")
    runs.stop_run(directory, 3600)
    wait_for_output(directory, b"term")
    runs.stop_run(directory, 0)
    runs.stop_run(directory, 3600)
    assert wait_until_ended(directory).exit_code == 137
    assert read_output(directory) == b"ready\nterm\n"


def test_a_run_that_was_stopped_before_it_started_never_starts(pods: Path, tmp_path: Path) -> None:
    directory, wanted = (
        new_directory(pods),
        build_spec("touch", str(tmp_path / "ran"), die_with=None),
    )
    directory.mkdir(parents=True)
    records.write_record_once(str(directory), records.SPEC, asdict(wanted))
    runs.stop_run(directory, 3600)
    runs.start_run(directory, wanted)
    end = wait_until_ended(directory)
    assert (end.exit_code, end.message) == (137, "stopped before it was started")
    assert not (tmp_path / "ran").exists()


def test_stopping_what_has_ended_does_nothing(pods: Path) -> None:
    directory = start_run(pods, "true")
    end = wait_until_ended(directory)
    runs.stop_run(directory, 0)
    runs.stop_run(new_directory(pods), 0)
    assert runs.read_run_state(directory) == end


def test_daemons_end_with_the_first_process(pods: Path) -> None:
    daemon = (
        "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
        "print('daemon', flush=True); time.sleep(1000)"
    )
    directory = start_shell(
        pods,
        (
            f'{sys.executable} -I -S -c "{daemon}"; sleep 1000 & until grep -sq daemon '
            f"{pods}/*/*/*/*.log; do sleep 0.01; done"
        ),
    )
    end = wait_until_ended(directory)
    assert (end.exit_code, read_output(directory)) == (0, b"daemon\n")
    assert not list_marked(pods)


def test_the_last_output_of_a_killed_tree_is_kept(pods: Path) -> None:
    directory = start_shell(pods, "yes | head -c 300000; printf end; kill -9 $$")
    assert wait_until_ended(directory).signal == 9
    assert read_output(directory) == b"y\n" * 150_000 + b"end"


def test_a_daemon_that_holds_the_pipe_open_outside_does_not_delay_the_end(pods: Path) -> None:
    directory = start_shell(pods, f"until [ -e {pods}/go ]; do sleep 0.01; done; echo done")
    found = wait_until_running(directory)
    with open(f"/proc/{found.pid}/fd/1", "wb"):
        (pods / "go").touch()
        assert wait_until_ended(directory).exit_code == 0
    assert read_output(directory) == b"done\n"


def test_a_supervisor_leaves_no_zombie_and_no_word(pods: Path) -> None:
    directory = start_run(pods, "true")
    wait_until_ended(directory)
    claim = records.read_record(str(directory), records.CLAIM)
    assert claim is not None
    wait_until(lambda: proctree.start_ticks(claim["pid"]) is None)
    assert (directory / records.ERROR_LOG).read_text() == ""

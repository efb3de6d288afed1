"""Container runs and those who started, stop and look after them: what goes on when one of these is
killed, and what ends.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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

STARTER = """
import os, sys, time
from pathlib import Path
from localkube.kubelet import runs
environment = {"PATH": os.environ["PATH"]}
spec = runs.RunSpec(sys.argv[3:], environment, "/", die_with=int(sys.argv[2]))
runs.start_run(Path(sys.argv[1]), spec)
print("started", flush=True)
time.sleep(1000)
"""


def starter(directory: Path, *argv: str) -> subprocess.Popen[bytes]:
    """Another process that starts a run: a server that can be killed."""
    command = [sys.executable, "-c", STARTER, str(directory), str(os.getpid()), *argv]
    return subprocess.Popen(command, cwd=Path(runs.__file__).parents[2], stdout=subprocess.PIPE)


def test_a_run_outlives_its_killed_starter_with_log_and_exit_code(
    pods: Path, tmp_path: Path
) -> None:
    directory, go = new_directory(pods), tmp_path / "go"
    with starter(
        directory,
        "sh",
        "-c",
        f"echo one; until [ -e {go} ]; do sleep 0.01; done; echo two; exit 42",
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"started\n"
        found = wait_until_running(directory)
        server.kill()
    assert runs.read_run_state(directory) == found
    go.touch()
    assert wait_until_ended(directory).exit_code == 42
    assert read_output(directory) == b"one\ntwo\n"


def test_a_grace_period_goes_on_when_its_asker_is_killed(pods: Path) -> None:
    directory = start_shell(pods, "trap '' TERM; echo ready; sleep 1000 & wait; wait; sleep 1000")
    wait_for_output(directory, b"ready")
    ask = (
        "import os, sys, pathlib; from localkube.kubelet import runs; "
        "runs.stop_run(pathlib.Path(sys.argv[1]), 0.5); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", ask, str(directory)], cwd=Path(runs.__file__).parents[2])
    assert wait_until_ended(directory).exit_code == 137


def test_a_directory_runs_its_command_once(pods: Path, tmp_path: Path) -> None:
    directory = new_directory(pods)
    command = ["sh", "-c", f"echo ran >> {tmp_path}/runs; sleep 0.1"]
    servers = [starter(directory, *command) for _ in range(4)]
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == b"started\n"
        server.kill()
        server.communicate()
    runs.start_run(directory, build_spec(*command))
    wait_until_ended(directory)
    runs.start_run(directory, build_spec(*command))
    wait_until(lambda: not supervisors(directory))
    assert (tmp_path / "runs").read_text() == "ran\n"


def supervisors(directory: Path) -> list[str]:
    """The processes whose command line names the run."""
    lines = [Path(f"/proc/{name}/cmdline") for name in os.listdir("/proc") if name.isdigit()]
    return [
        str(line)
        for line in lines
        if os.path.realpath(directory) in (line.read_text() if line.exists() else "")
    ]


def test_nothing_is_left_of_a_run_whose_supervisor_was_killed(pods: Path) -> None:
    directory = start_shell(pods, "sleep 1000 & setsid setsid sleep 1001 & echo ready; wait")
    wait_for_output(directory, b"ready")
    found = wait_until_running(directory)
    os.kill(found.supervisor, signal.SIGKILL)
    end = wait_until_ended(directory)
    assert (end.exit_code, end.signal, end.reason) == (137, 9, "ContainerStatusUnknown")
    assert end.started_at == found.started_at
    assert not list_marked(pods)
    assert runs.read_run_state(directory) == end


def test_a_run_without_a_supervisor_is_not_a_run_of_the_process_that_has_its_pid_now(
    pods: Path,
) -> None:
    directory = new_directory(pods)
    directory.mkdir(parents=True)
    bystander = {
        "pid": os.getpid(),
        "ticks": 1,
        "boot": proctree.boot_id(),
        "claimed_at": time.time(),
    }
    records.write_record_once(str(directory), records.SPEC, {"argv": []})
    records.write_record_once(str(directory), records.CLAIM, bystander)
    runs.stop_run(directory, 0)
    assert wait_until_ended(directory).reason == "ContainerStatusUnknown"


def test_a_run_ends_with_the_process_it_is_not_to_outlive(pods: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as master:
        directory = start_shell(pods, "setsid sleep 1000 & sleep 1001", die_with=master.pid)
        wait_until_running(directory)
        master.kill()
    end = wait_until_ended(directory)
    assert (end.exit_code, end.message) == (
        137,
        "the process that this run was not to outlive has ended",
    )
    assert (
        wait_until_ended(start_run(pods, "true", die_with=master.pid)).message
        == "stopped before it was started"
    )

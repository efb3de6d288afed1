"""Container runs as real processes: how they start, end, are stopped, and outlive whoever started them."""

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localkube.kubelet import logfiles, proctree, records, runs
from localkube.machine import LogOptions

PATH = "/usr/local/bin:/usr/bin:/bin"
ATTEMPT = itertools.count()

LIBRARY_SIGNALS = 0b11 << 31
"""Signals 32 and 33 belong to the C library, which lets no program see to them."""


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Path]:
    """A cluster's directory of pods; every process of a run in it is gone after the test."""
    root = tmp_path / "pods"
    root.mkdir()
    yield root
    runs.kill_everything(root)
    assert not marked(root)


def marked(below: Path) -> list[int]:
    marks = proctree.marked(records.MARK)
    return [pid for pid, mark in marks.items() if mark.startswith(os.path.realpath(below)) and proctree.start_ticks(pid) is not None]


def spec(*argv: str, **more: object) -> runs.RunSpec:
    values: dict = {"env": {"PATH": PATH}, "cwd": "/", "die_with": os.getpid()}
    return runs.RunSpec(list(argv), **values | more)


def place(pods: Path) -> Path:
    return pods / "uid" / "main" / str(next(ATTEMPT))


def start(pods: Path, *argv: str, **more: object) -> Path:
    directory = place(pods)
    runs.start(directory, spec(*argv, **more))
    return directory


def start_shell(pods: Path, script: str, **more: object) -> Path:
    return start(pods, "sh", "-c", script, **more)


def ended(directory: Path) -> runs.Exited:
    return asyncio.run(asyncio.wait_for(runs.wait(directory), 30))


def running(directory: Path) -> runs.Running:
    found = asyncio.run(asyncio.wait_for(runs.started(directory), 30))
    assert isinstance(found, runs.Running), found
    return found


def output(directory: Path) -> bytes:
    async def collect() -> bytes:
        return b"".join([chunk async for chunk in logfiles.read(directory, LogOptions(), lambda: False)])

    return asyncio.run(collect())


def until(true: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def told(directory: Path, text: bytes) -> None:
    until(lambda: text in output(directory))


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (1, "Error"), (77, "Error"), (255, "Error")])
def test_the_exit_code_is_the_first_process(pods: Path, code: int, reason: str) -> None:
    end = ended(start_shell(pods, f"exit {code}"))
    assert (end.exit_code, end.signal, end.reason, end.message) == (code, None, reason, "")
    assert datetime(2020, 1, 1, tzinfo=UTC) < end.started_at <= end.finished_at <= datetime.now(UTC)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGUSR1"])
def test_a_signal_counts_as_128_and_its_number(pods: Path, name: str) -> None:
    number = signal.Signals[name]
    end = ended(start_shell(pods, f"kill -{number} $$"))
    assert (end.exit_code, end.signal, end.reason) == (128 + number, number, "Error")


@pytest.mark.parametrize(
    ("argv", "more", "code", "message"),
    [
        (["foo"], {}, 127, 'exec: "foo": executable file not found in $PATH'),
        (["sh"], {"env": {"PATH": "/nowhere"}}, 127, 'exec: "sh": executable file not found in $PATH'),
        (["/no/such"], {}, 127, 'exec: "/no/such": stat /no/such: no such file or directory'),
        (["/etc/passwd"], {}, 126, 'exec: "/etc/passwd": permission denied'),
        (["/tmp"], {}, 126, 'exec: "/tmp": is a directory'),
        (["true"], {"cwd": "/nope"}, 128, 'chdir to cwd ("/nope") failed: no such file or directory'),
        (["true", "a\0b"], {}, 128, "exec true: embedded null byte"),
        ([], {}, 128, "no command specified"),
    ],
)
def test_a_command_that_cannot_run_says_why(pods: Path, argv: list[str], more: dict, code: int, message: str) -> None:
    end = ended(start(pods, *argv, **more))
    assert (end.exit_code, end.signal, end.reason, end.message) == (code, None, "ContainerCannotRun", message)


def test_a_script_without_its_interpreter_cannot_run(pods: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    end = ended(start(pods, str(script)))
    assert (end.exit_code, end.message) == (127, f"exec {script}: no such file or directory")


def test_the_environment_is_the_given_one(pods: Path) -> None:
    directory = start(pods, "/usr/bin/env", env={"A": "1", "B": "x=y\nz", "C": "\udcff"})
    ended(directory)
    assert output(directory) == b"A=1\nB=x=y\nz\nC=\xff\nLOCALKUBE_RUN=" + os.path.realpath(directory).encode() + b"\n"


def test_nothing_is_inherited(pods: Path, tmp_path: Path) -> None:
    script = "cat; ls /proc/self/fd; umask; pwd; cat /proc/self/status"
    with open(tmp_path / "ours", "w") as ours:
        os.set_inheritable(ours.fileno(), True)
        directory = start_shell(pods, script, cwd=str(tmp_path), umask=0o027)
        ended(directory)
    *handles, umask, cwd = output(directory).decode().partition("\nName:")[0].split("\n")
    assert handles[:3] == ["0", "1", "2"]
    assert len(handles) == 4  # the fourth is ls looking
    assert (umask, cwd) == ("0027", str(tmp_path))
    masks = re.findall(rb"Sig(?:Blk|Ign|Cgt):\s*(\w+)", output(directory))
    assert {int(mask, 16) & ~LIBRARY_SIGNALS for mask in masks} == {0}


def test_the_command_has_a_session_of_its_own(pods: Path) -> None:
    found = running(start(pods, "sleep", "1000"))
    assert os.getsid(found.pid) == found.pid
    assert os.getsid(found.supervisor) not in (found.pid, os.getsid(0))


def test_a_stop_lets_the_first_process_end_in_its_own_way(pods: Path) -> None:
    directory = start_shell(pods, "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    told(directory, b"ready")
    runs.stop(directory, 60)
    assert ended(directory).exit_code == 5
    assert output(directory) == b"ready\nbye\n"


def test_a_stop_kills_all_after_the_grace_period(pods: Path) -> None:
    directory = start_shell(pods, "trap '' TERM; sleep 1000 & setsid sleep 1001 & echo ready; wait")
    told(directory, b"ready")
    runs.stop(directory, 0.3)
    end = ended(directory)
    assert (end.exit_code, end.signal, end.reason) == (137, 9, "Error")
    assert not marked(pods)


def test_a_shorter_grace_period_wins_and_a_longer_one_does_not(pods: Path) -> None:
    directory = start_shell(pods, "trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done")
    told(directory, b"ready")
    runs.stop(directory, 3600)
    told(directory, b"term")
    runs.stop(directory, 0)
    runs.stop(directory, 3600)
    assert ended(directory).exit_code == 137
    assert output(directory) == b"ready\nterm\n"


def test_a_run_that_was_stopped_before_it_started_never_starts(pods: Path, tmp_path: Path) -> None:
    directory, wanted = place(pods), spec("touch", str(tmp_path / "ran"), die_with=None)
    directory.mkdir(parents=True)
    records.write_first(str(directory), records.SPEC, asdict(wanted))
    runs.stop(directory, 3600)
    runs.start(directory, wanted)
    end = ended(directory)
    assert (end.exit_code, end.message) == (137, "stopped before it was started")
    assert not (tmp_path / "ran").exists()


def test_stopping_what_has_ended_does_nothing(pods: Path) -> None:
    directory = start(pods, "true")
    end = ended(directory)
    runs.stop(directory, 0)
    runs.stop(place(pods), 0)
    assert runs.state(directory) == end


def test_daemons_end_with_the_first_process(pods: Path) -> None:
    daemon = (
        "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); print('daemon', flush=True); time.sleep(1000)"
    )
    directory = start_shell(
        pods, f'{sys.executable} -I -S -c "{daemon}"; sleep 1000 & until grep -sq daemon {pods}/*/*/*/*.log; do sleep 0.01; done'
    )
    end = ended(directory)
    assert (end.exit_code, output(directory)) == (0, b"daemon\n")
    assert not marked(pods)


def test_the_last_output_of_a_killed_tree_is_kept(pods: Path) -> None:
    directory = start_shell(pods, "yes | head -c 300000; printf end; kill -9 $$")
    assert ended(directory).signal == 9
    assert output(directory) == b"y\n" * 150_000 + b"end"


def test_a_daemon_that_holds_the_pipe_open_outside_does_not_delay_the_end(pods: Path) -> None:
    directory = start_shell(pods, f"until [ -e {pods}/go ]; do sleep 0.01; done; echo done")
    found = running(directory)
    with open(f"/proc/{found.pid}/fd/1", "wb"):
        (pods / "go").touch()
        assert ended(directory).exit_code == 0
    assert output(directory) == b"done\n"


STARTER = """
import os, sys, time
from pathlib import Path
from localkube.kubelet import runs
runs.start(Path(sys.argv[1]), runs.RunSpec(sys.argv[3:], {"PATH": os.environ["PATH"]}, "/", die_with=int(sys.argv[2])))
print("started", flush=True)
time.sleep(1000)
"""


def starter(directory: Path, *argv: str) -> subprocess.Popen[bytes]:
    """Another process that starts a run: a server that can be killed."""
    command = [sys.executable, "-c", STARTER, str(directory), str(os.getpid()), *argv]
    return subprocess.Popen(command, cwd=Path(runs.__file__).parents[2], stdout=subprocess.PIPE)


def test_a_run_outlives_its_killed_starter_with_log_and_exit_code(pods: Path, tmp_path: Path) -> None:
    directory, go = place(pods), tmp_path / "go"
    with starter(directory, "sh", "-c", f"echo one; until [ -e {go} ]; do sleep 0.01; done; echo two; exit 42") as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"started\n"
        found = running(directory)
        server.kill()
    assert runs.state(directory) == found
    go.touch()
    assert ended(directory).exit_code == 42
    assert output(directory) == b"one\ntwo\n"


def test_a_grace_period_goes_on_when_its_asker_is_killed(pods: Path) -> None:
    directory = start_shell(pods, "trap '' TERM; echo ready; sleep 1000 & wait; wait; sleep 1000")
    told(directory, b"ready")
    ask = "import os, sys, pathlib; from localkube.kubelet import runs; runs.stop(pathlib.Path(sys.argv[1]), 0.5); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", ask, str(directory)], cwd=Path(runs.__file__).parents[2])
    assert ended(directory).exit_code == 137


def test_a_directory_runs_its_command_once(pods: Path, tmp_path: Path) -> None:
    directory = place(pods)
    command = ["sh", "-c", f"echo ran >> {tmp_path}/runs; sleep 0.1"]
    servers = [starter(directory, *command) for _ in range(4)]
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == b"started\n"
        server.kill()
        server.communicate()
    runs.start(directory, spec(*command))
    ended(directory)
    runs.start(directory, spec(*command))
    until(lambda: not supervisors(directory))
    assert (tmp_path / "runs").read_text() == "ran\n"


def supervisors(directory: Path) -> list[str]:
    """The processes whose command line names the run."""
    lines = [Path(f"/proc/{name}/cmdline") for name in os.listdir("/proc") if name.isdigit()]
    return [str(line) for line in lines if os.path.realpath(directory) in (line.read_text() if line.exists() else "")]


def test_nothing_is_left_of_a_run_whose_supervisor_was_killed(pods: Path) -> None:
    directory = start_shell(pods, "sleep 1000 & setsid setsid sleep 1001 & echo ready; wait")
    told(directory, b"ready")
    found = running(directory)
    os.kill(found.supervisor, signal.SIGKILL)
    end = ended(directory)
    assert (end.exit_code, end.signal, end.reason) == (137, 9, "ContainerStatusUnknown")
    assert end.started_at == found.started_at
    assert not marked(pods)
    assert runs.state(directory) == end


def test_a_run_without_a_supervisor_is_not_a_run_of_the_process_that_has_its_pid_now(pods: Path) -> None:
    directory = place(pods)
    directory.mkdir(parents=True)
    bystander = {"pid": os.getpid(), "ticks": 1, "boot": proctree.boot_id(), "claimed_at": time.time()}
    records.write_first(str(directory), records.SPEC, {"argv": []})
    records.write_first(str(directory), records.CLAIM, bystander)
    runs.stop(directory, 0)
    assert ended(directory).reason == "ContainerStatusUnknown"


HOG = "import time; hog = b'x' * ({} << 20); print('full', flush=True); time.sleep(1000)"


def test_more_memory_than_the_limit_is_oom_killed(pods: Path) -> None:
    child = [sys.executable, "-I", "-S", "-c", HOG.format(100)]
    directory = start(pods, sys.executable, "-c", f"import subprocess; subprocess.run({child!r})", memory_limit=80 << 20)
    end = ended(directory)
    assert (end.exit_code, end.signal, end.reason) == (137, 9, "OOMKilled")
    assert end.peak_memory > 80 << 20
    assert end.message == f"the processes used {end.peak_memory} bytes of memory, the limit is {80 << 20}"


def test_memory_that_processes_share_counts_once(pods: Path) -> None:
    share = "import os, time; hog = b'x' * (60 << 20); [os.fork() for _ in range(2)]; time.sleep(1.5)"
    end = ended(start(pods, sys.executable, "-I", "-S", "-c", share, memory_limit=130 << 20))
    assert (end.exit_code, end.reason) == (0, "Completed")
    assert 60 << 20 < end.peak_memory < 130 << 20


def test_a_run_ends_with_the_process_it_is_not_to_outlive(pods: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as master:
        directory = start_shell(pods, "setsid sleep 1000 & sleep 1001", die_with=master.pid)
        running(directory)
        master.kill()
    end = ended(directory)
    assert (end.exit_code, end.message) == (137, "the process that this run was not to outlive has ended")
    assert ended(start(pods, "true", die_with=master.pid)).message == "stopped before it was started"


def test_states_follow_each_other(pods: Path) -> None:
    directory = place(pods)
    assert runs.state(directory) == runs.UNSTARTED
    runs.start(directory, spec("sleep", "1000"))
    assert isinstance(runs.state(directory), runs.Starting | runs.Running)
    found = running(directory)
    assert runs.state(directory) == found
    assert Path(f"/proc/{found.pid}/comm").read_text() == "sleep\n"
    runs.stop(directory, 0)
    assert ended(directory) == runs.state(directory)


def test_many_may_wait_for_one_run(pods: Path) -> None:
    directory = start(pods, "sleep", "0.2")

    async def waiters() -> list[runs.Exited]:
        return await asyncio.gather(*(runs.wait(directory) for _ in range(20)))

    assert len(set(asyncio.run(waiters()))) == 1


def test_waiting_can_be_given_up(pods: Path) -> None:
    directory = start(pods, "sleep", "1000")
    running(directory)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(runs.wait(directory), 0.05))
    assert isinstance(runs.state(directory), runs.Running)


def test_waiting_ends_when_the_directory_is_removed(pods: Path) -> None:
    directory = start(pods, "sleep", "1000")
    running(directory)
    runs.sweep(pods, keep=())
    assert ended(directory).reason == "ContainerStatusUnknown"
    assert list(pods.iterdir()) == []


def test_a_sweep_spares_the_known_and_ends_the_rest(pods: Path) -> None:
    kept, dropped = pods / "kept" / "main" / "0", pods / "dropped" / "main" / "0"
    for directory in (kept, dropped):
        runs.start(directory, spec("sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1001"))
    found = running(kept)
    lost = running(dropped)
    os.kill(lost.supervisor, signal.SIGKILL)
    stubborn = dropped.parent / "closed" / "deep"
    stubborn.mkdir(parents=True)
    stubborn.parent.chmod(0o500)
    runs.sweep(pods, keep={"kept"})
    assert runs.state(kept) == found
    assert not (pods / "dropped").exists()
    assert not marked(pods / "dropped")


def test_a_run_whose_files_are_gone_is_swept_too(pods: Path) -> None:
    directory = start(pods, "sleep", "1000")
    found = running(directory)
    (pods / "uid").rename(pods.parent / "elsewhere")
    runs.sweep(pods, keep=())
    until(lambda: proctree.start_ticks(found.supervisor) is None)
    assert not marked(pods)


def test_a_container_that_prints_a_lot_is_logged_whole_in_little_memory(pods: Path) -> None:
    count = 600_000
    text = "x" * 50
    script = (
        f"import sys, time\nfor i in range({count // 100}): print(('{text}\\n' * 100)[:-1])\nprint('end', flush=True)\ntime.sleep(1000)"
    )
    directory = start(pods, sys.executable, "-I", "-S", "-c", script, log_max_bytes=100 << 20)
    told_end = (b"x" * 50 + b"\n") * count + b"end\n"
    until(lambda: b"end" in tail(directory))
    peak = Path(f"/proc/{running(directory).supervisor}/status").read_text().partition("VmHWM:")[2].split()[0]
    assert int(peak) < 40 * 1024
    assert output(directory) == told_end


def tail(directory: Path) -> bytes:
    files = sorted(directory.glob("*.log"))
    if not files:
        return b""
    with files[-1].open("rb") as file:
        file.seek(max(files[-1].stat().st_size - 100, 0))
        return file.read()


def test_a_supervisor_leaves_no_zombie_and_no_word(pods: Path) -> None:
    directory = start(pods, "true")
    ended(directory)
    claim = records.read(str(directory), records.CLAIM)
    assert claim is not None
    until(lambda: proctree.start_ticks(claim["pid"]) is None)
    assert (directory / records.ERRORS).read_text() == ""

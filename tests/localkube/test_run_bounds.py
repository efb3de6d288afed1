"""Container runs that take much: memory, and output."""

import sys
from pathlib import Path

from tests.localkube.container_runs import (
    pods,
    read_output,
    start_run,
    wait_until,
    wait_until_ended,
    wait_until_running,
)

__all__ = ["pods"]

HOG = "import time; hog = b'x' * ({} << 20); print('full', flush=True); time.sleep(1000)"


def test_more_memory_than_the_limit_is_oom_killed(pods: Path) -> None:
    child = [sys.executable, "-I", "-S", "-c", HOG.format(100)]
    directory = start_run(
        pods,
        sys.executable,
        "-c",
        f"import subprocess; subprocess.run({child!r})",
        memory_limit=80 << 20,
    )
    end = wait_until_ended(directory)
    assert (end.exit_code, end.signal, end.reason) == (137, 9, "OOMKilled")
    assert end.peak_memory > 80 << 20
    assert (
        end.message
        == f"the processes used {end.peak_memory} bytes of memory, the limit is {80 << 20}"
    )


def test_memory_that_processes_share_counts_once(pods: Path) -> None:
    share = (
        "import os, time; hog = b'x' * (60 << 20); [os.fork() for _ in range(2)]; time.sleep(1.5)"
    )
    end = wait_until_ended(
        start_run(pods, sys.executable, "-I", "-S", "-c", share, memory_limit=130 << 20)
    )
    assert (end.exit_code, end.reason) == (0, "Completed")
    assert 60 << 20 < end.peak_memory < 130 << 20


def test_a_container_that_prints_a_lot_is_logged_whole_in_little_memory(pods: Path) -> None:
    count = 600_000
    text = "x" * 50
    script = (
        f"import sys, time\nfor i in range({count // 100}): print(('{text}\\n' * "
        "100)[:-1])\nprint('end', flush=True)\ntime.sleep(1000)"
    )
    directory = start_run(pods, sys.executable, "-I", "-S", "-c", script, log_max_bytes=100 << 20)
    told_end = (b"x" * 50 + b"\n") * count + b"end\n"
    wait_until(lambda: b"end" in tail(directory))
    peak = (
        Path(f"/proc/{wait_until_running(directory).supervisor}/status")
        .read_text()
        .partition("VmHWM:")[2]
        .split()[0]
    )
    assert int(peak) < 40 * 1024
    assert read_output(directory) == told_end


def tail(directory: Path) -> bytes:
    files = sorted(directory.glob("*.log"))
    if not files:
        return b""
    with files[-1].open("rb") as file:
        file.seek(max(files[-1].stat().st_size - 100, 0))
        return file.read()

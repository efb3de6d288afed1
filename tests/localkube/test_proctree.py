"""Looking at process trees, and ending them, with real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localkube.kubelet import proctree

NEVER = 1
MARK = f"TREE_{os.getpid()}"
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


@pytest.fixture
def tree() -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a child, a grandchild and a grandchild in a session of its own, all marked."""
    script = "sh -c 'sleep 60 & setsid sleep 60 & wait' & wait"
    with subprocess.Popen(
        ["sh", "-c", script], env={"PATH": "/usr/bin:/bin", MARK: "yes"}
    ) as process:
        wait_until(
            lambda: names(proctree.list_descendants(process.pid)) == ["sh", "sleep", "sleep"]
        )
        yield process
        assert proctree.kill_all(lambda: proctree.list_marked_processes(MARK), 10) == []


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def names(pids: list[int]) -> list[str]:
    return sorted(Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids)


def test_descendants_are_found_at_any_depth_and_session(tree: subprocess.Popen[bytes]) -> None:
    assert names(proctree.list_descendants(tree.pid)) == ["sh", "sleep", "sleep"]
    assert tree.pid not in proctree.list_descendants(tree.pid)
    assert tree.pid in proctree.list_descendants(os.getpid())


def test_children_of_a_thread_are_found() -> None:
    script = (
        "import subprocess, threading\nt = threading.Thread(target=lambda: "
        "subprocess.run(['sleep', '60']))\nt.start()\nt.join()"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        wait_until(lambda: names(proctree.list_descendants(process.pid)) == ["sleep"])
        assert proctree.kill_all(lambda: [process.pid], 10) == []


def test_a_process_is_known_by_its_start() -> None:
    ours = proctree.start_ticks(os.getpid())
    assert ours is not None
    assert proctree.is_alive(os.getpid(), ours)
    assert not proctree.is_alive(os.getpid(), ours + 1)


def test_a_name_with_blanks_and_parentheses_does_not_confuse() -> None:
    odd = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b') S 1 (x '); print(flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", odd], **PIPES) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.pid in proctree.list_descendants(os.getpid())
        assert (proctree.start_ticks(process.pid) or 0) >= (proctree.start_ticks(os.getpid()) or 0)


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    ticks = proctree.start_ticks(process.pid)
    assert ticks is not None
    assert not proctree.is_alive(process.pid, ticks)
    assert not proctree.kill_process(process.pid)
    process.wait()
    assert proctree.start_ticks(process.pid) is None


def test_a_signal_goes_to_that_very_process_only(tree: subprocess.Popen[bytes]) -> None:
    ticks = proctree.start_ticks(tree.pid)
    assert ticks is not None
    assert not proctree.send_signal(tree.pid, ticks + 1, signal.SIGKILL)
    assert proctree.is_alive(tree.pid, ticks)
    assert proctree.send_signal(tree.pid, ticks, signal.SIGKILL)
    assert tree.wait(60) == -signal.SIGKILL


def test_marked_processes_are_found_by_their_environment(tree: subprocess.Popen[bytes]) -> None:
    assert proctree.list_marked_processes(MARK) == dict.fromkeys(
        [tree.pid, *proctree.list_descendants(tree.pid)], "yes"
    )
    assert proctree.list_marked_processes(MARK[:-1]) == {}


def test_killing_reaches_those_below_the_found_ones(tree: subprocess.Popen[bytes]) -> None:
    below = proctree.list_descendants(tree.pid)
    assert proctree.kill_all(lambda: [tree.pid], 10) == []
    tree.wait(60)
    assert not any(proctree.is_alive(pid, proctree.start_ticks(pid) or NEVER) for pid in below)


def test_what_keeps_forking_is_killed_too() -> None:
    forking = "import os\nwhile True:\n    if os.fork(): os._exit(0)"
    with subprocess.Popen([sys.executable, "-c", forking], env={MARK: "yes"}):
        assert proctree.kill_all(lambda: proctree.list_marked_processes(MARK), 20) == []


def test_memory_shared_by_forks_counts_once_exactly_and_twice_quickly() -> None:
    script = (
        "import os, sys; hog = b'x' * (50 << 20); os.fork(); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], **PIPES) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        pids = [process.pid, *proctree.list_descendants(process.pid)]
        assert proctree.measure_rss(pids) > 100 << 20
        assert 50 << 20 < proctree.measure_pss(pids) < 90 << 20


BUSY_CHILD = """
import os
if not os.fork():
    while os.times().user < 0.3: pass
    os._exit(0)
os.wait()
"""


def test_processor_time_of_ended_children_stays_counted() -> None:
    with subprocess.Popen(
        ["sh", "-c", '"$@"; echo; read line', "sh", sys.executable, "-c", BUSY_CHILD], **PIPES
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert 0.3 <= proctree.measure_cpu_seconds(process.pid) < 10


def test_what_is_gone_uses_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert (
        proctree.measure_rss([process.pid]),
        proctree.measure_pss([process.pid]),
        proctree.measure_cpu_seconds(process.pid),
    ) == (0, 0, 0)
    assert proctree.list_descendants(process.pid) == []
    assert not proctree.send_signal(process.pid, NEVER, signal.SIGKILL)

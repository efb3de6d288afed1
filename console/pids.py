"""Processes by number: how they end, when they began, and which an earlier supervisor has left
behind.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ProcessRegister:
    """Which processes run, in a file: the next supervisor finds there what a killed one has left
    behind.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._start_ticks: dict[str, tuple[int, int | None]] = {}

    def add(self, name: str, pid: int) -> None:
        self._start_ticks[name] = (pid, find_start_ticks(pid))
        self._write()

    def remove(self, name: str) -> None:
        self._start_ticks.pop(name, None)
        self._write()

    def find_orphans(self) -> dict[str, int]:
        """Those in the file that live still. A number that another process has since got does not
        count.
        """
        try:
            kept = json.loads(self._file.read_text())
            return {
                str(name): int(pid)
                for name, (pid, then) in kept.items()
                if then is not None and find_start_ticks(int(pid)) == then
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write(self) -> None:
        # A full disk must not end what runs; the file only helps after a crash.
        with contextlib.suppress(OSError):
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(self._start_ticks))
            new.replace(self._file)


def find_start_ticks(pid: int) -> int | None:
    """When a process began, in the kernel's ticks: with its number this names it for good. None
    when it is gone.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A first thread that has ended is shown as a zombie while others still hold the process's files
    # and ports.
    is_over = state in "ZX" and int(fields[16]) <= 1
    return None if is_over else int(fields[18])


async def end_processes(processes: Mapping[str, int], within: float) -> None:
    """End these processes, which may be somebody else's children: SIGTERM, time to stop,
    SIGKILL.
    """
    alive = {pid: find_start_ticks(pid) for pid in processes.values()}
    for pid in alive:
        ask_to_end(pid)
    until = time.monotonic() + within
    while alive := {
        pid: then
        for pid, then in alive.items()
        if then is not None and find_start_ticks(pid) == then
    }:
        if time.monotonic() > until:
            for pid in alive:
                send_signal(pid, signal.SIGKILL)
        await asyncio.sleep(0.05)


def ask_to_end(pid: int) -> None:
    """SIGTERM, which a process that somebody has paused would not get."""
    send_signal(pid, signal.SIGTERM)
    send_signal(pid, signal.SIGCONT)


def send_signal(pid: int, number: signal.Signals) -> None:
    """Signal a process; that it is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


async def wait_for_end(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child's end without a thread; its return code, negative for a signal."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    handle = os.pidfd_open(process.pid)
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return process.wait()


def describe_exit(code: int) -> str:
    """How a process ended, from its return code."""
    if code >= 0:
        return f"ended with status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def build_parent_death_hook() -> Callable[[], None]:
    """What a child does ahead of its program: ask the kernel for SIGTERM as soon as this process is
    gone, however it went.
    """
    parent = os.getpid()

    def ask() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return ask
